//! Parses the nodes of a file into values. Every problem is collected, and none ends the parsing.
//!
//! serde stops at the first error, so that a reader of its own describes each key: for the parser, the schema and `explain`.

use std::ops::Deref;

use serde_json::{Map, Value, json};

use super::nearest::did_you_mean;
use super::tree::{Content, KeyValue, Node, ONLY};
use crate::policy_files::problem::{Problems, Span};

/// What a node of a file may hold.
pub(in crate::policy_files) trait FromNode {
    /// The value of a correct node.
    type Output;
    /// The JSON Schema of the accepted values.
    fn schema() -> Value;
    /// Returns `None` for a wrong node, whose problem is then reported.
    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self::Output>;
}

/// A value that is written as one text.
pub(in crate::policy_files) trait FromText {
    /// The value of a correct text.
    type Output;
    /// The JSON Schema of the accepted texts.
    fn schema() -> Value {
        json!({"type": "string"})
    }
    /// # Errors
    /// What is wrong with the text.
    fn parse(text: &str) -> Result<Self::Output, String>;
}

impl<T: FromText> FromNode for T {
    type Output = T::Output;

    fn schema() -> Value {
        <T as FromText>::schema()
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<T::Output> {
        let Content::Scalar { text, .. } = &node.content else {
            problems.at(node.span, format!("expected one value, got {}", node.description()));
            return None;
        };
        T::parse(text).map_err(|message| problems.at(node.span, message)).ok()
    }
}

/// A key of a file; empty if the file lacks the key, or if its value is wrong.
#[derive(Debug)]
pub(in crate::policy_files) struct Key<T>(Option<Spanned<T>>);

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

impl<T> Default for Key<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> From<Option<Spanned<T>>> for Key<T> {
    fn from(at: Option<Spanned<T>>) -> Self {
        Self(at)
    }
}

impl<T> Deref for Key<T> {
    type Target = Option<Spanned<T>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> Key<T> {
    pub(in crate::policy_files) fn value(&self) -> Option<&T> {
        self.0.as_ref().map(|at| &at.value)
    }

    /// The value as written, on one line.
    pub(in crate::policy_files) fn text(&self) -> Option<&str> {
        self.0.as_ref().map(|at| at.text.as_str())
    }
}

impl<T> Key<Vec<T>> {
    /// The items of a list; empty without the key.
    pub(in crate::policy_files) fn items(&self) -> &[T] {
        self.value().map(Vec::as_slice).unwrap_or_default()
    }
}

/// The value of a key. `node` is the value of the entry, or the list in that value.
pub(super) fn value<T: FromNode>(
    entry: &KeyValue,
    node: &Node,
    problems: &mut Problems<'_>,
) -> Option<Spanned<T::Output>> {
    let value = T::read(node, problems)?;
    let items = node.items().iter().map(|item| (item.span, item.to_string())).collect();
    Some(Spanned { value, span: entry.value.span, key: entry.at, text: entry.value.to_string(), items })
}

/// A key that a mapping may have.
pub(in crate::policy_files) struct KeySpec {
    pub(in crate::policy_files) name: &'static str,
    pub(in crate::policy_files) about: &'static [&'static str],
    /// The default, as YAML.
    pub(in crate::policy_files) default: Option<fn() -> String>,
    pub(super) schema: fn() -> Value,
    pub(super) required: bool,
    /// Whether the value is a list that adds to the shipped one, unless `only` replaces the shipped one.
    pub(super) layered: bool,
}

impl KeySpec {
    /// A key without properties.
    pub(super) const ANY: Self =
        Self { name: "", about: &[], default: None, schema: || Value::Null, required: false, layered: false };

    /// The JSON Schema of the value.
    pub(in crate::policy_files) fn schema(&self) -> Value {
        let mut schema = (self.schema)();
        if self.layered {
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
        if !self.layered || !matches!(entry.value.content, Content::Mapping(_)) {
            return Some(&entry.value);
        }
        for other in entry.value.entries().iter().filter(|other| other.key != ONLY) {
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

/// Defines a mapping. Each key is a line: doc comment, field, key, type, then
/// - `= default`,
/// - or `=> AtLeast(field)`: the field of the policy that it sets, its default, and how a namespace may change it,
/// - and `, required` or `, layered`.
macro_rules! keys {
    ($(#[doc = $about:literal])+ $name:ident {
        $($(#[doc = $doc:literal])+ $field:ident $key:literal: $type:ty
            $(= $default:expr)? $(=> $limit:ident($($place:ident).+))? $(, $flag:ident)?;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Default)]
        pub(in super::super) struct $name {
            $(pub(in super::super) $field: Key<<$type as FromNode>::Output>,)+
        }

        impl Mapping for $name {
            const KEYS: &'static [KeySpec] = &[
                $(KeySpec {
                    name: $key,
                    about: &[$($doc),+],
                    schema: <$type as FromNode>::schema,
                    $(default: Some(|| Spelled::spelled(&$default)),)?
                    $(default: Some(|| Spelled::spelled(&Policy::default().$($place).+)),)?
                    $($flag: true,)?
                    ..KeySpec::ANY
                },)+
            ];

            const FIELDS: &'static [SetField<Self>] = &[
                $($(|file, policy, limits| limits.set($key, &file.$field, Limit::$limit, &mut policy.$($place).+),)?)+
            ];

            fn given(&self) -> Vec<(&'static str, Span)> {
                let given = [$(self.$field.as_ref().map(|at| ($key, at.key)),)+];
                given.into_iter().flatten().collect()
            }
        }

        impl FromNode for $name {
            type Output = Self;

            fn schema() -> Value {
                object_schema(Self::KEYS)
            }

            fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
                let mut read = Self::default();
                let entries = entries(node, problems)?;
                for entry in entries {
                    let Some(node) = value_node(entry, Self::KEYS, problems) else { continue };
                    match entry.key.as_str() {
                        $($key => read.$field = value::<$type>(entry, node, problems).into(),)+
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
    if matches!(node.content, Content::Null | Content::Mapping(_)) {
        return Some(node.entries());
    }
    problems.at(node.span, format!("expected a mapping, got {}", node.description()));
    None
}

/// The items of a list.
pub(super) fn items<'n>(node: &'n Node, problems: &mut Problems<'_>) -> Option<&'n [Node]> {
    if matches!(node.content, Content::Null | Content::List(_)) {
        return Some(node.items());
    }
    problems.at(node.span, format!("expected a list, got {}", node.description()));
    None
}

/// The node with the value of a key. Reports an unknown key.
pub(super) fn value_node<'n>(entry: &'n KeyValue, keys: &[KeySpec], problems: &mut Problems<'_>) -> Option<&'n Node> {
    let Some(key) = keys.iter().find(|key| key.name == entry.key) else {
        let meant = did_you_mean(&entry.key, keys.iter().map(|key| key.name));
        problems.at(entry.at, format!("unknown key `{}`{meant}", entry.key));
        return None;
    };
    key.node(entry, problems)
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
    if let Some(default) = key.default.map(|spell| spell()) {
        schema["default"] = serde_json::from_str(&default).unwrap_or_else(|_| default.into());
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
