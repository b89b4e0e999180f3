//! The fields that a set of `managedFields` loses although their values stay.

use std::collections::HashMap;

use super::declared::Declared;
use super::delta::{Delta, between};
use super::item_key::ItemKey;
use super::list_items::{ListItem, matched};
use crate::effort::Effort;
use crate::json::cursor;

/// Whether a set of fields loses one whose value an edit keeps. The API server takes a field from a manager only with its value.
pub(super) fn loses_kept(
    before: Declared<'static>,
    after: &Declared<'static>,
    delta: Option<&Delta<'_>>,
    effort: &Effort,
) -> bool {
    let mut lost = missing(before, Some(after));
    if let Declared::Fields(fields) = &mut lost {
        // Deltas do not show it.
        fields.remove("status");
        if let Some(spec) = fields.get_mut("spec") {
            remove_allocated(spec);
        }
    }
    keeps_one(&lost, delta, effort)
}

/// Removes what the API server allocates for a Service: it puts the old value back where an update leaves it out, although the field has
/// then left its manager.
fn remove_allocated(fields: &mut Declared<'_>) {
    const ALLOCATED: [&str; 4] = ["clusterIP", "clusterIPs", "healthCheckNodePort", "nodePort"];
    match fields {
        Declared::Fields(fields) => {
            ALLOCATED.iter().for_each(|name| _ = fields.remove(*name));
            fields.get_mut("ports").into_iter().for_each(remove_allocated);
        }
        Declared::Items(items) => items.iter_mut().for_each(|(_, inner)| remove_allocated(inner)),
        Declared::Leaf(_) | Declared::Document(_) => {}
    }
}

/// The part of a set that another one lacks.
fn missing(before: Declared<'static>, after: Option<&Declared<'static>>) -> Declared<'static> {
    match (before, after) {
        (_, Some(Declared::Leaf(_))) => Declared::nothing(),
        (Declared::Fields(fields), Some(Declared::Fields(kept))) => Declared::Fields(
            fields
                .into_iter()
                .map(|(name, inner)| {
                    let inner = missing(inner, kept.get(&name));
                    (name, inner)
                })
                .collect(),
        ),
        (Declared::Items(items), Some(Declared::Items(kept))) => {
            let kept: HashMap<&ItemKey, _> = kept.iter().map(|(key, inner)| (key, inner)).collect();
            let missing = items.into_iter().map(|(key, inner)| {
                let inner = missing(inner, kept.get(&key).copied());
                (key, inner)
            });
            Declared::Items(missing.collect())
        }
        (before, _) => before,
    }
}

/// Whether one of these fields has the same value after an edit. Lists that cannot be compared with the remaining steps count as kept.
fn keeps_one(fields: &Declared<'_>, delta: Option<&Delta<'_>>, effort: &Effort) -> bool {
    if is_empty(fields) {
        return false;
    }
    match (fields, delta) {
        (_, None) => true,
        (Declared::Fields(fields), Some(Delta::Members(differing))) => {
            let differing: HashMap<_, _> = differing.iter().map(|(name, inner)| (name.as_ref(), inner)).collect();
            fields.iter().any(|(name, inner)| keeps_one(inner, differing.get(name.as_ref()).copied(), effort))
        }
        (Declared::Fields(fields), Some(Delta::Value { old: Some(old), new: Some(new) })) => {
            let members = |text| -> HashMap<_, _> { cursor::members(text).unwrap_or_default().into_iter().collect() };
            let (old, new) = (members(old), members(new));
            let kept = fields.iter().filter_map(|(name, inner)| {
                Some((inner, between(Some(*old.get(name.as_ref())?), Some(*new.get(name.as_ref())?))))
            });
            kept.into_iter().any(|(inner, delta)| keeps_one(inner, delta.as_ref(), effort))
        }
        (Declared::Items(items), Some(delta)) => {
            let [old, new] = delta.sides().map(|side| side.and_then(cursor::items).unwrap_or_default());
            let listed = |items: Vec<_>| -> Vec<_> {
                items.into_iter().enumerate().map(|(index, item)| ListItem::new(index, item)).collect()
            };
            let (old, new) = (listed(old), listed(new));
            let Ok(matches) = matched(items, [&old, &new], effort) else { return true };
            items.iter().zip(matches).any(|((_, inner), pairs)| {
                pairs.into_iter().any(|(old, new)| {
                    let (Some(old), Some(new)) = (old, new) else { return false };
                    keeps_one(inner, between(Some(old.value), Some(new.value)).as_ref(), effort)
                })
            })
        }
        (_, Some(_)) => false,
    }
}

fn is_empty(fields: &Declared<'_>) -> bool {
    match fields {
        Declared::Leaf(_) | Declared::Document(_) => false,
        Declared::Fields(fields) => fields.values().all(is_empty),
        Declared::Items(items) => items.iter().all(|(_, inner)| is_empty(inner)),
    }
}
