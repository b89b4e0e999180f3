//! The declared part of an object, as a tree.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::item_key::{ItemKey, KeyShape};
use super::schema::{ItemRule, Place};

/// The declared part of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Declared<'d> {
    /// The entire value, with the declared value if that is known.
    Leaf(Option<Cow<'d, Value>>),
    /// Some members of an object.
    Fields(BTreeMap<Cow<'d, str>, Declared<'d>>),
    /// Some items of a list whose order does not matter.
    Items(Vec<(ItemKey, Declared<'d>)>),
    /// The declaration of a part of a document. It becomes another variant only if a write differs there.
    Document(DocumentPart<'d>),
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

    /// The declaration without the fields of a document. The document has their values.
    #[must_use]
    pub fn outside(self, document: &Value) -> Self {
        let Self::Fields(fields) = self else {
            return self;
        };
        let left = fields.into_iter().filter_map(|(name, inner)| match (document.get(&*name), inner) {
            (None, inner) => Some((name, inner)),
            (Some(part @ Value::Object(_)), inner @ Self::Fields(_)) => Some((name, inner.outside(part))),
            (Some(_), _) => None,
        });
        Self::Fields(left.collect())
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

    /// Whether a field is declared, itself or as a part of a declared value. Does not look into documents.
    #[must_use]
    pub fn has(&self, path: &[&str]) -> bool {
        match (self, path.split_first()) {
            (Self::Leaf(_), _) | (_, None) => true,
            (Self::Fields(fields), Some((name, rest))) => fields.get(*name).is_some_and(|inner| inner.has(rest)),
            (Self::Items(_) | Self::Document(_), Some(_)) => false,
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

    /// How to compare a value with this declaration. An atomic map is compared `by_member` only if the live value is a
    /// map before and after.
    pub(super) fn view(&self, by_member: bool) -> View<'_> {
        match self {
            Self::Leaf(value) => View::Value(value.as_deref(), Place::UNKNOWN),
            Self::Fields(_) => View::Members,
            Self::Items(items) => View::Items(Cow::Borrowed(items), ItemRule::Unordered),
            Self::Document(part) => part.view(by_member),
        }
    }
}

/// How to compare a value with a declaration.
pub(super) enum View<'v> {
    /// Member by member.
    Members,
    /// Item by item.
    Items(Cow<'v, [(ItemKey, Declared<'v>)]>, ItemRule),
    /// With this value, if it is known.
    Value(Option<&'v Value>, Place<'v>),
}

/// A part of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DocumentPart<'d> {
    pub(super) place: Place<'d>,
    pub(super) value: &'d Value,
    /// Whether the part is inside an atomic map.
    pub(super) is_inside_atomic: bool,
    /// The part of `managedFields` for this value.
    pub(super) written: Option<&'d Declared<'d>>,
}

impl<'d> DocumentPart<'d> {
    pub(super) fn new(place: Place<'d>, value: &'d Value, written: Option<&'d Declared<'d>>) -> Self {
        Self { place, value, is_inside_atomic: false, written }
    }

    /// Whether the value is an atomic map: no part of it can change without changing the map. In `managedFields`, such
    /// a map of a custom resource has no members.
    fn is_atomic_map(&self) -> bool {
        let Value::Object(members) = self.value else {
            return false;
        };
        let written_as_one = matches!(self.written, Some(Declared::Leaf(_))) && !members.is_empty();
        self.is_inside_atomic || written_as_one || self.place.is_atomic_map()
    }

    /// The part for a member. A null declares nothing, and an atomic map declares the absence of all other members.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        let atomic = self.is_atomic_map();
        let (name, value) = match self.value.as_object()?.get_key_value(name) {
            Some((name, value)) => (name.as_str(), value),
            None => ("", &Value::Null),
        };
        let (place, written) = (self.place.field(name), declared_member(self.written, name));
        (atomic || !value.is_null()).then_some(Self { place, value, is_inside_atomic: atomic, written })
    }

    pub(super) fn names(&self) -> Vec<&'d str> {
        self.value.as_object().into_iter().flat_map(|members| members.keys()).map(String::as_str).collect()
    }

    /// Whether the part declares an empty map.
    pub(super) fn is_empty_map(&self) -> bool {
        self.value.as_object().is_some_and(serde_json::Map::is_empty)
    }

    fn view(&self, by_member: bool) -> View<'d> {
        let items = match self.value {
            Value::Object(_) if by_member || !self.is_atomic_map() => return View::Members,
            Value::Array(items) if !self.is_inside_atomic => self.keyed_items(items),
            _ => None,
        };
        match items {
            Some(items) => View::Items(Cow::Owned(items), self.place.item_rule()),
            None => View::Value(Some(self.value), self.place),
        }
    }

    /// The items of a list with their keys; `None` if the list is atomic.
    fn keyed_items(&self, items: &'d [Value]) -> Option<Vec<(ItemKey, Declared<'d>)>> {
        let known: &[(ItemKey, Declared<'_>)] = match self.written {
            Some(Declared::Items(items)) => items,
            _ => &[],
        };
        let by_account = known.iter().map(|(key, _)| KeyShape::of(key)).find(|shape| *shape != KeyShape::Index);
        let by = by_account.or_else(|| self.keyed_by_schema(items))?;
        let written: HashMap<_, _> = known.iter().map(|(key, written)| (key, written)).collect();
        let keyed = items.iter().map(|item| {
            let key = by.key(item)?;
            let written = written.get(&key).copied().or(known.first().map(|(_, written)| written));
            let declared = match &key {
                ItemKey::Value(_) => Declared::Leaf(Some(Cow::Borrowed(item))),
                ItemKey::Members(_) | ItemKey::Index(_) => Declared::Document(Self { value: item, written, ..*self }),
            };
            Some((key, declared))
        });
        keyed.collect()
    }

    /// The keys of a list by its schema; `None` if the list is atomic or an item lacks the first key.
    fn keyed_by_schema(&self, items: &[Value]) -> Option<KeyShape<'static>> {
        match self.place.list_keys()? {
            [] => Some(KeyShape::Value),
            keys => {
                Some(KeyShape::Members(keys.to_vec())).filter(|_| items.iter().all(|item| item.get(keys[0]).is_some()))
            }
        }
    }
}

/// The part of `managedFields` for a member. It contains no parts of documents.
pub(super) fn declared_member<'d>(written: Option<&'d Declared<'d>>, name: &str) -> Option<&'d Declared<'d>> {
    match written {
        Some(Declared::Fields(fields)) => fields.get(name),
        _ => None,
    }
}
