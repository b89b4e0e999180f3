//! The object that a record is stored in: Helm's Secret and ConfigMap, OLM's index Secret.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::RawObject;
use crate::object::Metadata;
use crate::release::RecordName;

/// The type of Helm's record Secrets.
pub const HELM_SECRET_TYPE: &str = "helm.sh/release.v1";
/// The type of the Secret in which OLM's operator-controller stores a record, or its first chunk.
pub const INDEX_TYPE: &str = "operatorframework.io/index.v1";
/// The type of the Secrets with the other chunks of such a record.
pub(crate) const OLM_CHUNK_TYPE: &str = "operatorframework.io/chunk.v1";

/// The value of OLM's label `type` on the Secret by which a record is listed.
pub(crate) const INDEX_LABEL: &str = "index";
/// The value of that label on the Secrets with the other chunks.
const CHUNK_LABEL: &str = "chunk";

/// The length of the hash at the end of a chunk's name, and its letters: a 64-bit hash in base 32.
const CHUNK_HASH_LENGTH: usize = 13;
const CHUNK_HASH_LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz123456";

/// The labels by which OLM's driver finds records and their chunks: the record of a Secret, and the role of the Secret.
pub(crate) const KEY_LABEL: &str = "key";
pub(crate) const TYPE_LABEL: &str = "type";

/// The storage of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Storage {
    /// Helm's default driver.
    Secret,
    /// `HELM_DRIVER=configmap`.
    ConfigMap,
    /// OLM's operator-controller, which splits large records into chunk Secrets.
    Index,
}

impl Storage {
    /// Every storage.
    pub const ALL: [Self; 3] = [Self::Secret, Self::ConfigMap, Self::Index];

    /// The spelling in commands and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::ConfigMap => "configmap",
            Self::Index => "olm",
        }
    }

    /// Finds a storage by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|storage| storage.name() == name)
    }

    /// A description for people.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Secret => "Helm's Secrets",
            Self::ConfigMap => "Helm's ConfigMaps",
            Self::Index => "OLM's Secrets",
        }
    }

    /// The value of the label `owner` that the client puts on every record and lists records by.
    #[must_use]
    pub fn owner(self) -> &'static str {
        match self {
            Self::Secret | Self::ConfigMap => "helm",
            Self::Index => "operator-controller",
        }
    }

    /// The kind of the objects in this storage.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Secret | Self::Index => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }

    /// The label selector for all records of a release.
    #[must_use]
    pub fn selector(self, release: &str) -> String {
        let index = if self == Self::Index { ",type=index" } else { "" };
        format!("owner={},name={release}{index}", self.owner())
    }

    /// The namespace that policies use for a release: that of its records. OLM keeps the records of all extensions in one
    /// namespace, so for an extension it is the namespace of its objects, if that is known.
    #[must_use]
    pub fn home<'n>(self, of_records: &'n str, of_objects: Option<&'n str>) -> &'n str {
        of_objects.filter(|_| self == Self::Index).unwrap_or(of_records)
    }

    /// Helm's other storage, whose records of the same name may manage the same objects.
    #[must_use]
    pub fn sibling(self) -> Option<Self> {
        match self {
            Self::Secret => Some(Self::ConfigMap),
            Self::ConfigMap => Some(Self::Secret),
            Self::Index => None,
        }
    }
}

impl Serialize for Storage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
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
    #[serde(borrow, default, deserialize_with = "present")]
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
    /// Whether the object has data. The objects of an audit log have none.
    #[serde(skip)]
    pub is_there: bool,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<RecordData<'a>, D::Error> {
    let data = Option::<RecordData<'a>>::deserialize(deserializer)?;
    Ok(data.map(|data| RecordData { is_there: true, ..data }).unwrap_or_default())
}

impl<'a> Stored<'a> {
    /// Parses an object of a review.
    ///
    /// # Errors
    /// The JSON is not a Secret or ConfigMap.
    pub fn read(object: RawObject<'a>) -> Result<Self, serde_json::Error> {
        serde_json::from_str(object.get())
    }

    /// The records that may list this Secret as a chunk, by its name and by its label `key`; none if the Secret is not
    /// a chunk.
    ///
    /// OLM reads a chunk by the name in the list, regardless of its type and labels, and deletes chunks by their
    /// labels.
    #[must_use]
    pub fn indexes_of_chunk(&self) -> Vec<RecordName> {
        let metadata = &self.metadata;
        let by_name = metadata.name.rsplit_once('-').filter(|(_, hash)| is_chunk_hash(hash)).map(|(index, _)| index);
        let labelled =
            metadata.label("owner") == Some(Storage::Index.owner()) && metadata.label(TYPE_LABEL) == Some(CHUNK_LABEL);
        let is_chunk = self.secret_type.as_deref() == Some(OLM_CHUNK_TYPE) || labelled;
        let by_label = metadata.label(KEY_LABEL).filter(|_| is_chunk);
        let mut found: Vec<_> = by_name.into_iter().chain(by_label).filter_map(|name| name.parse().ok()).collect();
        found.dedup();
        found
    }

