//! Parses the nodes of a file into values. Every problem is collected, and none ends the parsing.

use serde_json::{Map, Value, json};

use super::nearest::did_you_mean;
use super::tree::{Content, KeyValue, Node, ONLY};
use crate::policy_files::problem::{Problems, Span};

/// A value that can be parsed from a node of a file. One description serves the parser, the schema and `explain`.
pub(super) trait FromNode: Sized {
    /// The JSON Schema of the accepted values.
    fn schema() -> Value;
    /// Returns `None` for a wrong node, whose problem is then reported.
    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self>;
}

/// The value of a key with its location.
#[derive(Debug)]
pub(in crate::policy_files) struct Spanned<T> {
    pub(in crate::policy_files) value: T,
    /// The location of the value.
    pub(in crate::policy_files) span: Span,
    /// The location of the key.
    pub(in crate::policy_files) key: Span,
    /// The value as written, on one line.
    pub(in crate::policy_files) text: String,
    /// The items of a list in the same form, each with its own location.
    pub(in crate::policy_files) items: Vec<(Span, String)>,
}

/// The value of a key. `node` is the value of the entry, or the list in that value.
pub(super) fn value<T: FromNode>(entry: &KeyValue, node: &Node, problems: &mut Problems<'_>) -> Option<Spanned<T>> {
    let value = T::read(node, problems)?;
    let items = match &node.content {
        Content::List(items) => items.iter().map(|item| (item.span, item.to_string())).collect(),
        _ => Vec::new(),
    };
    Some(Spanned { value, span: entry.value.span, key: entry.at, text: entry.value.to_string(), items })
}

/// A key that a mapping may have.
pub(in crate::policy_files) struct KeySpec {
    pub(in crate::policy_files) name: &'static str,
    pub(in crate::policy_files) about: &'static [&'static str],
    /// The default, as YAML.
    pub(in crate::policy_files) default: Option<fn() -> String>,
    required: bool,
    /// Whether the value is a list that adds to the shipped one, unless `only` replaces the shipped one.
    is_layered: bool,
    schema: fn() -> Value,
}

impl KeySpec {
    pub(super) const fn new(name: &'static str, about: &'static [&'static str], schema: fn() -> Value) -> Self {
        Self { name, about, default: None, required: false, is_layered: false, schema }
    }

    pub(super) const fn default(self, default: fn() -> String) -> Self {
        Self { default: Some(default), ..self }
    }

    pub(super) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    pub(super) const fn layered(self) -> Self {
        Self { is_layered: true, ..self }
    }

    pub(super) const fn is_layered(&self) -> bool {
        self.is_layered
    }

    /// The JSON Schema of the value.
    pub(in crate::policy_files) fn schema(&self) -> Value {
        let mut schema = (self.schema)();
        if self.is_layered {
            // Each of these keywords applies to only one of the two types.
            let list = schema.clone();
            schema["type"] = json!(["array", "object"]);
            schema["properties"] = json!({ONLY: list});
            schema["required"] = json!([ONLY]);
            schema["additionalProperties"] = false.into();
        }
        schema
    }

    /// The value of the key, or the list that replaces the shipped one.
    fn node<'n>(&self, entry: &'n KeyValue, problems: &mut Problems<'_>) -> Option<&'n Node> {
        let Content::Mapping(entries) = &entry.value.content else { return Some(&entry.value) };
        if !self.is_layered {
            return Some(&entry.value);
        }
        for other in entries.iter().filter(|other| other.key != ONLY) {
            problems.at(other.at, format!("unknown key `{}`; a list is replaced by {{only: [...]}}", other.key));
        }
        let only = entry.value.get(ONLY);
        if only.is_none() {
            problems.at(entry.value.span, "expected a list, or {only: [...]}");
        }
        only
    }

    /// The documentation of the key, on one line.
    pub(in crate::policy_files) fn description(&self) -> String {
        self.about.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    }
}

/// A key that is present in a file.
pub(in crate::policy_files) struct GivenKey<'f> {
    pub(in crate::policy_files) name: &'static str,
    pub(in crate::policy_files) key: Span,
    pub(in crate::policy_files) span: Span,
    pub(in crate::policy_files) text: &'f str,
    pub(in crate::policy_files) items: &'f [(Span, String)],
}

