//! Matches the items of two lists by declared keys. A hash map finds the items: a list of thousands is not searched for
//! each key.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::declared::Declared;
use super::item_key::{ItemKey, KeyShape};
use super::semantics;
use crate::effort::{Effort, OverBudget};
use crate::json::cursor::{self, Member};

/// The steps to find the key of an item, and to look it up.
const KEY_STEPS: u64 = 800;

/// An item of a list. `members` is empty if the item is not an object.
pub(super) struct ListItem<'a> {
    pub(super) index: usize,
    pub(super) value: &'a str,
    members: Vec<Member<'a>>,
}

impl<'a> ListItem<'a> {
    pub(super) fn new(index: usize, value: &'a str) -> Self {
        Self { index, value, members: cursor::members(value).unwrap_or_default() }
    }
}

/// An item before and after.
pub(super) type Pair<'i, 'a> = (Option<&'i ListItem<'a>>, Option<&'i ListItem<'a>>);

/// The items of each key, before and after. If a key is declared several times, its items are assigned in order, and
/// the last of these declarations gets the rest.
///
/// # Errors
/// It is more work than the review has left.
pub(super) fn matched<'i, 'a>(
    keys: &[(ItemKey, Declared<'_>)],
    [before, after]: [&'i [ListItem<'a>]; 2],
    effort: &Effort,
) -> Result<Vec<Vec<Pair<'i, 'a>>>, OverBudget> {
    let mut shapes: HashMap<KeyShape<'_>, KeyedItems<'i, 'a>> = HashMap::new();
    let mut keyed = Vec::with_capacity(keys.len());
    effort.take(keys.len() as u64 * KEY_STEPS)?;
    for (key, _) in keys {
        let shape = KeyShape::of(key);
        if !shapes.contains_key(&shape) {
            // Usually one shape serves the entire list.
            effort.take((before.len() + after.len()) as u64 * KEY_STEPS)?;
            shapes.insert(
                shape.clone(),
                KeyedItems { before: by_key(&shape, before), after: by_key(&shape, after), keys: HashMap::new() },
            );
        }
        let identity = identity(key);
        if let Some(items) = shapes.get_mut(&shape) {
            *items.keys.entry(identity.clone()).or_default() += 1;
        }
        keyed.push((shape, identity));
    }
    Ok(keyed
        .into_iter()
        .map(|(shape, identity)| shapes.get_mut(&shape).map(|items| items.take(&identity)).unwrap_or_default())
        .collect())
}

/// Whether a key is declared several times. Only their order distinguishes the items of such a key.
pub(super) fn has_repeated_keys(keys: &[(ItemKey, Declared<'_>)]) -> bool {
    let mut seen = HashSet::with_capacity(keys.len());
    !keys.iter().all(|(key, _)| seen.insert((KeyShape::of(key), identity(key))))
}

/// The items of a list by key.
type ItemsByKey<'i, 'a> = HashMap<Vec<String>, VecDeque<&'i ListItem<'a>>>;

/// The items of both lists by keys of one shape.
struct KeyedItems<'i, 'a> {
    before: ItemsByKey<'i, 'a>,
    after: ItemsByKey<'i, 'a>,
    /// How often each key is still declared.
    keys: HashMap<Vec<String>, usize>,
}

impl<'i, 'a> KeyedItems<'i, 'a> {
    fn take(&mut self, identity: &[String]) -> Vec<Pair<'i, 'a>> {
        let left = self.keys.get_mut(identity).map_or(0, |left| {
            *left = left.saturating_sub(1);
            *left
        });
        if left > 0 {
            self.next_pair(identity).into_iter().collect()
        } else {
            std::iter::from_fn(|| self.next_pair(identity)).collect()
        }
    }

    fn next_pair(&mut self, identity: &[String]) -> Option<Pair<'i, 'a>> {
        let pair = (pop(&mut self.before, identity), pop(&mut self.after, identity));
        Some(pair).filter(|(old, new)| old.is_some() || new.is_some())
    }
}

fn pop<'i, 'a>(items: &mut ItemsByKey<'i, 'a>, identity: &[String]) -> Option<&'i ListItem<'a>> {
    items.get_mut(identity)?.pop_front()
}

fn identity(key: &ItemKey) -> Vec<String> {
    match key {
        ItemKey::Members(members) => members.iter().map(|(_, value)| semantics::identity(value)).collect(),
        ItemKey::Value(value) => vec![semantics::identity(value)],
        ItemKey::Index(index) => vec![index.to_string()],
    }
}

fn by_key<'i, 'a>(shape: &KeyShape<'_>, items: &'i [ListItem<'a>]) -> ItemsByKey<'i, 'a> {
    let mut by_key = ItemsByKey::new();
    for item in items {
        if let Some(key) = key_of(shape, item) {
            by_key.entry(key).or_default().push_back(item);
        }
    }
    by_key
}

/// The key of an item; `None` if it lacks a member.
fn key_of(shape: &KeyShape<'_>, item: &ListItem<'_>) -> Option<Vec<String>> {
    match shape {
        KeyShape::Index => Some(vec![item.index.to_string()]),
        KeyShape::Value => Some(vec![identity_of(item.value)?]),
        KeyShape::Members(names) => {
            let values = names.iter().map(|name| match item.members.iter().find(|(key, _)| key == name) {
                Some((_, text)) => identity_of(text),
                None => semantics::default_of(name).map(str::to_owned),
            });
            values.collect()
        }
    }
}

/// The identity of a JSON text; `None` if the text cannot be parsed.
fn identity_of(text: &str) -> Option<String> {
    serde_json::from_str::<Value>(text).ok().map(|value| semantics::identity(&value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_key_and_each_item_costs_the_same() {
        let key = |name: &str| (ItemKey::Members(vec![("name".to_owned(), json!(name))]), Declared::nothing());
        let keys = [key("a"), key("b"), key("c")];
        let items: Vec<_> = (0..5).map(|index| ListItem::new(index, r#"{"name":"a"}"#)).collect();
        let effort = Effort::of(1_000_000);
        assert!(matched(&keys, [&items[..2], &items], &effort).is_ok());
        assert_eq!(1_000_000 - effort.left(), (3 + 2 + 5) * KEY_STEPS);
        assert!(matched(&keys, [&items, &items], &Effort::of(KEY_STEPS)).is_err());
    }
}
