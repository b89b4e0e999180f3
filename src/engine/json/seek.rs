//! Reads one value of a JSON document and nothing after it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads the value at a path of keys and indices and stops there; `None` if there is no such value. The document may be
/// cut off after it.
///
/// # Errors
/// The text before the value is not an object or list, or the value has the wrong shape.
pub(crate) fn first_at<'a, T: Deserialize<'a>>(json: &'a [u8], path: &[&str]) -> Result<Option<T>, serde_json::Error> {
    let mut found = None;
    let mut json = serde_json::Deserializer::from_slice(json);
    let read = Seek { path, found: &mut found }.deserialize(&mut json);
    // serde treats an early stop as an error. The value that was found before counts.
    found.map_or_else(|| read.map(|()| None), |found| Ok(Some(found)))
}

struct Seek<'p, 'f, T> {
    path: &'p [&'p str],
    found: &'f mut Option<T>,
}

impl<'a, T: Deserialize<'a>> DeserializeSeed<'a> for Seek<'_, '_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a, T: Deserialize<'a>> Visitor<'a> for Seek<'_, '_, T> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object or a list")
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

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        let Some((wanted, rest)) = self.path.split_first() else {
            return Ok(());
        };
        let Ok(wanted) = wanted.parse::<usize>() else {
            return Err(A::Error::invalid_type(Unexpected::Seq, &"an object"));
        };
        for _ in 0..wanted {
            if list.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        if rest.is_empty() {
            *self.found = list.next_element()?;
            return if self.found.is_some() { Err(A::Error::custom("found")) } else { Ok(()) };
        }
        list.next_element_seed(Seek { path: rest, found: &mut *self.found })?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn keys_and_indices_find_a_value() {
        let json = br#"{"a":[{"b":1},{"b":{"c":2},"d":0}],"e":null,"f":"g"}"#;
        let at = |path: &[&str]| first_at::<&RawValue>(json, path).ok().flatten().map(RawValue::get);
        assert_eq!(at(&["a", "1", "b"]), Some(r#"{"c":2}"#));
        assert_eq!(at(&["a", "0"]), Some(r#"{"b":1}"#));
        assert_eq!(at(&["a", "1", "b", "c"]), Some("2"));
        for path in [&["a", "2"][..], &["a", "x"], &["a", "2", "b"], &["f", "g"], &["e", "x"], &["x"], &["a", "b"]] {
            assert_eq!(at(path), None, "{path:?}");
        }
        assert_eq!(at(&["f"]), Some(r#""g""#));
    }
}
