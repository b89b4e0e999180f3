//! Changes inputs where bytes alone would never get far: inside of JSON, and of JSON in gzip and base64 inside of it.
//!
//! An input is lines. Of a line that is JSON a node is changed, taken from elsewhere, moved or removed; every third time,
//! and of any other input, libFuzzer changes bytes.

use std::io::{Read, Write};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Map, Value};

/// The longest text that is taken out of gzip, in bytes.
const MAX_INFLATED: u64 = 1 << 20;

/// Words that Interlock knows, as keys and as values.
static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("../words.txt").lines().collect());

/// Values that mean something somewhere.
const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "2",
    "80",
    "1e3",
    "0.5",
    "-0.0",
    "18446744073709551615",
    "\"\"",
    "\"1\"",
    "\"80\"",
    "\"1000m\"",
    "\"1Gi\"",
    "\"0\"",
    "[]",
    "{}",
    "[{}]",
    "[[]]",
    "{\"name\":\"web\"}",
    "[{\"name\":\"web\"}]",
    "{\"a\":{\"b\":[1,2]}}",
    "[\"a\",\"b\"]",
    "\"2026-11-21T10:00:00Z\"",
    "\"é\\u0000\\ud83d\\ude00\"",
];

/// A generator of numbers (xorshift), as libFuzzer seeds it.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).unwrap_or_default()
    }

    fn of<'l, T: ?Sized>(&mut self, list: &[&'l T]) -> &'l T {
        list[self.below(list.len())]
    }
}

/// Changes the input in `data[..size]`, and returns its new size.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = Random(u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    if random.below(3) > 0
        && let Some(mutated) = mutated(&data[..size], &mut random).filter(|mutated| mutated.len() <= max_size)
    {
        data[..mutated.len()].copy_from_slice(&mutated);
        return mutated.len();
    }
    libfuzzer_sys::fuzzer_mutate(data, size, max_size)
}

fn mutated(input: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    if let Some(text) = inflated(input) {
        return mutated(text.as_bytes(), random).map(|text| deflated(&text));
    }
    let text = std::str::from_utf8(input).ok()?;
    let mut lines: Vec<_> = text.split('\n').map(str::to_owned).collect();
    let at = random.below(lines.len());
    match random.below(12) {
        0 if lines.len() > 1 => _ = lines.remove(at),
        1 if lines.len() > 1 => {
            let other = random.below(lines.len());
            lines.swap(at, other);
        }
        2 => {
            let line = lines[at].clone();
            lines.insert(at, line);
        }
        _ => {
            let elsewhere = serde_json::from_str(&lines[random.below(lines.len())]).unwrap_or_default();
            // The last line is the one that is judged.
            let at = if random.below(2) == 0 { lines.len() - 1 } else { at };
            let mut value: Value = serde_json::from_str(&lines[at]).ok()?;
            for _ in 0..=random.below(3) {
                change(&mut value, &elsewhere, random);
            }
            let mut line = String::new();
            write(&value, random, &mut line);
            lines[at] = line;
        }
    }
    Some(lines.join("\n").into_bytes())
}

/// How many nodes a value has.
fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(members) => members.values().map(nodes).sum(),
        _ => 0,
    }
}

/// The node with this number, counted from the root.
fn node(value: &mut Value, number: usize) -> &mut Value {
    if number == 0 {
        return value;
    }
    let mut left = number - 1;
    let inner: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(members) => members.values_mut().collect(),
        _ => unreachable!("a scalar has no nodes inside"),
    };
    for inner in inner {
        let size = nodes(inner);
        if left < size {
            return node(inner, left);
        }
        left -= size;
    }
    unreachable!("there are as many nodes as counted")
}

fn change(root: &mut Value, elsewhere: &Value, random: &mut Random) {
    let mut other = if random.below(2) == 0 { elsewhere.clone() } else { root.clone() };
    let number = random.below(nodes(&other));
    let other = node(&mut other, number).clone();
    let number = random.below(nodes(root));
    let place = node(root, number);
    match random.below(8) {
        0 => *place = other,
        1 => *place = serde_json::from_str(random.of(VALUES)).unwrap_or_default(),
        2 => *place = random.of(&WORDS).into(),
        _ => inside(place, other, random),
    }
}

