//! Fields that every user may change.

use jsonptr::{Pointer, PointerBuf};

use super::Globs;
use super::globs::matches;

/// Fields that the rules about objects ignore.
#[derive(Debug, Clone)]
pub struct IgnoredFields {
    /// JSON pointers. Fields below a pointer are ignored too.
    pub paths: Vec<PointerBuf>,
    /// `None` matches every kind. The other conditions work the same way.
    pub kinds: Option<Globs>,
    pub names: Option<Globs>,
    pub namespaces: Option<Globs>,
}

/// Whether a field of an object is ignored. The result is reusable for all fields of the object.
pub fn ignored_fields<'p>(
    ignored: &'p [IgnoredFields],
    kind: &str,
    namespace: &str,
    name: &str,
) -> impl Fn(&Pointer) -> bool + use<'p> {
    let of_object = ignored.iter().filter(|ignored| ignored.matches(kind, namespace, name));
    let paths: Vec<_> = of_object.flat_map(|ignored| &ignored.paths).collect();
    move |field| paths.iter().any(|path| field.starts_with(path))
}

impl IgnoredFields {
    fn matches(&self, kind: &str, namespace: &str, name: &str) -> bool {
        matches(self.kinds.as_ref(), Some(kind))
            && matches(self.namespaces.as_ref(), Some(namespace))
            && matches(self.names.as_ref(), Some(name))
    }
}
