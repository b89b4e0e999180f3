//! Fields that every user may change.

use jsonptr::{Pointer, PointerBuf};

use super::Globs;
use super::globs::matches;

/// Fields that the rules over objects ignore.
#[derive(Debug, Clone)]
pub struct IgnoredFields {
    /// JSON pointers. Fields below a pointer are ignored too.
    pub paths: Vec<PointerBuf>,
    /// `None` matches every kind; the same for names and namespaces.
    pub kinds: Option<Globs>,
    pub names: Option<Globs>,
    pub namespaces: Option<Globs>,
}

impl IgnoredFields {
    /// Whether a field of an object is ignored.
    #[must_use]
    pub fn covers(&self, kind: &str, namespace: &str, name: &str, field: &Pointer) -> bool {
        matches(self.kinds.as_ref(), Some(kind))
            && matches(self.namespaces.as_ref(), Some(namespace))
            && matches(self.names.as_ref(), Some(name))
            && self.paths.iter().any(|path| field.starts_with(path))
    }
}
