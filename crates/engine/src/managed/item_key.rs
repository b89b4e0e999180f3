//! The keys of the items in a list.

use serde_json::Value;

use super::schema::Place;
use super::semantics;

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

impl ItemKey {
    /// Whether the key of an item is a name in the list at a place. Other keys, and the items of other sets, can be
    /// secrets.
    pub(super) fn is_name(&self, place: Place<'_>) -> bool {
        match self {
            Self::Members(members) => {
                let names = place.list_keys().unwrap_or_default();
                members.iter().all(|(name, _)| names.contains(&name.as_str()))
            }
            Self::Value(_) => place.is_finalizers(),
            Self::Index(_) => false,
        }
    }

    /// `web`, `80/TCP`; `None` for an index.
    pub(super) fn display(&self) -> Option<String> {
        match self {
            Self::Index(_) => None,
            Self::Value(value) => Some(unquoted(value)),
            Self::Members(members) => {
                Some(members.iter().map(|(_, value)| unquoted(value)).collect::<Vec<_>>().join("/"))
            }
        }
    }
}

fn unquoted(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What identifies an item of a list: the values of these members, the item itself, or its index.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum KeyShape<'k> {
    Members(Vec<&'k str>),
    Value,
    Index,
}

impl<'k> KeyShape<'k> {
    pub(super) fn of(key: &'k ItemKey) -> Self {
        match key {
            ItemKey::Members(members) => Self::Members(members.iter().map(|(name, _)| name.as_str()).collect()),
            ItemKey::Value(_) => Self::Value,
            ItemKey::Index(_) => Self::Index,
        }
    }

    /// The key of an item; `None` if it has none.
    pub(super) fn key(&self, item: &Value) -> Option<ItemKey> {
        match self {
            Self::Value => Some(ItemKey::Value(item.clone())),
            Self::Index => None,
            Self::Members(names) => {
                let members = names.iter().filter_map(|name| {
                    let value = item.get(name).filter(|value| !value.is_null()).cloned();
                    let value = value.or_else(|| semantics::default_of(name).map(Value::from));
                    value.map(|value| ((*name).to_owned(), value))
                });
                let mut members: Vec<_> = members.collect();
                members.sort_unstable_by(|one, other| one.0.cmp(&other.0));
                (!members.is_empty()).then_some(ItemKey::Members(members))
            }
        }
    }
}
