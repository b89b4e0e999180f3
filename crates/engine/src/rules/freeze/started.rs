//! What a write of a declaration makes an owner do.

use crate::release::ReleaseRef;
use crate::rules::protected_release::protection::ReleaseAtHome;

/// An operation that an owner starts because of a write of a declaration.
pub(crate) struct StartedOperation {
    /// As freezes may name the release: with the namespaces that policies use for it.
    pub(crate) frozen_as: Vec<ReleaseRef>,
    /// As overrides name it.
    pub(crate) release: ReleaseRef,
    /// What the write does.
    pub(crate) sentence: String,
}

impl StartedOperation {
    pub(crate) fn of(at_home: ReleaseAtHome, sentence: String) -> Self {
        let ReleaseAtHome { release, home, .. } = at_home;
        Self { frozen_as: vec![ReleaseRef::new(&*home, &*release.name)], release, sentence }
    }
}
