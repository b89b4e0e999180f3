//! The declared part of an object, as a tree.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::semantics;

/// The declared part of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Declared<'d> {
    /// The whole value; with the declared value if that is known.
    Leaf(Option<Cow<'d, Value>>),
    /// Some members of an object.
    Fields(BTreeMap<Cow<'d, str>, Declared<'d>>),
    /// Some items of a list whose order does not matter.
    Items(Vec<(ItemKey, Declared<'d>)>),
    /// The declaration of a part of a document. It becomes one of the other variants only if a write differs there.
    Document(DocumentPart<'d>),
}

/// The identity of an item in a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ItemKey {
    /// The values of some members, sorted by name.
    Members(Vec<(String, Value)>),
    /// The item itself, in a set.
    Value(Value),
    /// The index.
    Index(usize),
}

impl<'d> Declared<'d> {
    /// An empty declaration.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Fields(BTreeMap::new())
    }

    /// The declaration of one field alone.
    #[must_use]
    pub fn only(path: impl DoubleEndedIterator<Item = &'d str>, value: Option<Value>) -> Self {
        let leaf = Self::Leaf(value.map(Cow::Owned));
        path.rev().fold(leaf, |inner, field| Self::Fields(BTreeMap::from([(Cow::Borrowed(field), inner)])))
    }

    /// The declared part of a member.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Cow<'_, Self>> {
        match self {
            Self::Fields(fields) => fields.get(name).map(Cow::Borrowed),
            Self::Document(part) => part.field(name).map(Self::Document).map(Cow::Owned),
            Self::Leaf(_) | Self::Items(_) => None,
        }
    }

    /// The names of the members with a declared part.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::Fields(fields) => fields.keys().map(AsRef::as_ref).collect(),
            Self::Document(part) => part.names(),
            Self::Leaf(_) | Self::Items(_) => Vec::new(),
        }
    }
}

impl ItemKey {
    /// `web`, `80/TCP`; `None` for an index.
    pub(super) fn display(&self) -> Option<String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match self {
            Self::Index(_) => None,
            Self::Value(value) => Some(text(value)),
            Self::Members(members) => Some(members.iter().map(|(_, value)| text(value)).collect::<Vec<_>>().join("/")),
        }
    }
}

/// A part of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DocumentPart<'d> {
    /// The name of the field with this value.
    pub(super) name: &'d str,
    pub(super) value: &'d Value,
    /// The keys of lists, by the names of their fields.
    pub(super) lists: &'static [(&'static str, &'static [&'static str])],
    /// The part of `managedFields` for this value.
    pub(super) written: Option<&'d Declared<'d>>,
}

impl<'d> DocumentPart<'d> {
    pub(super) fn is_object(&self) -> bool {
        self.value.is_object()
    }

    /// The part for a member; `None` for a null.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        let (name, value) = self.value.as_object()?.get_key_value(name)?;
        let written = declared_member(self.written, name);
        (!value.is_null()).then_some(Self { name, value, written, ..*self })
    }

    pub(super) fn names(&self) -> Vec<&'d str> {
        self.value.as_object().into_iter().flat_map(|members| members.keys()).map(String::as_str).collect()
    }

    /// The declaration of a value that is not an object. A null declares nothing.
    pub(super) fn declared(&self) -> Declared<'d> {
        match self.value {
            Value::Null => Declared::nothing(),
            Value::Array(items) => self.list(items),
            scalar => Declared::Leaf(Some(Cow::Borrowed(scalar))),
        }
    }

    fn list(&self, items: &'d [Value]) -> Declared<'d> {
        let known: &[(ItemKey, Declared<'_>)] = match self.written {
            Some(Declared::Items(items)) => items,
            _ => &[],
        };
        let by_account = known.iter().find_map(|(key, _)| match key {
            ItemKey::Members(members) => {
                Some(KeyedBy::Members(members.iter().map(|(name, _)| name.as_str()).collect()))
            }
            ItemKey::Value(_) => Some(KeyedBy::Value),
            ItemKey::Index(_) => None,
        });
        let by_table = || {
            let listed = self.lists.iter().filter(|(list, _)| *list == self.name).map(|(_, keys)| *keys);
            let first = |keys: &&[&str]| items.iter().all(|item| item.get(keys[0]).is_some());
            listed.into_iter().find(first).map(|keys| KeyedBy::Members(keys.to_vec()))
        };
        let by_name = || (self.name == "finalizers").then_some(KeyedBy::Value);
        // An empty list declares no item.
        if items.is_empty() {
            return Declared::Items(Vec::new());
        }
        let whole = || Declared::Leaf(Some(Cow::Borrowed(self.value)));
        let Some(by) = by_account.or_else(by_table).or_else(by_name) else {
            return whole();
        };
        let written: HashMap<_, _> = known.iter().map(|(key, written)| (key, written)).collect();
        let keyed = items.iter().map(|item| {
            let key = by.key(item)?;
            let written = written.get(&key).copied().or(known.first().map(|(_, written)| written));
            let declared = match &key {
                ItemKey::Value(_) => Declared::Leaf(Some(Cow::Borrowed(item))),
                ItemKey::Members(_) | ItemKey::Index(_) => {
                    Declared::Document(Self { name: "", value: item, written, ..*self })
                }
            };
            Some((key, declared))
        });
        keyed.collect::<Option<Vec<_>>>().map_or_else(whole, Declared::Items)
    }
}

/// The part of `managedFields` for a member. It contains no parts of documents.
pub(super) fn declared_member<'d>(written: Option<&'d Declared<'d>>, name: &str) -> Option<&'d Declared<'d>> {
    match written {
        Some(Declared::Fields(fields)) => fields.get(name),
        _ => None,
    }
}

/// How the items of a list are identified.
enum KeyedBy<'n> {
    Members(Vec<&'n str>),
    Value,
}

impl KeyedBy<'_> {
    /// The key of an item; `None` if it has none.
    fn key(&self, item: &Value) -> Option<ItemKey> {
        match self {
            Self::Value => Some(ItemKey::Value(item.clone())),
            Self::Members(names) => {
                let member = |name: &&str| {
                    let value = item.get(name).filter(|value| !value.is_null()).cloned();
                    let value = value.or_else(|| semantics::default_of(name).map(Value::from));
                    value.map(|value| ((*name).to_owned(), value))
                };
                let mut members: Vec<_> = names.iter().filter_map(member).collect();
                members.sort_unstable_by(|one, other| one.0.cmp(&other.0));
                (!members.is_empty()).then_some(ItemKey::Members(members))
            }
        }
    }
}
