//! Structs as Go's `encoding/json` parses them, for data that Helm stores.
//!
//! Go ignores the case of keys and uses the last of several: given `"manifest"` and a later `"Manifest"`, Helm uses the
//! latter. No client writes such keys, so a struct with one is an error. Two equal keys are an error too: in Go the
//! second of two objects does not replace the first, but is merged into it.

use std::fmt;

use serde::de::value::CowStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::text::Text;

/// The longest key that is compared, in bytes. No longer key resembles a known one.
const MAX_KEY_BYTES: usize = 64;

/// A deserializer of structs that rejects keys which Go takes for a field, and serde does not. For types with
/// `#[serde(remote = "Self")]`.
pub(crate) struct GoStruct<D>(pub(crate) D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for GoStruct<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, StructVisitor { fields, visitor })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

/// Accepts only an object. serde's structs also accept a list of the values.
struct StructVisitor<V> {
    fields: &'static [&'static str],
    visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for StructVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(out)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Members { fields: self.fields, members })
    }
}

struct Members<A> {
    fields: &'static [&'static str],
    members: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(Text(key)) = self.members.next_key()? else {
            return Ok(None);
        };
        check(&key, self.fields)?;
        seed.deserialize(CowStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.members.next_value_seed(seed)
    }
}

/// Fails on a key that Go takes for a field, and serde does not.
fn check<E: Error>(key: &str, fields: &[&str]) -> Result<(), E> {
    if fields.contains(&key) || !fields.iter().any(|field| is_key_of(field, key)) {
        return Ok(());
    }
    Err(E::custom(format_args!("a key that differs from a known one only in case: {key:?}")))
}

/// Whether Go takes a key for a field, whose name is in lower case.
fn is_key_of(field: &str, key: &str) -> bool {
    key.len() <= MAX_KEY_BYTES && key.chars().map(folded).eq(field.chars())
}

/// The lower-case letter that Go takes a character for. It folds two characters beyond ASCII to letters.
fn folded(character: char) -> char {
    match character {
        'ſ' => 's',
        '\u{212a}' => 'k',
        character => character.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(remote = "Self")]
    struct Hook<'a> {
        #[serde(borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        delete_policies: Option<&'a serde_json::value::RawValue>,
    }

    impl<'de: 'a, 'a> Deserialize<'de> for Hook<'a> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Self::deserialize(GoStruct(deserializer))
        }
    }

    #[test]
    fn a_key_that_go_takes_for_a_field_is_an_error() {
        let read = |json: &str| {
            let hooks = serde_json::from_str::<Vec<Hook<'_>>>(json).map_err(|error| error.to_string())?;
            Ok(hooks.iter().map(|hook| format!("{} {}", hook.kind, hook.delete_policies.is_some())).collect())
        };
        let hook = |key: &str| read(&format!(r#"[{{"kind":"Job","{key}":["x"]}}]"#));
        assert_eq!(hook("delete_policies"), Ok("Job true".to_owned()));
        for key in ["later", "kinds", "delete policies", "ĸind", "deleteſpolicies"] {
            assert_eq!(hook(key), Ok("Job false".to_owned()), "{key}");
        }
        for key in ["Delete_policies", "KIND", "\\u212aind", "delete_policie\\u017f", "Kind", "delete_policieſ"] {
            assert!(hook(key).is_err_and(|error: String| error.contains("only in case")), "{key}");
        }
        for json in [r#"[{"kind":"Job","kind":"Pod"}]"#, r#"[["Job", null]]"#] {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
