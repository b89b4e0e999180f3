//! A hash over the meaning of a JSON value. It compares megabytes of values without building trees, and without an
//! allocation for each member.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::effort::Effort;

/// The steps of a node in addition to those of its text.
const NODE_STEPS: u64 = 40;

/// The parts of a value that do not count.
#[derive(Clone, Copy)]
pub(super) struct Irrelevant {
    /// Whether a member is left out.
    pub(super) member: fn(Place<'_>, &str) -> bool,
    /// Whether a null or empty member at the top is the same as an absent one.
    pub(super) empty_members: bool,
}

/// The place of a member.
#[derive(Clone, Copy)]
pub(super) struct Place<'k> {
    /// 0 for the members of the outermost value.
    pub(super) depth: usize,
    /// The key of the outermost member around this one; empty for an outermost member.
    pub(super) top: &'k str,
}

/// Compares values by their fingerprints. The keys of the hash are random, so that nobody can construct two values with the
/// same fingerprint.
pub(super) struct Fingerprints<'e> {
    keys: RandomState,
    irrelevant: Irrelevant,
    effort: &'e Effort,
}

impl<'e> Fingerprints<'e> {
    pub(super) fn new(irrelevant: Irrelevant, effort: &'e Effort) -> Self {
        Self { keys: RandomState::new(), irrelevant, effort }
    }

    /// The fingerprint of a JSON text. `None` if the text is not JSON, nests deeper than 128 levels, or takes more work than
    /// the review has left.
    ///
    /// Numbers count as floats, because Helm parses them as floats. If the outermost value is null or empty, it counts
    /// as absent.
    pub(super) fn of(&self, json: &str) -> Option<u64> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let print = Node { prints: self, place: Place { depth: 0, top: "" } }.deserialize(&mut deserializer).ok()?;
        Some(if print.is_empty { 0 } else { print.hash })
    }

    fn print<E: Error>(&self, content: impl Hash, text_bytes: usize) -> Result<Print, E> {
        self.effort.take(NODE_STEPS + text_bytes as u64).map_err(E::custom)?;
        Ok(Print { hash: self.keys.hash_one(content), is_empty: false })
    }
}

/// The fingerprint of one value.
struct Print {
    hash: u64,
    /// Whether the value is `null`, `[]` or `{}`.
    is_empty: bool,
}

/// A value that is being hashed.
#[derive(Clone, Copy)]
struct Node<'p> {
    prints: &'p Fingerprints<'p>,
    /// The place of the value's members.
    place: Place<'p>,
}

impl<'p> Node<'p> {
    fn item(self) -> Self {
        Self { place: Place { depth: self.place.depth + 1, ..self.place }, ..self }
    }

    fn member<'k>(self, key: &'k str) -> Node<'k>
    where
        'p: 'k,
    {
        let Place { depth, top } = self.place;
        Node { prints: self.prints, place: Place { depth: depth + 1, top: if depth == 0 { key } else { top } } }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Print;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Print, D::Error> {
        deserializer.deserialize_any(self)
    }
}

// A tag comes first, so that values of different kinds have different input.
impl<'de> Visitor<'de> for Node<'_> {
    type Value = Print;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Print, E> {
        Ok(Print { is_empty: true, ..self.prints.print(b'n', 0)? })
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Print, E> {
        self.prints.print((b'b', value), 0)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Print, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Print, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Print, E> {
        self.prints.print((b'f', value.to_bits()), 0)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Print, E> {
        self.prints.print((b's', value), value.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Print, A::Error> {
        let (mut all, mut count) = (0, 0_u64);
        while let Some(item) = items.next_element_seed(self.item())? {
            // The order of items counts.
            all = self.prints.keys.hash_one((all, item.hash));
            count += 1;
        }
        Ok(Print { is_empty: count == 0, ..self.prints.print((b'[', count, all), 0)? })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Print, A::Error> {
        let (mut all, mut count) = (0_u64, 0_u64);
        while let Some(key) = members.next_key::<Cow<'de, str>>()? {
            let irrelevant = &self.prints.irrelevant;
            if (irrelevant.member)(self.place, &key) {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = members.next_value_seed(self.member(&key))?;
            if irrelevant.empty_members && self.place.depth == 0 && value.is_empty {
                continue;
            }
            let member = self.prints.print((b'm', &key, value.hash), key.len())?;
            // The order of members does not count, because a client that rewrites a record may sort them. A sum does
            // not depend on the order, and needs no list.
            all = all.wrapping_add(member.hash);
            count += 1;
        }
        Ok(Print { is_empty: count == 0, ..self.prints.print((b'{', count, all), 0)? })
    }
}