    /// The storage of this record; `None` if the object is not a record.
    ///
    /// An object is a record if a client would read it: Helm lists by the labels `owner` and `name` and decodes the key
    /// `release`, regardless of the name and type of the object. A Secret of Helm's type stays a record if its labels
    /// are removed.
    #[must_use]
    pub fn storage(&self, kind: &str) -> Option<Storage> {
        let owner = self.metadata.label("owner").unwrap_or_default();
        let names_release = self.metadata.label("name").is_some() || self.data.release.is_some();
        let of_helm = owner == Storage::Secret.owner() && names_release;
        let of_olm = owner == Storage::Index.owner() && self.metadata.label(TYPE_LABEL) == Some(INDEX_LABEL);
        match (kind, self.secret_type.as_deref()) {
            ("Secret", Some(HELM_SECRET_TYPE)) => Some(Storage::Secret),
            ("Secret", Some(INDEX_TYPE)) => Some(Storage::Index),
            ("Secret", _) if of_olm => Some(Storage::Index),
            ("Secret", _) if of_helm => Some(Storage::Secret),
            ("ConfigMap", _) if of_helm => Some(Storage::ConfigMap),
            _ => None,
        }
    }
}

fn is_chunk_hash(hash: &str) -> bool {
    hash.len() == CHUNK_HASH_LENGTH && hash.bytes().all(|letter| CHUNK_HASH_LETTERS.contains(&letter))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    /// A Secret or ConfigMap of this type and name, with labels and data.
    fn object(kind_of_secret: &str, name: &str, labels: Value, data: Value) -> Box<RawValue> {
        let mut object = json!({"metadata": {"name": name, "namespace": "shop", "labels": labels}, "data": data});
        if !kind_of_secret.is_empty() {
            object["type"] = kind_of_secret.into();
        }
        serde_json::value::to_raw_value(&object).unwrap()
    }

    #[test]
    fn records_are_selected_by_the_labels_of_their_client() {
        assert_eq!(Storage::Secret.selector("web"), "owner=helm,name=web");
        assert_eq!(Storage::ConfigMap.selector("web"), "owner=helm,name=web");
        assert_eq!(Storage::Index.selector("web"), "owner=operator-controller,name=web,type=index");
    }

    #[test]
    fn a_part_of_a_record_is_found_by_its_name_or_by_its_labels() {
        const INDEX: &str = "sh.helm.release.v1.web.v2";
        let chunks = |kind: &str, name: &str, labels: Value| {
            let object = object(kind, name, labels, json!({}));
            let found = Stored::read(object.as_ref().into()).unwrap().indexes_of_chunk();
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let label = |owner: &str, kind: &str| json!({"owner": owner, "type": kind, "key": INDEX});
        let (record, none): (_, [&str; 0]) = ([INDEX], []);
        assert_eq!(chunks("Opaque", &format!("{INDEX}-abcdefghijk16"), json!({})), record);
        // Not a hash of OLM: too short, too long, another letter.
        for suffix in ["abcdefghijk1", "abcdefghijk161", "abcdefghijk10", "ABCDEFGHIJK16", ""] {
            assert_eq!(chunks("Opaque", &format!("{INDEX}-{suffix}"), json!({})), none, "{suffix}");
        }
        assert_eq!(chunks(OLM_CHUNK_TYPE, "x", json!({"key": INDEX})), record);
        assert_eq!(chunks("Opaque", "x", label("operator-controller", "chunk")), record);
        assert_eq!(chunks("Opaque", "x", label("operator-controller", "index")), none);
        assert_eq!(chunks("Opaque", "x", label("helm", "chunk")), none);
        assert_eq!(chunks("Opaque", "x", json!({"key": INDEX})), none);
        assert_eq!(chunks(OLM_CHUNK_TYPE, &format!("{INDEX}-abcdefghijk16"), json!({"key": INDEX})), record);
    }

    #[test]
    fn objects_that_a_client_would_list_are_records() {
        let (secret, config_map, index) = (Some(Storage::Secret), Some(Storage::ConfigMap), Some(Storage::Index));
        let release = || json!({"release": "x"});
        for (kind, kind_of_secret, labels, data, wanted) in [
            ("Secret", HELM_SECRET_TYPE, json!({}), json!({}), secret),
            ("Secret", "Opaque", json!({"owner": "helm", "name": "web"}), json!({}), secret),
            ("Secret", "Opaque", json!({"owner": "helm"}), release(), secret),
            ("Secret", "Opaque", json!({"owner": "helm"}), json!({}), None),
            ("Secret", "Opaque", json!({"name": "web"}), release(), None),
            ("ConfigMap", "", json!({"owner": "helm", "name": "web"}), release(), config_map),
            ("ConfigMap", "", json!({"owner": "alice", "name": "web"}), release(), None),
            ("ConfigMap", "", json!({"owner": "operator-controller", "type": "index"}), json!({}), None),
            ("Secret", INDEX_TYPE, json!({}), json!({}), index),
            ("Secret", "Opaque", json!({"owner": "operator-controller", "type": "index"}), json!({}), index),
            ("Secret", "Opaque", json!({"owner": "operator-controller", "type": "chunk"}), json!({}), None),
            ("Secret", "Opaque", json!({"owner": "alice", "type": "index"}), json!({}), None),
        ] {
            let object = object(kind_of_secret, "x", labels, data);
            assert_eq!(Stored::read(object.as_ref().into()).unwrap().storage(kind), wanted, "{kind} {object}");
        }
    }
}
