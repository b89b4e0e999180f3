//! What somebody declares of an object, as a tree, and which of it a write touches.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::delta::{Differing, between};
use super::{Delta, Part, semantics};
use crate::engine::json::cursor::{self, Member};
use crate::engine::json::{Path, Segment};

/// The declared fields that are named, at most: nobody reads more.
const MOST: usize = 100;

/// The differences told apart inside one list, at most.
const BUDGET: usize = 1_000;

/// What is declared of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Declared<'d> {
    /// All of it; with the declared value where that is known.
    Leaf(Option<Cow<'d, Value>>),
    /// Some members of an object.
    Fields(BTreeMap<Cow<'d, str>, Declared<'d>>),
    /// Some items of a list whose order does not matter.
    Items(Vec<(Key, Declared<'d>)>),
    /// What a part of a document says of it, which is one of the others; told where a write differs there.
    Document(Part<'d>),
}

/// What an item of a list is known by.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
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
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Fields(fields) => fields.keys().map(AsRef::as_ref).collect(),
            Self::Document(part) => part.names(),
            Self::Leaf(_) | Self::Items(_) => Vec::new(),
        }
    }
}

/// The declared fields that a write changes, at most 100, by any of several declarations. Setting a field to the value that
/// is declared for it, or to one that means the same, is no change: it undoes one.
#[must_use]
pub fn touched(declarations: &[Declared<'_>], delta: &Delta<'_>) -> Vec<Path> {
    let mut found = Vec::new();
    for declared in declarations {
        walk(declared, delta, &Path::default(), &mut found);
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn walk(declared: &Declared<'_>, delta: &Delta<'_>, path: &Path, found: &mut Vec<Path>) {
    if found.len() >= MOST {
        return;
    }
    match (declared, delta) {
        (Declared::Document(part), _) if !part.is_object() => walk(&part.told(), delta, path, found),
        // A part of it changes, so it does.
        (Declared::Leaf(_) | Declared::Items(_), Delta::Members(_)) => found.push(path.clone()),
        (Declared::Fields(_) | Declared::Document(_), Delta::Members(differing)) => {
            for (name, inner) in differing {
                if let Some(declared) = declared.field(name) {
                    walk(&declared, inner, &path.field(name), found);
                }
            }
        }
        (Declared::Items(keys), Delta::Items { differing, .. }) => {
            let before = differing.iter().map(|item| Item::new(item.index, item.old)).collect::<Vec<_>>();
            let after = differing.iter().map(|item| Item::new(item.index, item.new)).collect::<Vec<_>>();
            for (key, declared) in keys {
                item(key, declared, [&before, &after], differing, path, found);
            }
        }
        (Declared::Items(keys), Delta::Value { old, new }) => {
            let start = found.len();
            let (before, after) = unlike(items(*old), items(*new));
            for (key, declared) in keys {
                item(key, declared, [&before, &after], &[], path, found);
            }
            gone_as_a_whole(new.is_none(), start, path, found);
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
        // What is declared as an object is a list.
        (Declared::Fields(_) | Declared::Document(_), Delta::Items { .. }) => {}
        (Declared::Fields(_) | Declared::Document(_), Delta::Value { old, new }) => {
            let start = found.len();
            let (before, after) = (listed(*old), listed(*new));
            for name in declared.names() {
                if let Some(declared) = declared.field(name) {
                    compare(&declared, member(&before, name), member(&after, name), &path.field(name), found);
                }
            }
            gone_as_a_whole(new.is_none(), start, path, found);
        }
    }
}

/// An item of a list: where it stands, and its members where it is an object.
struct Item<'a> {
    index: usize,
    value: &'a str,
    members: Vec<Member<'a>>,
}

impl<'a> Item<'a> {
    fn new(index: usize, value: &'a str) -> Self {
        Self { index, value, members: listed(Some(value)) }
    }
}

/// The items of two lists without those that are the same at both ends of them.
fn unlike<'a>(old: Vec<&'a str>, new: Vec<&'a str>) -> (Vec<Item<'a>>, Vec<Item<'a>>) {
    let same = |(old, new): &(&&str, &&str)| old == new;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();
    let between = |list: Vec<&'a str>| {
        let end = list.len() - tail;
        list.into_iter().enumerate().take(end).skip(head).map(|(index, value)| Item::new(index, value)).collect()
    };
    (between(old), between(new))
}

/// Compares an item of a list, wherever it stands. A key that occurs more than once names them all, in their order.
fn item(
    key: &Key,
    declared: &Declared<'_>,
    [before, after]: [&[Item<'_>]; 2],
    differing: &[Differing<'_>],
    path: &Path,
    found: &mut Vec<Path>,
) {
    let mut olds = before.iter().filter(|item| key.matches(item));
    let mut news = after.iter().filter(|item| key.matches(item));
    loop {
        let (old, new) = (olds.next(), news.next());
        let Some(Item { index, .. }) = new.or(old) else {
            return;
        };
        let path = path.then(Segment::Item { index: *index, key: key.display() });
        let known = differing.iter().find(|item| old.map(|old| old.index) == Some(item.index) && item.index == *index);
        match (new, known) {
            (None, _) => found.push(path),
            (Some(_), Some(item)) => walk(declared, &item.delta, &path, found),
            (Some(new), None) => compare(declared, old.map(|item| item.value), Some(new.value), &path, found),
        }
    }
}

fn compare(declared: &Declared<'_>, old: Option<&str>, new: Option<&str>, path: &Path, found: &mut Vec<Path>) {
    if let Some(delta) = between(old, new, &mut BUDGET.clone()) {
        walk(declared, &delta, path, found);
    }
}

/// Names what went by the largest part that went.
fn gone_as_a_whole(gone: bool, before: usize, path: &Path, found: &mut Vec<Path>) {
    if gone && found.len() > before {
        found.truncate(before);
        found.push(path.clone());
    }
}

/// Whether a declared value changes to one that is not declared.
fn changes(declared: Option<&Value>, old: Option<&str>, new: Option<&str>, path: &Path) -> bool {
    match (declared, new) {
        // Owned, and there was nothing to own.
        (None, _) if old.is_none() => false,
        (Some(declared), Some(new)) => !semantics::same(declared, new, path),
        // The API server leaves out what is empty.
        (Some(declared), None) => old.is_some() && !semantics::is_empty(declared),
        (None, None) => true,
        (None, Some(new)) => old.is_none_or(|old| !semantics::equal(old, new)),
    }
}

fn listed(value: Option<&str>) -> Vec<Member<'_>> {
    value.and_then(cursor::members).unwrap_or_default()
}

fn member<'a>(members: &[Member<'a>], name: &str) -> Option<&'a str> {
    members.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
}

fn items(value: Option<&str>) -> Vec<&str> {
    value.and_then(cursor::items).unwrap_or_default()
}

impl Key {
    fn matches(&self, item: &Item<'_>) -> bool {
        match self {
            Self::Index(at) => *at == item.index,
            Self::Value(value) => semantics::is(value, item.value),
            Self::Members(wanted) => wanted.iter().all(|(name, value)| match member(&item.members, name) {
                Some(member) => semantics::is(value, member),
                None => semantics::default_of(name).is_some_and(|default| value == default),
            }),
        }
    }

    /// `web`, `80/TCP`; nothing for a place.
    fn display(&self) -> Option<String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match self {
            Self::Index(_) => None,
            Self::Value(value) => Some(text(value)),
            Self::Members(members) => Some(members.iter().map(|(_, value)| text(value)).collect::<Vec<_>>().join("/")),
        }
    }
}
