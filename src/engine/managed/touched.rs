//! The declared fields that a write touches.

use std::collections::HashMap;

use serde_json::Value;

use super::declared::{Declared, ItemKey};
use super::delta::{Delta, DifferingItem, between};
use super::list_items::{ListItem, matched};
use super::semantics;
use crate::engine::effort::Effort;
use crate::engine::json::cursor::{self, Member};
use crate::engine::json::{FieldPath, Segment};

/// The most fields that are named. Nobody reads more.
const MAX_TOUCHED_FIELDS: usize = 100;

/// The most differences that are told apart inside one list.
const MAX_DIFFERENCES_PER_VALUE: usize = 1_000;

/// The declared fields that a write changes, at most 100, for any of several declarations. A field that is set to its
/// declared value, or to one that means the same, is not changed: this reverts a change.
///
/// A list whose items cannot be matched with the steps that are left counts as changed.
#[must_use]
pub(crate) fn touched(declarations: &[Declared<'_>], delta: &Delta<'_>, effort: &Effort) -> Vec<FieldPath> {
    let mut found = TouchedFields { paths: Vec::new(), effort };
    for declared in declarations {
        collect_touched(declared, delta, &FieldPath::default(), &mut found);
    }
    found.paths.sort_unstable();
    found.paths.dedup();
    found.paths
}

/// The fields that were found so far.
struct TouchedFields<'e> {
    paths: Vec<FieldPath>,
    effort: &'e Effort,
}

impl TouchedFields<'_> {
    fn push(&mut self, path: FieldPath) {
        self.paths.push(path);
    }

    /// Reports a removed value instead of the removed fields inside it.
    fn report_removal_as_a_whole(&mut self, gone: bool, before: usize, path: &FieldPath) {
        if gone && self.paths.len() > before {
            self.paths.truncate(before);
            self.paths.push(path.clone());
        }
    }
}

fn collect_touched(declared: &Declared<'_>, delta: &Delta<'_>, path: &FieldPath, found: &mut TouchedFields<'_>) {
    if found.paths.len() >= MAX_TOUCHED_FIELDS {
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
            compare_items(keys, [&before, &after], differing, path, found);
        }
        (Declared::Items(keys), Delta::Value { old, new }) => {
            let start = found.paths.len();
            let (before, after) = without_common_ends(items_of(*old), items_of(*new));
            compare_items(keys, [&before, &after], &[], path, found);
            found.report_removal_as_a_whole(new.is_none(), start, path);
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
            let start = found.paths.len();
            let (before, after): (HashMap<_, _>, HashMap<_, _>) =
                (members_of(*old).into_iter().collect(), members_of(*new).into_iter().collect());
            for name in declared.names() {
                if let Some(declared) = declared.field(name) {
                    let (old, new) = (before.get(name).copied(), after.get(name).copied());
                    compare(&declared, old, new, &path.field(name), found);
                }
            }
            found.report_removal_as_a_whole(new.is_none(), start, path);
        }
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

/// Compares the items of a list, wherever they are. If a key occurs more than once, its items are compared in their order.
fn compare_items(
    keys: &[(ItemKey, Declared<'_>)],
    [before, after]: [&[ListItem<'_>]; 2],
    differing: &[DifferingItem<'_>],
    path: &FieldPath,
    found: &mut TouchedFields<'_>,
) {
    let Ok(matches) = matched(keys, [before, after], found.effort) else {
        return found.push(path.clone());
    };
    let differing: HashMap<_, _> = differing.iter().map(|item| (item.index, &item.delta)).collect();
    for ((key, declared), pairs) in keys.iter().zip(matches) {
        for (old, new) in pairs {
            let Some(ListItem { index, .. }) = new.or(old) else {
                continue;
            };
            let path = path.then(Segment::Item { index: *index, key: key.display() });
            let known = differing.get(index).filter(|_| old.is_some_and(|old| old.index == *index));
            match (new, known) {
                (None, _) => found.push(path),
                (Some(_), Some(delta)) => collect_touched(declared, delta, &path, found),
                (Some(new), None) => compare(declared, old.map(|item| item.value), Some(new.value), &path, found),
            }
        }
    }
}

fn compare(
    declared: &Declared<'_>,
    old: Option<&str>,
    new: Option<&str>,
    path: &FieldPath,
    found: &mut TouchedFields<'_>,
) {
    if let Some(delta) = between(old, new, &mut MAX_DIFFERENCES_PER_VALUE.clone()) {
        collect_touched(declared, &delta, path, found);
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

fn items_of(value: Option<&str>) -> Vec<&str> {
    value.and_then(cursor::items).unwrap_or_default()
}
