//! A parsed part of a document, together with its text.

use std::ops::Deref;

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;
use serde_json::value::RawValue;

use super::changed::changed_field;

/// The part with the fields that rules use, and its text for the comparison of all others.
#[derive(Debug, Default)]
pub(crate) struct WithText<'a, T> {
    read: T,
    /// `None` if the document lacks the part.
    text: Option<&'a RawValue>,
}

impl<'de: 'a, 'a, T: Deserialize<'de> + Default> Deserialize<'de> for WithText<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(text) = Option::<&'de RawValue>::deserialize(deserializer)? else { return Ok(Self::default()) };
        Ok(Self { read: serde_json::from_str(text.get()).map_err(de::Error::custom)?, text: Some(text) })
    }
}

impl<T> Deref for WithText<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.read
    }
}

impl<T> WithText<'_, T> {
    pub(crate) fn into_read(self) -> T {
        self.read
    }

    /// The first field that another version has changed, except those for which `is_free`, as [`changed_field`] says. Most writes leave
    /// the whole text as it is.
    pub(crate) fn changed_field(&self, after: &Self, is_free: impl Fn(&str) -> bool + Copy) -> Option<String> {
        if self.text.map(RawValue::get) == after.text.map(RawValue::get) {
            return None;
        }
        changed_field(&self.value(), &after.value(), is_free)
    }

    fn value(&self) -> Value {
        self.text.and_then(|text| serde_json::from_str(text.get()).ok()).unwrap_or_default()
    }
}
