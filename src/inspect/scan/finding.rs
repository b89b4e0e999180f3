//! One thing that a scan found.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::{Check, Severity};
use crate::engine::object::ObjectKey;
use crate::engine::release::ReleaseRef;

/// Something that is wrong, and what to do about it. Nothing that an object contains is in it, names apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub check: Check,
    /// The release concerned; `None` for what is declared for another cluster's releases.
    pub release: Option<ReleaseRef>,
    /// The object concerned, where it is one in particular.
    pub object: Option<ObjectKey>,
    /// What was seen, in sentences.
    pub message: String,
    /// What to do about it.
    pub way_out: String,
}

impl Finding {
    /// How much it matters.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.check.severity()
    }

    /// The namespace that it is in: of the release, or else of the object.
    #[must_use]
    pub fn namespace(&self) -> &str {
        let of_object = || self.object.as_ref().map(|object| object.namespace.as_str());
        self.release.as_ref().map(|release| release.namespace.as_str()).or_else(of_object).unwrap_or_default()
    }

    /// The name of the release, or else of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        let of_object = || self.object.as_ref().map(|object| object.name.as_str());
        self.release.as_ref().map(|release| release.name.as_str()).or_else(of_object).unwrap_or_default()
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Finding", 7)?;
        fields.serialize_field("severity", &self.severity())?;
        fields.serialize_field("check", &self.check)?;
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
