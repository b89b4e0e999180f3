//! A hash over the meaning of a JSON value: two megabytes of values are compared without building either.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use sha3::{Digest, Sha3_256};

/// The fingerprint of a JSON text; `None` if the text is not JSON, nests deeper than 128 levels, or has an object of
/// more than 20,000 members.
///
/// Numbers count as floats, because Helm parses them as such. At the top, a null or empty member counts as absent, and
/// so does the whole value. `skip` selects the members to leave out, by depth and key.
pub(super) fn of(json: &str, skip: fn(usize, &str) -> bool) -> Option<[u8; 32]> {
    let mut fingerprint = Fingerprint { hash: Sha3_256::new(), skip };
    let mut deserializer = serde_json::Deserializer::from_str(json);
    Node { fingerprint: &mut fingerprint, depth: 0 }.deserialize(&mut deserializer).ok()?;
    Some(fingerprint.hash.finalize().into())
}

struct Fingerprint {
    hash: Sha3_256,
    skip: fn(usize, &str) -> bool,
}

impl Fingerprint {
    /// Hashes a kind and its content. The length comes first, so that different shapes have different input.
    fn feed(&mut self, kind: u8, content: &[u8]) {
        self.hash.update([kind]);
        self.hash.update((content.len() as u64).to_le_bytes());
        self.hash.update(content);
    }
}

/// A value that is being hashed.
struct Node<'p> {
    fingerprint: &'p mut Fingerprint,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        if self.depth != 0 {
            self.fingerprint.feed(b'n', &[]);
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.fingerprint.feed(b'b', &[u8::from(value)]);
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.fingerprint.feed(b'f', &value.to_le_bytes());
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.fingerprint.feed(b's', value.as_bytes());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Node { fingerprint, depth } = self;
        fingerprint.feed(b'[', &[]);
        while items.next_element_seed(Node { fingerprint: &mut *fingerprint, depth: depth + 1 })?.is_some() {}
        fingerprint.feed(b']', &[]);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Node { fingerprint, depth } = self;
        let mut digests = Vec::new();
        while let Some(key) = members.next_key::<Cow<'de, str>>()? {
            if (fingerprint.skip)(depth + 1, &key) {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let mut value = Fingerprint { hash: Sha3_256::new(), skip: fingerprint.skip };
            members.next_value_seed(Node { fingerprint: &mut value, depth: depth + 1 })?;
            let value = value.hash.finalize();
            if depth == 0 && EMPTY_VALUES.iter().any(|tokens| Sha3_256::digest(tokens) == value) {
                continue;
            }
            let mut member = Fingerprint { hash: Sha3_256::new(), skip: fingerprint.skip };
            member.feed(b'k', key.as_bytes());
            member.feed(b'v', &value);
            digests.push(member.hash.finalize());
            if digests.len() > MAX_MEMBERS {
                return Err(A::Error::custom("too many members"));
            }
        }
        if digests.is_empty() && depth == 0 {
            return Ok(());
        }
        // The order of members does not count: a client that writes a record again may sort them.
        digests.sort_unstable();
        fingerprint.feed(b'{', &[]);
        for digest in digests {
            fingerprint.hash.update(digest);
        }
        fingerprint.feed(b'}', &[]);
        Ok(())
    }
}

/// The most members of an object. This bounds the memory of a comparison; real values have a few hundred.
const MAX_MEMBERS: usize = 20_000;

/// The hash input of `null`, `[]` and `{}`.
const EMPTY_VALUES: [&[u8]; 3] = [
    &[b'n', 0, 0, 0, 0, 0, 0, 0, 0],
    &[b'[', 0, 0, 0, 0, 0, 0, 0, 0, b']', 0, 0, 0, 0, 0, 0, 0, 0],
    &[b'{', 0, 0, 0, 0, 0, 0, 0, 0, b'}', 0, 0, 0, 0, 0, 0, 0, 0],
];
