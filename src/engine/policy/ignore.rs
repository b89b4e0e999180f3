//! Fields that anybody may change.

use jsonptr::{Pointer, PointerBuf};

use super::Globs;
use super::globs::matches;

/// Fields of some objects that no object rule looks at.
#[derive(Debug, Clone)]
pub struct IgnoredFields {
    /// JSON pointers; what lies below one is ignored too.
    pub paths: Vec<PointerBuf>,
    /// The kinds of the objects; every one where not given.
    pub kinds: Option<Globs>,
    /// Their names.
    pub names: Option<Globs>,
    /// Their namespaces.
    pub namespaces: Option<Globs>,
}

impl IgnoredFields {
    /// Whether a field of an object is among them.
    #[must_use]
    pub fn covers(&self, kind: &str, namespace: &str, name: &str, field: &Pointer) -> bool {
        matches(self.kinds.as_ref(), Some(kind))
            && matches(self.namespaces.as_ref(), Some(namespace))
            && matches(self.names.as_ref(), Some(name))
            && self.paths.iter().any(|path| field.starts_with(path))
    }
}
