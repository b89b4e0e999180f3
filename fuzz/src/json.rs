//! JSON for the references: trees of values, without repeated keys.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A value in which no object repeats a key: readers may disagree about the others.
struct Unique(Value);

/// The value of a text; `None` if it is not JSON, repeats a key, or is nested more than 128 deep.
pub fn unique(text: &str) -> Option<Value> {
    serde_json::from_str::<Unique>(text).ok().map(|value| value.0)
}

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Unique;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("any value")
            }

            fn visit_unit<E>(self) -> Result<Unique, E> {
                Ok(Unique(Value::Null))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Unique, A::Error> {
                let mut items = Vec::new();
                while let Some(Unique(item)) = list.next_element()? {
                    items.push(item);
                }
                Ok(Unique(items.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Unique, A::Error> {
                let mut members = Map::new();
                while let Some((key, Unique(value))) = object.next_entry::<String, _>()? {
                    if members.insert(key, value).is_some() {
                        return Err(A::Error::custom("a repeated key"));
                    }
                }
                Ok(Unique(members.into()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// How deep a value is nested: 1 for a scalar.
pub fn depth(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Whether a predicate holds for a value and everything in it.
pub fn all(value: &Value, holds: &dyn Fn(&Value) -> bool) -> bool {
    holds(value)
        && match value {
            Value::Array(items) => items.iter().all(|item| all(item, holds)),
            Value::Object(members) => members.values().all(|member| all(member, holds)),
            _ => true,
        }
}
