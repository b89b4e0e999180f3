//! The declared fields that a write touches.

use serde_json::Value;

use super::declared::{Declared, ItemKey};
use super::delta::{Delta, DifferingItem, between};
use super::semantics;
use crate::engine::json::cursor::{self, Member};
use crate::engine::json::{FieldPath, Segment};

/// The most fields that are named. Nobody reads more.
const MAX_TOUCHED_FIELDS: usize = 100;

/// The most differences that are told apart inside one list.
const MAX_DIFFERENCES_PER_VALUE: usize = 1_000;

/// The declared fields that a write changes, at most 100, for any of several declarations. A field that is set to its
/// declared value, or to one that means the same, is not changed: this reverts a change.
#[must_use]
pub(crate) fn touched(declarations: &[Declared<'_>], delta: &Delta<'_>) -> Vec<FieldPath> {
    let mut found = Vec::new();
    for declared in declarations {
        collect_touched(declared, delta, &FieldPath::default(), &mut found);
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn collect_touched(declared: &Declared<'_>, delta: &Delta<'_>, path: &FieldPath, found: &mut Vec<FieldPath>) {
    if found.len() >= MAX_TOUCHED_FIELDS {
        return;
    }
    match (declared, delta) {
        (Declared::Document(part), _) if !part.is_object() => collect_touched(&part.declared(), delta, path, found),
        // A change inside the value changes the value.
        (Declared::Leaf(_) | Declared::Items(_), Delta::Members(_)) => found.push(path.clone()),
        (Declared::Fields(_) | Declared::Document(_), Delta::Members(differing)) => {
            for (name, inner) in differing {
                if let Some(declared) = declared.field(name) {
                    collect_touched(&declared, inner, &path.field(name), found);
                }
            }
        }
        (Declared::Items(keys), Delta::Items { differing, .. }) => {
            let before = differing.iter().map(|item| ListItem::new(item.index, item.old)).collect::<Vec<_>>();
            let after = differing.iter().map(|item| ListItem::new(item.index, item.new)).collect::<Vec<_>>();
            for (key, declared) in keys {
                compare_item(key, declared, [&before, &after], differing, path, found);
            }
        }
        (Declared::Items(keys), Delta::Value { old, new }) => {
            let start = found.len();
            let (before, after) = without_common_ends(items_of(*old), items_of(*new));
            for (key, declared) in keys {
                compare_item(key, declared, [&before, &after], &[], path, found);
            }
            report_removal_as_a_whole(new.is_none(), start, path, found);
        }
        (Declared::Leaf(value), Delta::Items { old, new, .. }) => {
            if changes(value.as_deref(), Some(old), Some(new), path) {
                found.push(path.clone());
            }
        }
        (Declared::Leaf(value), Delta::Value { old, new }) => {
            if changes(value.as_deref(), *old, *new, path) {
                found.push(path.clone());
            }
        }
        // The live value is a list, the declared one an object.
        (Declared::Fields(_) | Declared::Document(_), Delta::Items { .. }) => {}
        (Declared::Fields(_) | Declared::Document(_), Delta::Value { old, new }) => {
            let start = found.len();
            let (before, after) = (members_of(*old), members_of(*new));
            for name in declared.names() {
                if let Some(declared) = declared.field(name) {
                    compare(&declared, member(&before, name), member(&after, name), &path.field(name), found);
                }
            }
            report_removal_as_a_whole(new.is_none(), start, path, found);
        }
    }
}

/// An item of a list. `members` is empty unless it is an object.
struct ListItem<'a> {
    index: usize,
    value: &'a str,
    members: Vec<Member<'a>>,
}

impl<'a> ListItem<'a> {
    fn new(index: usize, value: &'a str) -> Self {
        Self { index, value, members: members_of(Some(value)) }
    }
}

/// The items of two lists without equal items at both ends.
fn without_common_ends<'a>(old: Vec<&'a str>, new: Vec<&'a str>) -> (Vec<ListItem<'a>>, Vec<ListItem<'a>>) {
    let same = |(old, new): &(&&str, &&str)| old == new;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();
    let between = |list: Vec<&'a str>| {
        let end = list.len() - tail;
        list.into_iter().enumerate().take(end).skip(head).map(|(index, value)| ListItem::new(index, value)).collect()
    };
    (between(old), between(new))
}

/// Compares an item of a list at any index. If a key occurs more than once, the items are compared in their order.
fn compare_item(
    key: &ItemKey,
    declared: &Declared<'_>,
    [before, after]: [&[ListItem<'_>]; 2],
    differing: &[DifferingItem<'_>],
    path: &FieldPath,
    found: &mut Vec<FieldPath>,
) {
    let mut olds = before.iter().filter(|item| matches(key, item));
    let mut news = after.iter().filter(|item| matches(key, item));
    loop {
        let (old, new) = (olds.next(), news.next());
        let Some(ListItem { index, .. }) = new.or(old) else {
            return;
        };
        let path = path.then(Segment::Item { index: *index, key: key.display() });
        let known = differing.iter().find(|item| old.map(|old| old.index) == Some(item.index) && item.index == *index);
        match (new, known) {
            (None, _) => found.push(path),
            (Some(_), Some(item)) => collect_touched(declared, &item.delta, &path, found),
            (Some(new), None) => compare(declared, old.map(|item| item.value), Some(new.value), &path, found),
        }
    }
}

fn compare(
    declared: &Declared<'_>,
    old: Option<&str>,
    new: Option<&str>,
    path: &FieldPath,
    found: &mut Vec<FieldPath>,
) {
    if let Some(delta) = between(old, new, &mut MAX_DIFFERENCES_PER_VALUE.clone()) {
        collect_touched(declared, &delta, path, found);
    }
}

/// Reports a removed value instead of the removed fields inside it.
fn report_removal_as_a_whole(gone: bool, before: usize, path: &FieldPath, found: &mut Vec<FieldPath>) {
    if gone && found.len() > before {
        found.truncate(before);
        found.push(path.clone());
    }
}

/// Whether a declared value changes to an undeclared one.
fn changes(declared: Option<&Value>, old: Option<&str>, new: Option<&str>, path: &FieldPath) -> bool {
    match (declared, new) {
        // The manager owns the field, but it had no value.
        (None, _) if old.is_none() => false,
        (Some(declared), Some(new)) => !semantics::is_declared(declared, new, path),
        // The API server omits empty values.
        (Some(declared), None) => old.is_some() && !semantics::is_empty(declared),
        (None, None) => true,
        (None, Some(new)) => old.is_none_or(|old| !semantics::are_equal(old, new)),
    }
}

fn members_of(value: Option<&str>) -> Vec<Member<'_>> {
    value.and_then(cursor::members).unwrap_or_default()
}

fn member<'a>(members: &[Member<'a>], name: &str) -> Option<&'a str> {
    members.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
}

fn items_of(value: Option<&str>) -> Vec<&str> {
    value.and_then(cursor::items).unwrap_or_default()
}

fn matches(key: &ItemKey, item: &ListItem<'_>) -> bool {
    match key {
        ItemKey::Index(at) => *at == item.index,
        ItemKey::Value(value) => semantics::is_key(value, item.value),
        ItemKey::Members(wanted) => wanted.iter().all(|(name, value)| match member(&item.members, name) {
            Some(member) => semantics::is_key(value, member),
            None => semantics::default_of(name).is_some_and(|default| value == default),
        }),
    }
}
