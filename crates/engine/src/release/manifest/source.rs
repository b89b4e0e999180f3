//! The objects of a document in either notation, and the fields that name them.

use std::borrow::Cow;

use serde_json::Value;

use super::documents::parse_json;
use super::heading::Heading;
use crate::effort::Effort;
use crate::json::cursor::{Cursor, unquoted};
use crate::yaml::{Document, NodeId, Resolved};

/// Steps to find members of a JSON object of any length.
const JSON_MEMBERS_STEPS: u64 = 400;

/// A value in a document. Only its text or node is known.
#[derive(Clone, Copy)]
pub(super) enum Source<'m> {
    Json(&'m str, &'m Effort),
    Yaml(&'m Document<'m, 'm>, NodeId),
}

impl<'m> Source<'m> {
    pub(super) fn is_object(self) -> bool {
        match self {
            Self::Json(text, _) => text.starts_with('{'),
            Self::Yaml(document, id) => document.is_mapping(id),
        }
    }

    /// The heading of an object, and its member `items`.
    pub(super) fn heading(self) -> Result<(Heading<'m>, Option<Self>), String> {
        let [api_version, kind, metadata, items] = self.members(["apiVersion", "kind", "metadata", "items"])?;
        let [name, namespace] = match metadata {
            Some(metadata) => metadata.members(["name", "namespace"])?,
            None => [None, None],
        };
        let heading = Heading {
            api_version: text(api_version)?.unwrap_or_default(),
            kind: text(kind)?.unwrap_or_default(),
            name: text(name)?,
            namespace: text(namespace)?,
        };
        Ok((heading, items))
    }

    /// The members of an object with these names. If a name repeats, the last one counts. Other values have no members.
    fn members<const N: usize>(self, names: [&str; N]) -> Result<[Option<Self>; N], String> {
        let (text, effort) = match self {
            Self::Json(text, effort) => (text, effort),
            Self::Yaml(document, id) => {
                return Ok(document.members(id, names)?.map(|member| Some(Self::Yaml(document, member?))));
            }
        };
        effort.take(JSON_MEMBERS_STEPS)?;
        let (mut found, mut cursor) = ([None; N], Cursor::new(text));
        if cursor.expect_byte(b'{').is_none() {
            return Ok(found);
        }
        while let Some((key, value)) = cursor.next_member().ok_or("a key cannot be read")? {
            if let Some(at) = names.iter().position(|name| *name == key) {
                found[at] = Some(Self::Json(value, effort));
            }
        }
        Ok(found)
    }

    /// The items of a list; `None` for another value. Go takes a null for an empty list in an
    /// outermost object.
    pub(super) fn items(self, is_outermost: bool) -> Option<Box<dyn Iterator<Item = Self> + 'm>> {
        Some(match self {
            Self::Json("null", _) if is_outermost => Box::new(std::iter::empty()),
            Self::Json(text, effort) => {
                let mut items = Cursor::new(text);
                items.expect_byte(b'[')?;
                // A hostile list has millions of items, so they are not collected.
                Box::new(std::iter::from_fn(move || {
                    let item = if items.has_next(b']')? { items.skip_value()? } else { return None };
                    Some(Self::Json(item, effort))
                }))
            }
            Self::Yaml(document, id) => match document.items(id) {
                Some(items) => Box::new(items.iter().map(move |item| Self::Yaml(document, *item))),
                None if is_outermost && matches!(document.scalar(id), Ok(Some(Resolved::Null))) => {
                    Box::new(std::iter::empty())
                }
                None => return None,
            },
        })
    }

    /// Parses the value.
    ///
    /// # Errors
    /// The position of the problem, or it is more work than the review has left.
    pub(super) fn parse(self) -> Result<Value, String> {
        match self {
            Self::Json(text, effort) => parse_json(text, effort),
            Self::Yaml(document, id) => document.value(id),
        }
    }
}

/// The text of a value; `None` for a value of another type.
fn text(source: Option<Source<'_>>) -> Result<Option<Cow<'_, str>>, String> {
    match source {
        Some(Source::Json(text, _)) if text.starts_with('"') => {
            unquoted(text).map(Some).ok_or_else(|| "a name cannot be read".to_owned())
        }
        Some(Source::Yaml(document, id)) => Ok(match document.scalar(id)? {
            Some(Resolved::Text(text)) => Some(text),
            _ => None,
        }),
        _ => Ok(None),
    }
}
