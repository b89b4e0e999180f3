//! The declared fields that a write touches.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::declared::{Declared, View};
use super::delta::{Delta, DifferingItem, between};
use super::item_key::ItemKey;
use super::list_items::{ListItem, Pair, has_repeated_keys, matched};
use super::schema::{BUILT_IN, ItemRule, Place};
use super::semantics;
use crate::effort::Effort;
use crate::json::cursor::{self, Member};
use crate::json::{FieldPath, Segment};

/// The maximum number of listed fields. Nobody reads more.
const MAX_TOUCHED_FIELDS: usize = 100;

/// Steps to decide whether a field is ignored.
const IGNORE_STEPS: u64 = 400;

/// Whether changes of the field at a path do not count.
pub type Ignored<'i> = &'i dyn Fn(&FieldPath) -> bool;

/// The declared fields that an edit changes, at most 100, by any of several declarations. Setting a field to its declared value,
/// or to an equivalent one, is not a change: it reverts one.
///
/// A list whose items cannot be matched with the remaining steps counts as changed.
#[must_use]
pub fn touched(
    declarations: &[Declared<'_>],
    delta: &Delta<'_>,
    ignored: Ignored<'_>,
    effort: &Effort,
) -> Vec<FieldPath> {
    all_touched(declarations, delta, TouchedFields { paths: Vec::new(), ignored, effort, old_is_live: true })
}

/// The declared fields in which a live object differs from its document, at most 100. `delta` is the difference from the document
/// to the object. It does not show defaults.
#[must_use]
pub fn drifted(declared: Declared<'_>, delta: &Delta<'_>, ignored: Ignored<'_>, effort: &Effort) -> Vec<FieldPath> {
    all_touched(&[declared], delta, TouchedFields { paths: Vec::new(), ignored, effort, old_is_live: false })
}

fn all_touched(declarations: &[Declared<'_>], delta: &Delta<'_>, mut found: TouchedFields<'_>) -> Vec<FieldPath> {
    for declared in declarations {
        collect_touched(declared, delta, &FieldPath::default(), &mut found);
    }
    found.paths.sort_unstable();
    found.paths.dedup();
    found.paths
}

/// The fields found so far.
struct TouchedFields<'e> {
    paths: Vec<FieldPath>,
    ignored: Ignored<'e>,
    effort: &'e Effort,
    /// Whether the old side is a live object. If so, it shows the defaults that the API server added and the values
    /// that it omits.
    old_is_live: bool,
}

impl TouchedFields<'_> {
    fn push(&mut self, path: &FieldPath) {
        if self.effort.take(IGNORE_STEPS).is_err() || !(self.ignored)(path) {
            self.paths.push(path.clone());
        }
    }

    /// Reports a removed value instead of the removed fields inside it.
    fn report_removal_once(&mut self, gone: bool, before: usize, path: &FieldPath) {
        if gone && self.paths.len() > before {
            self.paths.truncate(before);
            self.paths.push(path.clone());
        }
    }

    /// Whether a declared value changes to an undeclared one.
    fn changes(
        &self,
        path: &FieldPath,
        declared: Option<&Value>,
        [old, new]: [Option<&str>; 2],
        place: Place<'_>,
    ) -> bool {
        let live = old.filter(|_| self.old_is_live);
        match (declared, new) {
            // A document does not show the defaults of the API server.
            (Some(declared), Some(new)) if !self.old_is_live && semantics::is_default(path, declared, new) => false,
            // The manager owns the field, but the field had no value.
            (None, _) if old.is_none() => false,
            (Some(declared), Some(new)) => !semantics::is_declared(declared, live, new, place),
            (Some(declared), None) => semantics::is_removed(declared, live),
            (None, None) => true,
            (None, Some(new)) => old.is_none_or(|old| !semantics::are_equal(old, new)),
        }
    }
}

fn collect_touched(declared: &Declared<'_>, delta: &Delta<'_>, path: &FieldPath, found: &mut TouchedFields<'_>) {
    if found.paths.len() >= MAX_TOUCHED_FIELDS {
        return;
    }
    match (declared.view(matches!(delta, Delta::Members(_))), delta) {
        // A change inside the value changes the value.
        (View::Value(..) | View::Items(..), Delta::Members(_)) => found.push(path),
        (View::Members, Delta::Members(differing)) => {
            for (name, inner) in differing {
                if let Some(declared) = declared.field(name) {
                    collect_touched(&declared, inner, &path.field(name), found);
                }
            }
        }
        // The live value is a list, the declared one an object.
        (View::Members, Delta::Items { .. }) => {}
        (View::Members, Delta::Value { old, new }) => compare_members(declared, *old, *new, path, found),
        (View::Items(keys, ItemRule::Unordered), Delta::Items { differing, .. }) if !has_repeated_keys(&keys) => {
            let before = differing.iter().map(|item| ListItem::new(item.index, item.old)).collect::<Vec<_>>();
            let after = differing.iter().map(|item| ListItem::new(item.index, item.new)).collect::<Vec<_>>();
            compare_items(&keys, ItemRule::Unordered, [&before, &after], differing, path, found);
        }
        // The order of all items matters, not only of those that differ.
        (View::Items(keys, rule), delta) => {
            let (start, [old, new]) = (found.paths.len(), delta.sides());
            let (before, after) = compared_items(&keys, rule, old, new);
            compare_items(&keys, rule, [&before, &after], &[], path, found);
            found.report_removal_once(new.is_none(), start, path);
        }
        (View::Value(value, place), delta) => {
            if found.changes(path, value, delta.sides(), place) {
                found.push(path);
            }
        }
    }
}