/// A mapping with known keys.
pub(in crate::policy_files) trait Mapping {
    /// Every key, in the order of the documentation.
    const KEYS: &'static [KeySpec];
    /// The keys that are present.
    fn given(&self) -> Vec<GivenKey<'_>>;
}

/// Defines a mapping. Each key is a line: doc comment, field, key, type, `= default`, `, required`.
macro_rules! keys {
    ($(#[doc = $about:literal])+ $name:ident {
        $($(#[doc = $doc:literal])+ $field:ident $key:literal: $type:ty $(= $default:expr)? $(, $required:ident)?;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Default)]
        pub(in super::super) struct $name {
            $(pub(in super::super) $field: Option<Spanned<$type>>,)+
        }

        impl Mapping for $name {
            const KEYS: &'static [KeySpec] = &[
                $(KeySpec::new($key, &[$($doc),+], <$type as FromNode>::schema)$(.default(|| Spelled::spelled(&$default)))?$(.$required())?,)+
            ];

            fn given(&self) -> Vec<GivenKey<'_>> {
                let given = [
                    $(self.$field.as_ref().map(|at| GivenKey {
                        name: $key,
                        key: at.key,
                        span: at.span,
                        text: &at.text,
                        items: &at.items,
                    }),)+
                ];
                given.into_iter().flatten().collect()
            }
        }

        impl FromNode for $name {
            fn schema() -> Value {
                object_schema(Self::KEYS)
            }

            fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
                let mut read = Self::default();
                let entries = entries(node, problems)?;
                for entry in entries {
                    let Some(node) = value_node(entry, Self::KEYS, problems) else { continue };
                    match entry.key.as_str() {
                        $($key => read.$field = value(entry, node, problems),)+
                        _ => {}
                    }
                }
                missing_keys(node, entries, Self::KEYS, problems);
                Some(read)
            }
        }
    };
}

pub(super) use keys;

/// The keys of a mapping with their values.
pub(super) fn entries<'n>(node: &'n Node, problems: &mut Problems<'_>) -> Option<&'n [KeyValue]> {
    match &node.content {
        Content::Null => Some(&[]),
        Content::Mapping(entries) => Some(entries),
        _ => {
            problems.at(node.span, format!("expected a mapping, got {}", node.description()));
            None
        }
    }
}

/// The node with the value of a key. Reports an unknown key.
pub(super) fn value_node<'n>(entry: &'n KeyValue, keys: &[KeySpec], problems: &mut Problems<'_>) -> Option<&'n Node> {
    match keys.iter().find(|key| key.name == entry.key) {
        Some(key) => key.node(entry, problems),
        None => {
            unknown_key(entry, keys, problems);
            None
        }
    }
}

fn unknown_key(entry: &KeyValue, keys: &[KeySpec], problems: &mut Problems<'_>) {
    let meant = did_you_mean(&entry.key, keys.iter().map(|key| key.name));
    problems.at(entry.at, format!("unknown key `{}`{meant}", entry.key));
}

pub(super) fn missing_keys(node: &Node, entries: &[KeyValue], keys: &[KeySpec], problems: &mut Problems<'_>) {
    let missing = keys.iter().filter(|key| key.required && !entries.iter().any(|entry| entry.key == key.name));
    for key in missing {
        problems.at(node.span, format!("the key `{}` is missing", key.name));
    }
}

/// The schema of the value of a key, with its description and default.
pub(super) fn described(key: &KeySpec) -> Value {
    let mut schema = key.schema();
    schema["description"] = key.description().into();
    if let Some(default) = key.default {
        schema["default"] = {
            let default = default();
            serde_json::from_str(&default).unwrap_or_else(|_| default.into())
        };
    }
    schema
}

/// The schema of a mapping with these keys and no others.
pub(super) fn object_schema<'k>(keys: impl IntoIterator<Item = &'k KeySpec>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for key in keys {
        properties.insert(key.name.to_owned(), described(key));
        if key.required {
            required.push(key.name);
        }
    }
    let mut schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}
