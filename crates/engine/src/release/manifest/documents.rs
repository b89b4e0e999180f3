//! The documents of a manifest, as kubectl's resource builder finds them for Helm.
//!
//! Helm stores YAML documents with separators; OLM stores JSON documents without separators. A manifest may begin in
//! one form and continue in the other.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::effort::{Effort, MAP_BYTES, MEMBER_BYTES, NODE_BYTES};

/// The maximum length of a manifest that is parsed, in bytes. The largest legitimate manifest has about 5 MiB.
const MAX_MANIFEST_BYTES: usize = 8 << 20;

/// How far Go searches for the opening brace of JSON, in bytes.
const GUESSED_BYTES: usize = 4_096;

/// The maximum number of JSON documents that YAML may follow.
const MAX_JSON_BEFORE_YAML: usize = 1;

/// The steps to parse a byte of JSON into a tree.
const JSON_STEPS: u64 = 10;

/// The text of a manifest, with the line breaks that Go keeps.
pub(super) struct Manifest<'m> {
    text: Cow<'m, str>,
    is_json: bool,
}

/// A document, as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Document<'m> {
    Json(&'m str),
    Yaml(&'m str),
}

impl<'m> Manifest<'m> {
    /// # Errors
    /// The manifest is longer than 8 MiB.
    pub(super) fn of(text: &'m str, effort: &Effort) -> Result<Self, String> {
        if text.len() > MAX_MANIFEST_BYTES {
            effort.exceed();
            return Err(format!("it is longer than {} MiB", MAX_MANIFEST_BYTES >> 20));
        }
        let is_json = text[..text.floor_char_boundary(GUESSED_BYTES)].trim_start().starts_with('{');
        let mut text = Cow::Borrowed(text);
        if memmem::find(text.as_bytes(), b"\r\n").is_some() {
            text = Cow::Owned(text.replace("\r\n", "\n"));
        }
        if !text.ends_with('\n') {
            text.to_mut().push('\n');
        }
        Ok(Self { text, is_json })
    }

    pub(super) fn is_json(&self) -> bool {
        self.is_json
    }

    /// The length in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn documents(&self) -> Documents<'_> {
        Documents { rest: &self.text, json: self.is_json.then_some(0) }
    }
}

/// The documents of a manifest. There are none after an error.
pub(super) struct Documents<'m> {
    rest: &'m str,
    /// The number of JSON documents so far; `None` after the first document that is not JSON.
    json: Option<usize>,
}

impl<'m> Iterator for Documents<'m> {
    /// The error is the position or a description of the problem.
    type Item = Result<Document<'m>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(count) = self.json {
            let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<&RawValue>();
            match stream.next()? {
                Ok(document) => {
                    self.json = Some(count + 1);
                    self.rest = &self.rest[stream.byte_offset()..];
                    return Some(Ok(Document::Json(document.get())));
                }
                Err(error) if count > MAX_JSON_BEFORE_YAML => {
                    self.rest = "";
                    return Some(Err(position(&error)));
                }
                Err(_) => {
                    self.json = None;
                    self.rest = behind_white_space(self.rest);
                }
            }
        }
        while let Some(behind) = self.rest.strip_prefix("---") {
            let (line, rest) = behind.split_once('\n').unwrap_or((behind, ""));
            self.rest = rest;
            if !matches!(line.trim().as_bytes(), [] | [b'#', ..]) {
                self.rest = "";
                return Some(Err("a separator of documents has a text behind it".to_owned()));
            }
        }
        let end = memmem::find(self.rest.as_bytes(), b"\n---").map_or(self.rest.len(), |at| at + 1);
        let (document, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!document.is_empty()).then_some(Ok(Document::Yaml(document)))
    }
}

/// The text after its white space, or after the first line if that line has only white space.
fn behind_white_space(text: &str) -> &str {
    let end = text.char_indices().find(|(_, character)| *character == '\n' || !character.is_whitespace());
    match end {
        Some((at, '\n')) => &text[at + 1..],
        Some((at, _)) => &text[at..],
        None => "",
    }
}

/// Parses a JSON document.
///
/// # Errors
/// The position of the problem, or it is more work than the review has left.
pub(super) fn parse_json(document: &str, effort: &Effort) -> Result<Value, String> {
    effort.take_text(document, JSON_STEPS)?;
    effort.take_tree(tree_bytes(document))?;
    serde_json::from_str(document).map_err(|error| position(&error))
}

/// The maximum memory of a JSON document as a tree of values, in bytes. It is estimated from the characters in the text that
/// begin a value, because each of them may begin a map.
fn tree_bytes(document: &str) -> u64 {
    let values = document.bytes().map(|mark| match mark {
        b':' | b'{' => MAP_BYTES,
        b',' | b'[' => MEMBER_BYTES,
        b'\n' => NODE_BYTES,
        _ => 0,
    });
    2 * document.len() as u64 + values.sum::<u64>()
}

/// The position of an error in JSON, without the text there.
pub(super) fn position(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}
