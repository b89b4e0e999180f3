//! Which arrows are wrong, and which run in circles.

use std::collections::{BTreeMap, BTreeSet};

use super::house::{Arrow, House, Module};

/// Every arrow that does not point down, with the reason.
pub(super) fn upward(house: &House) -> Vec<String> {
    let wrong = house.arrows().into_iter().filter_map(|arrow| {
        let reason = objection(house, &house.room(&arrow.from), &house.room(&arrow.to))?;
        Some(format!("{}: {reason}", arrow.description(house)))
    });
    wrong.collect()
}

fn objection(house: &House, from: &str, to: &str) -> Option<String> {
    match (house.floor(from), house.floor(to)) {
        (None, _) => Some(format!("{from} is on no floor of the table")),
        (_, None) => Some(format!("{to} is on no floor of the table")),
        (Some(0), Some(0)) if from != to => Some("the ground imports nothing of ours".to_owned()),
        (Some(low), Some(high)) if low < high => Some(format!("{from} stands below {to}")),
        _ => None,
    }
}

/// Every circle of files that crosses rooms, or has more than two files, with its arrows.
pub(super) fn circles(house: &House) -> Vec<String> {
    let arrows = house.arrows();
    let mut reached: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
    for arrow in &arrows {
        reached.entry(&arrow.from).or_default();
    }
    let starts: Vec<_> = reached.keys().copied().collect();
    for start in starts {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(module) = open.pop() {
            open.extend(next(&arrows, module).filter(|to| seen.insert(*to)));
        }
        reached.insert(start, seen);
    }
    let is_in_circle = |a: &Module, b: &Module| {
        reached.get(a).is_some_and(|seen| seen.contains(b)) && reached.get(b).is_some_and(|seen| seen.contains(a))
    };
    let mut circles: BTreeSet<Vec<&Module>> = BTreeSet::new();
    for module in reached.keys() {
        let circle: Vec<_> = reached.keys().copied().filter(|other| is_in_circle(module, other)).collect();
        circles.insert(circle);
    }
    circles.iter().filter_map(|circle| forbidden(house, circle, &arrows)).collect()
}

fn next<'a>(arrows: &'a BTreeSet<Arrow>, from: &'a Module) -> impl Iterator<Item = &'a Module> {
    arrows.iter().filter(move |arrow| arrow.from == *from).map(|arrow| &arrow.to)
}

fn forbidden(house: &House, circle: &[&Module], arrows: &BTreeSet<Arrow>) -> Option<String> {
    let rooms: BTreeSet<_> = circle.iter().map(|module| house.part(module)).collect();
    let head = match (rooms.len(), circle.len()) {
        (0, _) | (1, ..3) => return None,
        (1, files) => format!("a circle of {files} files in {}:", rooms.first()?),
        _ => "a circle across rooms:".to_owned(),
    };
    let inside = arrows.iter().filter(|arrow| circle.contains(&&arrow.from) && circle.contains(&&arrow.to));
    Some(inside.fold(head, |text, arrow| format!("{text}\n  {}", arrow.description(house))))
}
