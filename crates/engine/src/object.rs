//! Kubernetes objects: keys, metadata, names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::json::cursor::{Cursor, unquoted};
use super::json::{RawObject, cursor_at, unreadable};

/// The annotation that forbids uninstalling the releases of an object.
pub const PROTECTED: &str = "interlock.dev/protected";

/// The annotation on an object with what may go although a rule would keep it, separated by commas: of a profile or ClusterSummary
/// the releases that a commit may remove (`namespace/name`), of an ApplicationSet its Applications, of a Kustomization the objects of
/// its inventory.
pub const ALLOW_REMOVAL: &str = "interlock.dev/allow-removal";

/// Whether a value of the annotation [`PROTECTED`] protects anything.
#[must_use]
pub fn protects(value: Option<&str>) -> bool {
    value == Some("true")
}

/// The part of an object's metadata that rules need, borrowed from a review.
#[derive(Debug, Default)]
pub struct Metadata<'a> {
    pub name: Cow<'a, str>,
    pub uid: Cow<'a, str>,
    /// The server's clock at creation; absent in the mutating review of a CREATE.
    pub creation_timestamp: Option<Timestamp>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    pub labels: StringMap<'a>,
    pub annotations: StringMap<'a>,
    /// The fields that each manager wrote last, not parsed yet.
    pub managed_fields: Option<RawObject<'a>>,
    /// The steps that delay the deletion of the object, not parsed yet.
    pub finalizers: Option<RawObject<'a>>,
    /// The owners, with which the object is deleted, not parsed yet.
    pub owner_references: Option<RawObject<'a>>,
}

/// The most labels or annotations that are parsed. It is more than etcd can store: an object takes at most 1.5 MiB by
/// default.
const MAX_MEMBERS: usize = 160_000;

/// Labels or annotations. An object has few, so a linear search is faster than building a tree.
#[derive(Debug, Default)]
pub struct StringMap<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Metadata<'a> {
    /// Parses the metadata of an object and nothing after it: the API server writes the metadata before the content. An
    /// object without metadata has the default.
    ///
    /// # Errors
    /// The JSON is not an object, or its metadata has the wrong shape.
    pub fn of(object: RawObject<'a>) -> Result<Self, serde_json::Error> {
        cursor_at(object.get(), &["metadata"])?.map_or_else(|| Ok(Self::default()), Self::read)
    }

    /// Parses metadata. serde could report the position of a field with the wrong shape, but takes three times as long:
    /// most of the text is `managedFields`, which serde parses to find its end.
    fn read(cursor: Cursor<'a>) -> Result<Self, serde_json::Error> {
        let mut metadata = Self::default();
        for_each_member(cursor, |name, value| {
            match name.as_ref() {
                "name" => metadata.name = string(value)?,
                "uid" => metadata.uid = string(value)?,
                "creationTimestamp" => metadata.creation_timestamp = serde_json::from_str(value)?,
                "deletionTimestamp" => metadata.deletion_timestamp = serde_json::from_str(value)?,
                "labels" => metadata.labels = StringMap::read(value)?,
                "annotations" => metadata.annotations = StringMap::read(value)?,
                "managedFields" => metadata.managed_fields = present(value),
                "finalizers" => metadata.finalizers = present(value),
                "ownerReferences" => metadata.owner_references = present(value),
                _ => {}
            }
            Ok(())
        })?;
        Ok(metadata)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Metadata<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Cursor::new(<&RawValue>::deserialize(deserializer)?.get())).map_err(D::Error::custom)
    }
}

impl<'a> StringMap<'a> {
    /// A null is an empty map, as for the API server.
    fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut entries = Vec::new();
        for_each_member(Cursor::new(text), |key, value| {
            if entries.len() == MAX_MEMBERS {
                return Err(Error::custom("more labels or annotations than an API server can store"));
            }
            entries.push((key, string(value)?));
            Ok(())
        })?;
        Ok(Self(entries))
    }

    /// The value of a key. If the key repeats, the last value counts.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rfind(|(known, _)| known == key).map(|(_, value)| value.as_ref())
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

const NULL: &str = "null";

fn present(value: &str) -> Option<RawObject<'_>> {
    (value != NULL).then(|| RawObject::delimited(value))
}

/// Passes each member of an object to a function. A null has no members, as for the API server.
fn for_each_member<'a>(
    mut cursor: Cursor<'a>,
    mut read: impl FnMut(Cow<'a, str>, &'a str) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    let start = cursor.clone();
    let malformed = || {
        let text = start.clone().skip_value();
        unreadable(text.unwrap_or_else(|| start.remaining()))
    };
    if cursor.expect_byte(b'{').is_none() {
        return if cursor.skip_value() == Some(NULL) { Ok(()) } else { Err(malformed()) };
    }
    while let Some((name, value)) = cursor.next_member().ok_or_else(malformed)? {
        read(name, value)?;
    }
    Ok(())
}

