//! The meaning of a scalar: go-yaml's `resolve.go`.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::number;
use super::timestamp::is_timestamp;

const NULL: &str = "tag:yaml.org,2002:null";
const BOOL: &str = "tag:yaml.org,2002:bool";
const STR: &str = "tag:yaml.org,2002:str";
const INT: &str = "tag:yaml.org,2002:int";
const FLOAT: &str = "tag:yaml.org,2002:float";
const TIMESTAMP: &str = "tag:yaml.org,2002:timestamp";
const BINARY: &str = "tag:yaml.org,2002:binary";
const MERGE: &str = "tag:yaml.org,2002:merge";

/// A scalar as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scalar<'t> {
    text: Cow<'t, str>,
    tag: Option<String>,
    /// Whether the text decides the type: it has neither quotes nor a tag.
    is_implicit: bool,
}

/// The value of a scalar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Resolved<'t> {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that only fits without a sign.
    Uint(u64),
    Float(f64),
    Text(Cow<'t, str>),
}

impl<'t> Scalar<'t> {
    pub(super) fn new(text: Cow<'t, str>, tag: Option<String>, is_plain: bool) -> Self {
        let is_implicit = if tag.is_none() { is_plain } else { tag.as_deref() == Some("!") };
        Self { text, tag, is_implicit }
    }

    /// The length of the text, in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether the scalar is the key of values that are merged into the mapping.
    pub(super) fn is_merge_key(&self) -> bool {
        self.text == "<<" && (self.is_implicit || self.tag.as_deref() == Some(MERGE))
    }

    /// The value; `None` if it does not match the tag.
    pub(super) fn resolve(self) -> Option<Resolved<'t>> {
        let Self { text, tag, is_implicit } = self;
        match tag.as_deref() {
            None if !is_implicit => Some(Resolved::Text(text)),
            None => Some(resolve_plain(text)),
            Some(STR) => Some(Resolved::Text(text)),
            Some(BINARY) => decoded(&text).map(Resolved::Text),
            Some(TIMESTAMP) => is_timestamp(&text).then_some(Resolved::Text(text)),
            Some(tag @ (NULL | BOOL | INT | FLOAT)) => match (tag, resolve_plain(text)) {
                (NULL, Resolved::Null) => Some(Resolved::Null),
                (BOOL, Resolved::Bool(value)) => Some(Resolved::Bool(value)),
                (INT, value @ (Resolved::Int(_) | Resolved::Uint(_))) => Some(value),
                (FLOAT, Resolved::Int(value)) => Some(Resolved::Float(value as f64)),
                (FLOAT, value @ Resolved::Float(_)) => Some(value),
                _ => None,
            },
            Some(_) => Some(Resolved::Text(text)),
        }
    }
}

/// The value of a text without quotes.
fn resolve_plain(text: Cow<'_, str>) -> Resolved<'_> {
    match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => Resolved::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Resolved::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Resolved::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Resolved::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Resolved::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Resolved::Float(f64::NEG_INFINITY),
        _ => number::parse(&text).unwrap_or(Resolved::Text(text)),
    }
}

/// The text of a `!!binary`. Like Go's JSON, it has a replacement character for every byte that is not UTF-8.
fn decoded(text: &str) -> Option<Cow<'static, str>> {
    let text: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
    let bytes = STANDARD.decode(text).ok()?;
    let mut decoded = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Some(Cow::Owned(decoded))
}
