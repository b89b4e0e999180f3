//! A hook in the body of a record.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::json::{GoStruct, null_is_default};

#[derive(Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Hook<'b> {
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    pub(super) name: Cow<'b, str>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    pub(super) kind: Cow<'b, str>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    pub(super) path: Cow<'b, str>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    pub(super) manifest: Cow<'b, str>,
    // These stay text: a list may have millions of items.
    #[serde(borrow, default)]
    pub(super) events: Option<&'b RawValue>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) weight: i64,
    #[serde(borrow, default)]
    pub(super) delete_policies: Option<&'b RawValue>,
    #[serde(borrow, default)]
    pub(super) last_run: Option<&'b RawValue>,
}

impl<'de: 'b, 'b> Deserialize<'de> for Hook<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(GoStruct(deserializer))
    }
}

/// Visits the hooks in a list, of which there may be millions. A null is an empty list.
///
/// # Errors
/// A hook cannot be parsed, or the visitor reports an error.
pub(super) fn each_hook<'de, D: Deserializer<'de>>(
    deserializer: D,
    visit: impl FnMut(Hook<'de>) -> Result<(), &'static str>,
) -> Result<(), D::Error> {
    deserializer.deserialize_any(Each(visit))
}

struct Each<F>(F);

impl<'de, F: FnMut(Hook<'de>) -> Result<(), &'static str>> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("hooks")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut hooks: A) -> Result<(), A::Error> {
        while let Some(hook) = hooks.next_element()? {
            (self.0)(hook).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
