//! The annotated object that protects a release, as the stamp on the record names it.

use std::fmt;

use serde::Deserialize;

use crate::object::OwnedMetadata;

/// An object whose annotation protects a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectorRef<'s> {
    /// For example `HelmRelease`.
    pub kind: &'s str,
    /// Empty for cluster-scoped kinds.
    pub namespace: &'s str,
    pub name: &'s str,
    /// Another object of the same name has another uid, and ends no protection.
    pub uid: &'s str,
}

impl<'s> ProtectorRef<'s> {
    /// Reads the stamp `KIND/NAMESPACE/NAME/UID`; `None` if it has another form.
    #[must_use]
    pub fn parse(stamp: &'s str) -> Option<Self> {
        let mut parts = stamp.split('/');
        let (kind, namespace, name, uid) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_complete = [kind, name, uid].iter().all(|part| !part.is_empty()) && parts.next().is_none();
        is_complete.then_some(Self { kind, namespace, name, uid })
    }

    /// `HelmRelease shop/web`, or `ClusterExtension web`.
    #[must_use]
    pub fn title(&self) -> String {
        let Self { kind, namespace, name, .. } = self;
        if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
    }
}

/// What has become of a protecting object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtectorState {
    /// It is annotated, and protects.
    Annotated,
    /// It exists without its annotation, and protects no longer.
    Unannotated,
    /// It was deleted, so that the stamp protects. Another object may have its name.
    Deleted,
}

impl ProtectorRef<'_> {
    /// The state of the object, by the JSON text of what has its name now.
    ///
    /// # Errors
    /// The text is no object with metadata.
    pub fn state(&self, stored: Option<&str>) -> Result<ProtectorState, serde_json::Error> {
        #[derive(Deserialize)]
        struct Stored {
            metadata: OwnedMetadata,
        }
        let Some(text) = stored else { return Ok(ProtectorState::Deleted) };
        let Stored { metadata } = serde_json::from_str(text)?;
        Ok(match metadata.uid == self.uid {
            false => ProtectorState::Deleted,
            true if metadata.is_protected() => ProtectorState::Annotated,
            true => ProtectorState::Unannotated,
        })
    }
}

impl fmt::Display for ProtectorRef<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name, uid } = self;
        write!(out, "{kind}/{namespace}/{name}/{uid}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_is_written() {
        for (stamp, title) in [("Example/shop/web/0b1c", "Example shop/web"), ("Cluster//web/0b1c", "Cluster web")] {
            let read = ProtectorRef::parse(stamp).unwrap();
            assert_eq!((read.title().as_str(), read.to_string().as_str()), (title, stamp));
        }
        for other in ["", "a/b/c", "a/b//d", "/b/c/d", "a/b/c/", "a/b/c/d/e"] {
            assert_eq!(ProtectorRef::parse(other), None, "{other}");
        }
    }
}