fn inside(place: &mut Value, other: Value, random: &mut Random) {
    match place {
        Value::Object(members) => change_members(members, other, random),
        Value::Array(items) if items.is_empty() => items.push(other),
        Value::Array(items) => {
            let (at, with) = (random.below(items.len()), random.below(items.len()));
            match random.below(5) {
                0 => _ = items.remove(at),
                1 => items.swap(at, with),
                2 => items.insert(at, items[with].clone()),
                3 => items[at] = other,
                _ => items.insert(at, other),
            }
        }
        Value::String(text) => change_text(text, random),
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            let steps = [number.wrapping_add(1), number.wrapping_sub(1), -(number % 1_000), number.wrapping_mul(10), 0];
            *place = steps[random.below(steps.len())].into();
        }
        Value::Bool(value) => *value = !*value,
        Value::Null => *place = other,
    }
}

fn change_members(members: &mut Map<String, Value>, other: Value, random: &mut Random) {
    let keys: Vec<_> = members.keys().cloned().collect();
    let key = |random: &mut Random| {
        keys.get(random.below(keys.len())).cloned().unwrap_or_else(|| random.of(&WORDS).to_owned())
    };
    match random.below(5) {
        0 => _ = members.remove(&key(random)),
        1 => {
            let value = members.remove(&key(random)).unwrap_or_default();
            members.insert(random.of(&WORDS).to_owned(), value);
        }
        2 => {
            let (one, two) = (key(random), key(random));
            let value = members.get(&one).cloned().unwrap_or_default();
            members.insert(two, value);
        }
        3 => _ = members.insert(key(random), other),
        _ => _ = members.insert(random.of(&WORDS).to_owned(), other),
    }
}

/// Changes a text: if it is a payload, what is in it.
fn change_text(text: &mut String, random: &mut Random) {
    if let Some(changed) = change_payload(text.as_bytes(), random) {
        *text = changed;
        return;
    }
    let at = (0..=text.len()).rev().filter(|at| text.is_char_boundary(*at)).nth(random.below(text.len() + 1));
    let at = at.unwrap_or_default();
    match random.below(4) {
        0 => text.truncate(at),
        1 => text.insert_str(at, random.of(&WORDS)),
        2 => *text = random.of(&WORDS).to_owned(),
        _ => text.insert(
            at,
            *random.of(&[&'a', &'1', &'\n', &'-', &'/', &':', &'*', &'.', &'\u{7f}', &'K', &' ', &'\u{212a}']),
        ),
    }
}

fn change_payload(text: &[u8], random: &mut Random) -> Option<String> {
    let inner = STANDARD.decode(text).ok().filter(|inner| inner.len() > 8)?;
    if let Some(json) = inflated(&inner) {
        return Some(STANDARD.encode(deflated(&mutated(json.as_bytes(), random)?)));
    }
    if inner.starts_with(b"{") || inner.starts_with(b"[") {
        return Some(STANDARD.encode(mutated(&inner, random)?));
    }
    change_payload(&inner, random).map(|changed| STANDARD.encode(changed))
}

fn inflated(gzip: &[u8]) -> Option<String> {
    let mut text = String::new();
    gzip.starts_with(&[0x1f, 0x8b])
        .then(|| GzDecoder::new(gzip).take(MAX_INFLATED).read_to_string(&mut text).ok())??;
    Some(text)
}

fn deflated(text: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text).and_then(|()| gzip.finish()).unwrap_or_default()
}

/// Writes a value, now and then with its members in another order, or with white space.
fn write(value: &Value, random: &mut Random, out: &mut String) {
    let pad = |random: &mut Random, out: &mut String| {
        if random.below(200) == 0 {
            out.push(' ');
        }
    };
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                pad(random, out);
                write(item, random, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            let mut members: Vec<_> = members.iter().collect();
            if random.below(8) == 0 {
                let turn = random.below(members.len());
                members.rotate_left(turn);
            }
            for (index, (name, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                pad(random, out);
                write(member, random, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}