fn string(value: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    unquoted(value).map_or_else(|| serde_json::from_str(value), Ok)
}

impl Metadata<'_> {
    /// Whether the object is annotated as protected.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        protects(self.annotation(PROTECTED))
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key)
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key)
    }
}

/// The metadata of an object, independent of the text that it was parsed from.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnedMetadata {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Incremented by the API server at each change of the spec.
    pub generation: i64,
    /// The server's clock at creation.
    pub creation_timestamp: Option<Timestamp>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// Only those of Interlock: others can be many.
    #[serde(deserialize_with = "interlock_annotations")]
    pub annotations: BTreeMap<String, String>,
}

/// The prefix of Interlock's annotations on objects that people write.
const ANNOTATION_PREFIX: &str = "interlock.dev/";

fn interlock_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct InterlockAnnotations;

    impl<'de> Visitor<'de> for InterlockAnnotations {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a map of strings")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut annotations = BTreeMap::new();
            while let Some((key, value)) = members.next_entry::<String, String>()? {
                if key.starts_with(ANNOTATION_PREFIX) {
                    annotations.insert(key, value);
                }
            }
            Ok(annotations)
        }
    }

    deserializer.deserialize_any(InterlockAnnotations)
}

impl OwnedMetadata {
    /// Whether the object is annotated as protected.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        protects(self.annotations.get(PROTECTED).map(String::as_str))
    }
}

/// The key of an object. Keys are ordered by group, kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Empty for the core group.
    pub group: String,
    /// For example `Secret`.
    pub kind: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    pub name: String,
}

impl ObjectKey {
    /// A key from its parts.
    #[must_use]
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }
}

/// The API group of an `apiVersion`; empty for the core group.
#[must_use]
pub fn group_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// The longest name of an object, in bytes.
pub const MAX_NAME_LENGTH: usize = 253;

/// Whether an API server accepts a group, a kind, a namespace and a name of these lengths. A shorter text may still be
/// invalid.
#[must_use]
pub(crate) fn have_lengths_of_names(parts: [&str; 4]) -> bool {
    parts.iter().all(|part| part.len() <= MAX_NAME_LENGTH)
}

/// The longest name of a namespace, in bytes.
const MAX_LABEL_LENGTH: usize = 63;

/// Whether a text is a lower-case DNS subdomain of at most `max_length` bytes (RFC 1123), like the name of an object.
#[must_use]
pub fn is_dns_subdomain(text: &str, max_length: usize) -> bool {
    text.len() <= max_length && text.split('.').all(is_dns_part)
}

/// Whether a text is a lower-case DNS label (RFC 1123), like the name of a namespace.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= MAX_LABEL_LENGTH && is_dns_part(text)
}

fn is_dns_part(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The prefix of the user name of a service account.
pub(crate) const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The user name of a service account.
#[must_use]
pub(crate) fn service_account_user(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The namespace of a service account, by its user name; `None` for other users.
#[must_use]
pub(crate) fn account_namespace(user: &str) -> Option<&str> {
    user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':').map(|(namespace, _)| namespace)
}

/// The JSON pointer to an annotation.
#[must_use]
pub(crate) fn annotation_pointer(key: &str) -> String {
    jsonptr::PointerBuf::from_tokens(["metadata", "annotations", key]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_labels_than_can_be_stored_take_no_memory() {
        let of =
            |count: usize| format!("{{\"metadata\":{{\"labels\":{{\"a\":\"b\"{}}}}}}}", r#","":"x""#.repeat(count));
        let (most, more) = (of(MAX_MEMBERS - 1), of(MAX_MEMBERS));
        assert_eq!(Metadata::of(RawObject::delimited(&most)).unwrap().label("a"), Some("b"));
        assert!(Metadata::of(RawObject::delimited(&more)).unwrap_err().to_string().contains("more labels"));
    }

    #[test]
    fn only_the_metadata_is_read() {
        let of = |text| Metadata::of(RawObject::delimited(text));
        let metadata = of(r#"{"kind":"A","metadata":{"name":"web","labels":null},"spec":{}}"#).unwrap();
        assert_eq!(metadata.name, "web");
        assert!(metadata.labels.is_empty() && metadata.managed_fields.is_none());
        assert_eq!(of(r#"{"spec":1}"#).unwrap().name, "");
        assert_eq!(of(r#"{"metadata":null}"#).unwrap().name, "");
        for wrong in ["[]", r#""x""#, r#"{"metadata":7}"#, r#"{"metadata":{"name":7}}"#, "{metadata}"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