/// Compares the declared members of two values. At least one of them is not an object, or they differ too much.
fn compare_members(
    declared: &Declared<'_>,
    old: Option<&str>,
    new: Option<&str>,
    path: &FieldPath,
    found: &mut TouchedFields<'_>,
) {
    let start = found.paths.len();
    let (before, after): (HashMap<_, _>, HashMap<_, _>) =
        (members_of(old).into_iter().collect(), members_of(new).into_iter().collect());
    for name in declared.names() {
        if let Some(declared) = declared.field(name) {
            let (old, new) = (before.get(name).copied(), after.get(name).copied());
            compare(&declared, old, new, &path.field(name), found);
        }
    }
    if let (Declared::Document(part), None) = (declared, new)
        && part.is_empty_map()
        && found.changes(path, Some(part.value), [old, new], part.place)
    {
        found.push(path);
    }
    found.report_removal_once(new.is_none(), start, path);
}

/// The items of two lists, without equal items at both ends unless a declared key repeats, or another item may have come before or
/// behind them.
fn compared_items<'a>(
    keys: &[(ItemKey, Declared<'_>)],
    rule: ItemRule,
    old: Option<&'a str>,
    new: Option<&'a str>,
) -> (Vec<ListItem<'a>>, Vec<ListItem<'a>>) {
    let (old, new) = (items_of(old), items_of(new));
    let all_count = rule == ItemRule::Ordered || has_repeated_keys(keys);
    let same = |(old, new): &(&&str, &&str)| !all_count && old == new;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();
    let between = |list: Vec<&'a str>| {
        let end = list.len() - tail;
        list.into_iter().enumerate().take(end).skip(head).map(|(index, value)| ListItem::new(index, value)).collect()
    };
    (between(old), between(new))
}

/// Compares the items of a list, regardless of their positions. If a key repeats, its items are compared in order.
fn compare_items(
    keys: &[(ItemKey, Declared<'_>)],
    rule: ItemRule,
    [before, after]: [&[ListItem<'_>]; 2],
    differing: &[DifferingItem<'_>],
    path: &FieldPath,
    found: &mut TouchedFields<'_>,
) {
    let Ok(matches) = matched(keys, [before, after], found.effort) else {
        return found.push(path);
    };
    let breaks_the_rule = match rule {
        ItemRule::Unordered => false,
        ItemRule::Ordered => is_reordered(&matches),
        ItemRule::Closed => found.old_is_live && has_additions(before, after, &matches),
    };
    if breaks_the_rule {
        found.push(path);
    }
    let differing: HashMap<_, _> = differing.iter().map(|item| (item.index, &item.delta)).collect();
    let place = place_of(path);
    for ((key, declared), pairs) in keys.iter().zip(matches) {
        for (old, new) in pairs {
            let Some(ListItem { index, .. }) = new.or(old) else {
                continue;
            };
            let key = key.display().filter(|_| key.is_name(place));
            let path = path.then(Segment::Item { index: *index, key });
            let known = differing.get(index).filter(|_| old.is_some_and(|old| old.index == *index));
            match (new, known) {
                (None, _) => found.push(&path),
                (Some(_), Some(delta)) => collect_touched(declared, delta, &path, found),
                (Some(new), None) => compare(declared, old.map(|item| item.value), Some(new.value), &path, found),
            }
        }
    }
}

/// The place of a list in the table of Kubernetes' own kinds. Custom resources use the same names for such lists.
fn place_of(path: &FieldPath) -> Place<'_> {
    let mut fields = path.fields().rev();
    let name = fields.next().unwrap_or_default();
    Place { schema: &BUILT_IN, parent: fields.next().unwrap_or_default(), name }
}

/// Whether the new items are neither in the declared order nor in the old one. `matches` are in the declared order.
fn is_reordered(matches: &[Vec<Pair<'_, '_>>]) -> bool {
    let mut kept: Vec<_> =
        matches.iter().flatten().filter_map(|(old, new)| Some((old.map(|old| old.index), (*new)?.index))).collect();
    if kept.is_sorted_by_key(|(_, new)| *new) {
        return false;
    }
    kept.sort_unstable_by_key(|(_, new)| *new);
    !kept.is_sorted_by_key(|(old, _)| *old)
}

/// Whether an undeclared item is new.
fn has_additions(before: &[ListItem<'_>], after: &[ListItem<'_>], matches: &[Vec<Pair<'_, '_>>]) -> bool {
    let declared: HashSet<_> = matches.iter().flatten().filter_map(|(_, new)| Some((*new)?.index)).collect();
    let before: HashSet<_> = before.iter().map(|item| item.value).collect();
    after.iter().any(|item| !declared.contains(&item.index) && !before.contains(item.value))
}

fn compare(
    declared: &Declared<'_>,
    old: Option<&str>,
    new: Option<&str>,
    path: &FieldPath,
    found: &mut TouchedFields<'_>,
) {
    if let Some(delta) = between(old, new) {
        collect_touched(declared, &delta, path, found);
    }
}

fn members_of(value: Option<&str>) -> Vec<Member<'_>> {
    value.and_then(cursor::members).unwrap_or_default()
}

fn items_of(value: Option<&str>) -> Vec<&str> {
    value.and_then(cursor::items).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_at_both_ends_are_not_compared() {
        let indexes = |keys: &[(ItemKey, Declared<'_>)]| {
            let (before, after) = compared_items(keys, ItemRule::Closed, Some("[1,2,3,4]"), Some("[1,9,9,3,4]"));
            [before, after].map(|items| items.iter().map(|item| item.index).collect::<Vec<_>>())
        };
        let key = || (ItemKey::Value(1.into()), Declared::Leaf(None));
        assert_eq!(indexes(&[key()]), [vec![1], vec![1, 2]]);
        assert_eq!(indexes(&[key(), key()]), [vec![0, 1, 2, 3], vec![0, 1, 2, 3, 4]]);
    }
}
