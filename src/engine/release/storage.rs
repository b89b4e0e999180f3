//! The object that a record is stored in: Helm's Secret and ConfigMap, OLM's index Secret.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::engine::json::null_is_default;
use crate::engine::object::Metadata;

/// The type of Helm's record Secrets.
pub(crate) const HELM_SECRET_TYPE: &str = "helm.sh/release.v1";
/// The type of the Secret in which OLM's operator-controller stores a record, or its first chunk.
pub(crate) const OLM_INDEX_TYPE: &str = "operatorframework.io/index.v1";
/// The type of the Secrets with the other chunks of such a record.
pub(crate) const OLM_CHUNK_TYPE: &str = "operatorframework.io/chunk.v1";

/// The value of OLM's label `type` on the Secret that a record is listed by.
const INDEX_LABEL: &str = "index";

/// The storage of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Helm's default driver.
    Secret,
    /// `HELM_DRIVER=configmap`.
    ConfigMap,
    /// OLM's operator-controller, which splits large records into chunk Secrets.
    OlmIndex,
}

impl Storage {
    /// The value of the label `owner` that the client puts on every record and lists records by.
    #[must_use]
    pub fn owner(self) -> &'static str {
        match self {
            Self::Secret | Self::ConfigMap => "helm",
            Self::OlmIndex => "operator-controller",
        }
    }

    /// The kind of the objects in this storage.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Secret | Self::OlmIndex => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }

    /// The label selector for all records of a release.
    #[must_use]
    pub fn selector(self, release: &str) -> String {
        let index = if self == Self::OlmIndex { ",type=index" } else { "" };
        format!("owner={},name={release}{index}", self.owner())
    }

    /// Helm's other storage, whose records of the same name may manage the same objects.
    #[must_use]
    pub fn sibling(self) -> Option<Self> {
        match self {
            Self::Secret => Some(Self::ConfigMap),
            Self::ConfigMap => Some(Self::Secret),
            Self::OlmIndex => None,
        }
    }
}

/// A Secret or ConfigMap, with only the fields that can make it a record.
#[derive(Debug, Deserialize)]
pub struct Stored<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    /// The type of a Secret; absent for a ConfigMap.
    #[serde(borrow, default, rename = "type")]
    pub secret_type: Option<Cow<'a, str>>,
    /// Whether the API server refuses every later change of the payload.
    #[serde(default)]
    pub immutable: Option<bool>,
    /// The payload, still encoded.
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    pub data: RecordData<'a>,
}

/// The keys of `data` that contain a record.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordData<'a> {
    /// Helm's payload.
    #[serde(borrow)]
    pub release: Option<Cow<'a, str>>,
    /// OLM's payload, or its first chunk.
    #[serde(borrow)]
    pub chunk: Option<Cow<'a, str>>,
    /// The names of the Secrets with OLM's other chunks: a JSON array in base64.
    #[serde(borrow)]
    pub extra_chunks: Option<Cow<'a, str>>,
}

impl<'a> Stored<'a> {
    /// Parses an object of a review.
    ///
    /// # Errors
    /// The JSON is not a Secret or ConfigMap.
    pub fn read(object: &'a RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(object.get())
    }

    /// The storage of this record; `None` if the object is not a record.
    ///
    /// What a client would read is a record: Helm lists by the labels `owner` and `name` and decodes the key `release`, whatever the
    /// name and the type of the object. A Secret of Helm's type stays a record when somebody removes its labels.
    #[must_use]
    pub fn storage(&self, kind: &str) -> Option<Storage> {
        let owner = self.metadata.label("owner").unwrap_or_default();
        let names_release = self.metadata.labels.contains_key("name") || self.data.release.is_some();
        let of_helm = owner == Storage::Secret.owner() && names_release;
        let of_olm = owner == Storage::OlmIndex.owner() && self.metadata.label("type") == Some(INDEX_LABEL);
        match (kind, self.secret_type.as_deref()) {
            ("Secret", Some(HELM_SECRET_TYPE)) => Some(Storage::Secret),
            ("Secret", Some(OLM_INDEX_TYPE)) => Some(Storage::OlmIndex),
            ("Secret", _) if of_olm => Some(Storage::OlmIndex),
            ("Secret", _) if of_helm => Some(Storage::Secret),
            ("ConfigMap", _) if of_helm => Some(Storage::ConfigMap),
            _ => None,
        }
    }
}
