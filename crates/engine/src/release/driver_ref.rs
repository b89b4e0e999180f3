//! The object that an account works for when it starts an operation, as the stamp on the record names it.

use std::fmt;

/// A declaration behind an operation: which one, and which version of its spec was seen when the operation started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverRef<'s> {
    /// For example `HelmRelease`.
    pub kind: &'s str,
    pub namespace: &'s str,
    pub name: &'s str,
    pub uid: &'s str,
    /// `metadata.generation`, which the API server increments at each change of the spec.
    pub generation: i64,
}

impl<'s> DriverRef<'s> {
    /// Reads the stamp `KIND/NAMESPACE/NAME/UID/GENERATION`; `None` if it has another form.
    #[must_use]
    pub fn parse(stamp: &'s str) -> Option<Self> {
        let mut parts = stamp.split('/');
        let mut next = || parts.next().filter(|part| !part.is_empty());
        let (kind, namespace, name, uid) = (next()?, next()?, next()?, next()?);
        let generation = next()?.parse().ok()?;
        parts.next().is_none().then_some(Self { kind, namespace, name, uid, generation })
    }
}

impl fmt::Display for DriverRef<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name, uid, generation } = self;
        write!(out, "{kind}/{namespace}/{name}/{uid}/{generation}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_is_written() {
        let stamp = "HelmRelease/shop/web/0b1c/3";
        let read = DriverRef::parse(stamp).unwrap();
        assert_eq!(
            (read.namespace, read.name, read.generation, read.to_string()),
            ("shop", "web", 3, stamp.to_owned())
        );
        for other in ["", "HelmRelease/shop/web/0b1c", "HelmRelease/shop/web//3", "a/b/c/d/x", "a/b/c/d/1/e"] {
            assert_eq!(DriverRef::parse(other), None, "{other}");
        }
    }
}
