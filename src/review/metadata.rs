//! The metadata of an object of a review, borrowed from it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Object metadata, as far as rules need it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata<'a> {
    /// The object's name.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The object's uid.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// The server's clock at creation; absent in the mutating review of a CREATE.
    pub creation_timestamp: Option<Timestamp>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// Labels.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub labels: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Annotations.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub annotations: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Who wrote which field last, unread.
    #[serde(borrow)]
    pub managed_fields: Option<&'a RawValue>,
}

impl<'a> Metadata<'a> {
    /// Reads the metadata of an object, and nothing that follows: the API server writes it before the content. Empty where
    /// the object has none.
    ///
    /// # Errors
    /// When the object is none, or its metadata have the wrong shape.
    pub fn of(object: &'a RawValue) -> Result<Self, serde_json::Error> {
        up_to_metadata(object).map(Option::unwrap_or_default)
    }
}

/// Reads an object up to its `metadata`, which Go writes before the content, and stops there; `None` where it has none.
///
/// # Errors
/// When the text is no object, or its metadata have the wrong shape.
pub(crate) fn up_to_metadata<'a, M: Deserialize<'a>>(object: &'a RawValue) -> Result<Option<M>, serde_json::Error> {
    let mut found = None;
    let mut json = serde_json::Deserializer::from_str(object.get());
    let read = json.deserialize_map(UpToMetadata(&mut found));
    // Stopping early is an error to serde; what was found by then is what counts.
    found.map_or_else(|| read.map(|()| None), Ok)
}

/// Holds what was found: nothing yet, or metadata that may be null.
struct UpToMetadata<'f, M>(&'f mut Option<Option<M>>);

impl<'a, M: Deserialize<'a>> Visitor<'a> for UpToMetadata<'_, M> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<Cow<'a, str>>()? {
            if key == "metadata" {
                *self.0 = Some(object.next_value()?);
                return Err(A::Error::custom("found"));
            }
            object.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

impl Metadata<'_> {
    /// A label, where there is one.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(AsRef::as_ref)
    }

    /// An annotation, where there is one.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(AsRef::as_ref)
    }
}

/// Reads a null as if it were not there, as the API server does.
pub(crate) fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn only_the_metadata_is_read() {
        let raw = RawValue::from_string(r#"{"kind":"A","metadata":{"name":"web","labels":null},"spec":{}}"#.into());
        let raw = raw.unwrap();
        let metadata = Metadata::of(&raw).unwrap();
        assert_eq!(metadata.name, "web");
        assert!(metadata.labels.is_empty() && metadata.managed_fields.is_none());
        assert_eq!(Metadata::of(&to_raw_value(&json!({"spec": 1})).unwrap()).unwrap().name, "");
        assert_eq!(Metadata::of(&to_raw_value(&json!({"metadata": null})).unwrap()).unwrap().name, "");
        for wrong in [json!([]), json!("x"), json!({"metadata": 7}), json!({"metadata": {"name": 7}})] {
            assert!(Metadata::of(&to_raw_value(&wrong).unwrap()).is_err(), "{wrong}");
        }
    }
}
