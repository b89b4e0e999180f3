//! Reads one value of a JSON document, and nothing that follows it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads the value at a path of keys and stops there; `None` where there is none. The document may be cut off behind it.
///
/// # Errors
/// When the text is no object up to there, or the value has the wrong shape.
pub(crate) fn first_at<'a, T: Deserialize<'a>>(json: &'a [u8], path: &[&str]) -> Result<Option<T>, serde_json::Error> {
    let mut found = None;
    let mut json = serde_json::Deserializer::from_slice(json);
    let read = Seek { path, found: &mut found }.deserialize(&mut json);
    // Stopping early is an error to serde; what was found by then is what counts.
    found.map_or_else(|| read.map(|()| None), |found| Ok(Some(found)))
}

struct Seek<'p, 'f, T> {
    path: &'p [&'p str],
    found: &'f mut Option<T>,
}

impl<'a, T: Deserialize<'a>> DeserializeSeed<'a> for Seek<'_, '_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a, T: Deserialize<'a>> Visitor<'a> for Seek<'_, '_, T> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut object: A) -> Result<(), A::Error> {
        let Some((wanted, rest)) = self.path.split_first() else {
            return Ok(());
        };
        while let Some(key) = object.next_key::<Cow<'a, str>>()? {
            if key != *wanted {
                object.next_value::<IgnoredAny>()?;
            } else if rest.is_empty() {
                *self.found = Some(object.next_value()?);
                return Err(A::Error::custom("found"));
            } else {
                object.next_value_seed(Seek { path: rest, found: &mut *self.found })?;
            }
        }
        Ok(())
    }
}
