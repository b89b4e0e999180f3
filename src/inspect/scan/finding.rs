//! A problem that a scan found.

use interlock_engine::object::ObjectKey;
use interlock_engine::release::{ReleaseRef, Storage};
use interlock_engine::severity::Severity;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::FindingKind;

/// A problem, and how to fix it. It contains names, and nothing else from the content of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    /// `None` for releases of another cluster.
    pub release: Option<ReleaseRef>,
    /// The object concerned, if there is exactly one.
    pub object: Option<ObjectKey>,
    /// The problem, in sentences.
    pub message: String,
    /// How to fix it.
    pub way_out: String,
}

impl Finding {
    /// A finding about a record of a release.
    pub(super) fn of_record(
        kind: FindingKind,
        (release, storage): (&ReleaseRef, Storage),
        record: &str,
        message: String,
        way_out: String,
    ) -> Self {
        let object = ObjectKey::new("", storage.kind(), &release.namespace, record);
        Self { kind, release: Some(release.clone()), object: Some(object), message, way_out }
    }

    /// The severity of the problem.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.kind.severity()
    }

    /// The namespace of the release, otherwise of the object.
    #[must_use]
    pub fn namespace(&self) -> &str {
        match (&self.release, &self.object) {
            (Some(release), _) => &release.namespace,
            (None, Some(object)) => &object.namespace,
            (None, None) => "",
        }
    }

    /// The name of the release, otherwise of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        match (&self.release, &self.object) {
            (Some(release), _) => &release.name,
            (None, Some(object)) => &object.name,
            (None, None) => "",
        }
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Finding", 7)?;
        fields.serialize_field("severity", &self.severity())?;
        fields.serialize_field("check", &self.kind)?;
        fields.serialize_field("namespace", self.namespace())?;
        fields.serialize_field("release", &self.release.as_ref().map(|release| &release.name))?;
        let object = self.object.as_ref().map(|ObjectKey { group, kind, namespace, name }| {
            serde_json::json!({"group": group, "kind": kind, "namespace": namespace, "name": name})
        });
        fields.serialize_field("object", &object)?;
        fields.serialize_field("message", &self.message)?;
        fields.serialize_field("wayOut", &self.way_out)?;
        fields.end()
    }
}
