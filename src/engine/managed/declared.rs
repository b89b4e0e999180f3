//! What somebody declares of an object, as a tree.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::semantics;

/// What is declared of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Declared<'d> {
    /// All of it; with the declared value where that is known.
    Leaf(Option<Cow<'d, Value>>),
    /// Some members of an object.
    Fields(BTreeMap<Cow<'d, str>, Declared<'d>>),
    /// Some items of a list whose order does not matter.
    Items(Vec<(ItemKey, Declared<'d>)>),
    /// What a part of a document says of it, which is one of the others; told where a write differs there.
    Document(DocumentPart<'d>),
}

/// What an item of a list is known by.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemKey {
    /// The values of some of its members, sorted by name.
    Members(Vec<(String, Value)>),
    /// Itself, in a set.
    Value(Value),
    /// Where it stands.
    Index(usize),
}

impl<'d> Declared<'d> {
    /// Nothing.
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

    /// What is declared of a member.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Cow<'_, Self>> {
        match self {
            Self::Fields(fields) => fields.get(name).map(Cow::Borrowed),
            Self::Document(part) => part.field(name).map(Self::Document).map(Cow::Owned),
            Self::Leaf(_) | Self::Items(_) => None,
        }
    }

    /// The names of the members that something is declared of.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::Fields(fields) => fields.keys().map(AsRef::as_ref).collect(),
            Self::Document(part) => part.names(),
            Self::Leaf(_) | Self::Items(_) => Vec::new(),
        }
    }
}

impl ItemKey {
    /// `web`, `80/TCP`; nothing for a place.
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
    /// The field that it is the value of.
    pub(super) name: &'d str,
    pub(super) value: &'d Value,
    /// What is known of lists by the names of their fields.
    pub(super) lists: &'static [(&'static str, &'static [&'static str])],
    /// What the object's own account of its fields says of this part.
    pub(super) written: Option<&'d Declared<'d>>,
}

impl<'d> DocumentPart<'d> {
    /// Whether it declares members.
    pub(super) fn is_object(&self) -> bool {
        self.value.is_object()
    }

    /// What it says of a member; nothing where it says null.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        let (name, value) = self.value.as_object()?.get_key_value(name)?;
        let written = inner(self.written, name);
        (!value.is_null()).then_some(Self { name, value, written, ..*self })
    }

    /// The members that it says something of.
    pub(super) fn names(&self) -> Vec<&'d str> {
        self.value.as_object().into_iter().flat_map(|members| members.keys()).map(String::as_str).collect()
    }

    /// What a value that is no object declares: a null nothing.
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
        let keyed = items.iter().map(|item| {
            let key = by.key(item)?;
            let written = known.iter().find(|(known, _)| *known == key).or(known.first()).map(|(_, written)| written);
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

/// What an account says of a member. An account holds no parts of documents.
pub(super) fn inner<'d>(written: Option<&'d Declared<'d>>, name: &str) -> Option<&'d Declared<'d>> {
    match written {
        Some(Declared::Fields(fields)) => fields.get(name),
        _ => None,
    }
}

/// How the items of a list are told apart.
enum KeyedBy<'n> {
    Members(Vec<&'n str>),
    Value,
}

impl KeyedBy<'_> {
    /// The key of an item; `None` for one that has none.
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
