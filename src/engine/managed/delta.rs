//! Where two JSON texts differ, without a tree of either.
//!
//! Both sides of a review come from the same encoder, so equal texts are equal values. Where the texts run alike, which is
//! found at the speed of a comparison of memory, only one of them is read; and behind the last difference neither is.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::engine::json::cursor::{Cursor, Member, common, rest, unquoted};
use crate::engine::json::{Path, Segment};

/// The differences that are told apart, at most; behind them whole containers count as one.
pub(super) const MOST: usize = 1_000;

/// How deep differences are followed.
const DEEPEST: usize = 100;

/// What differs between an old and a new value.
#[derive(Debug, PartialEq)]
pub enum Delta<'a> {
    /// The whole value: one side is absent, both are of different kinds, or there is too much to tell apart.
    Value {
        /// Before, as JSON text; `None` where there was nothing.
        old: Option<&'a str>,
        /// After; `None` where there is nothing any more.
        new: Option<&'a str>,
    },
    /// Some members of an object, in the order of the new one.
    Members(Vec<(Cow<'a, str>, Delta<'a>)>),
    /// Some items of two lists of one length, by their places. What they are known by is not in the JSON.
    Items {
        /// The whole list before.
        old: &'a str,
        /// The whole list after.
        new: &'a str,
        /// The items that differ.
        differing: Vec<Differing<'a>>,
    },
}

/// An item that differs from what stood in its place.
#[derive(Debug, PartialEq)]
pub struct Differing<'a> {
    /// Its place.
    pub index: usize,
    /// What stood there.
    pub old: &'a str,
    /// What stands there now.
    pub new: &'a str,
    /// What differs.
    pub delta: Delta<'a>,
}

/// One value that differs.
#[derive(Debug)]
pub struct Leaf<'a> {
    /// Where.
    pub path: Path,
    /// What is there now, as JSON text; `None` where there is nothing any more.
    pub new: Option<&'a str>,
}

/// The difference between two JSON texts; `None` when there is none.
#[must_use]
pub fn delta<'a>(old: &'a str, new: &'a str) -> Option<Delta<'a>> {
    between(Some(old), Some(new), &mut MOST.clone())
}

/// As [`delta`], for values that may be absent, telling apart so many differences at most.
pub(super) fn between<'a>(old: Option<&'a str>, new: Option<&'a str>, budget: &mut usize) -> Option<Delta<'a>> {
    if old == new {
        return None;
    }
    let whole = Delta::Value { old, new };
    let (Some(old), Some(new)) = (old, new) else {
        return Some(whole);
    };
    let alike = common(old, new);
    let mut pair = Pair { old: Cursor::new(old), new: Cursor::new(new), alike, budget, depth: 0, lists: 0 };
    // What is not well-formed after all differs as a whole.
    pair.value().unwrap_or(Some(whole))
}

/// Two texts side by side.
struct Pair<'a, 'b> {
    old: Cursor<'a>,
    new: Cursor<'a>,
    /// The place in the old text up to which the texts run alike from where the cursors are.
    alike: usize,
    budget: &'b mut usize,
    depth: usize,
    /// The lists that the cursors are in. The text of their items is wanted, so they are read to their ends.
    lists: usize,
}

impl<'a> Pair<'a, '_> {
    /// Compares the values that come next and steps over them; the outer `None` for what is not well-formed.
    fn value(&mut self) -> Option<Option<Delta<'a>>> {
        let follow = *self.budget > 0 && self.depth < DEEPEST;
        match (self.old.peek()?, self.new.peek()?) {
            (b'{', b'{') if follow => return self.within(Self::members),
            (b'[', b'[') if follow => return self.within(Self::items),
            _ => {}
        }
        let start = self.old.at();
        if self.old.value_before(self.alike) {
            self.new.take(self.old.at() - start)?;
            return Some(None);
        }
        let (old, new) = (self.old.value()?, self.new.value()?);
        self.alike = self.old.at() + common(self.old.left(), self.new.left());
        Some((old != new).then(|| {
            *self.budget = self.budget.saturating_sub(1);
            Delta::Value { old: Some(old), new: Some(new) }
        }))
    }

    /// The names of the members that come next.
    fn names(&mut self) -> Option<(Option<&'a str>, Option<&'a str>)> {
        let start = self.old.at();
        let old = self.old.name()?;
        if self.old.at() < self.alike {
            self.new.take(self.old.at() - start)?;
            return Some((old, old));
        }
        Some((old, self.new.name()?))
    }

    /// Whether nothing differs any more, and nobody wants to know where the values end.
    fn is_done(&self) -> bool {
        let left = self.old.left().len();
        self.lists == 0 && self.new.left().len() == left && self.alike == self.old.at() + left
    }

    fn within<T>(&mut self, compare: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        let compared = compare(self);
        self.depth -= 1;
        compared
    }

    fn members(&mut self) -> Option<Option<Delta<'a>>> {
        self.old.enter(b'{')?;
        self.new.enter(b'{')?;
        let mut differing = Vec::new();
        loop {
            match self.names()? {
                (None, None) => break,
                (Some(old), Some(new)) if old == new => {
                    if let Some(delta) = self.value()? {
                        differing.push((unquoted(new)?, delta));
                    }
                    if self.is_done() {
                        break;
                    }
                }
                (old, new) => {
                    let old = Self::left(&mut self.old, old)?;
                    let new = Self::left(&mut self.new, new)?;
                    differing.extend(aligned(old, new, self.budget));
                    self.alike = self.old.at() + common(self.old.left(), self.new.left());
                    break;
                }
            }
        }
        // The texts may differ in the order of members alone.
        Some((!differing.is_empty()).then_some(Delta::Members(differing)))
    }

    /// The members that are left behind a name.
    fn left(cursor: &mut Cursor<'a>, name: Option<&'a str>) -> Option<Vec<Member<'a>>> {
        match name {
            None => Some(Vec::new()),
            Some(name) => {
                let first = (unquoted(name)?, cursor.value()?);
                rest(cursor, vec![first])
            }
        }
    }

    fn items(&mut self) -> Option<Option<Delta<'a>>> {
        let starts = (self.old.at(), self.new.at());
        self.old.enter(b'[')?;
        self.new.enter(b'[')?;
        self.lists += 1;
        let (mut differing, mut index) = (Vec::new(), 0);
        let of_one_length = loop {
            match (self.old.next(b']')?, self.new.next(b']')?) {
                (true, true) => {}
                (false, false) => break true,
                (more, _) => {
                    // The whole lists are compared by whoever knows what their items are known by.
                    let longer = if more { &mut self.old } else { &mut self.new };
                    while longer.next_value_of_list()? {}
                    self.alike = self.old.at() + common(self.old.left(), self.new.left());
                    break false;
                }
            }
            let (old, new) = (self.old.at(), self.new.at());
            if let Some(delta) = self.value()? {
                differing.push(Differing { index, old: self.old.since(old)?, new: self.new.since(new)?, delta });
            }
            index += 1;
        };
        self.lists -= 1;
        let (old, new) = (self.old.since(starts.0)?, self.new.since(starts.1)?);
        Some(match (of_one_length, differing.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Delta::Items { old, new, differing }),
            (false, _) => Some(Delta::Value { old: Some(old), new: Some(new) }),
        })
    }
}

/// What differs between members that do not stand in the same order, those that are gone last.
fn aligned<'a>(old: Vec<Member<'a>>, new: Vec<Member<'a>>, budget: &mut usize) -> Vec<(Cow<'a, str>, Delta<'a>)> {
    let mut before: HashMap<_, _> = old.into_iter().collect();
    let mut differing = Vec::new();
    for (name, new) in new {
        let old = before.remove(&name);
        differing.extend(between(old, Some(new), budget).map(|delta| (name, delta)));
    }
    let mut gone: Vec<_> = before.into_iter().collect();
    gone.sort_unstable();
    differing.extend(gone.into_iter().map(|(name, old)| (name, Delta::Value { old: Some(old), new: None })));
    differing
}

impl<'a> Delta<'a> {
    /// The difference without some fields; `None` when nothing is left of it.
    #[must_use]
    pub fn without(self, fields: &[&[&str]]) -> Option<Self> {
        let Self::Members(members) = self else {
            return Some(self);
        };
        let left = members.into_iter().filter_map(|(name, delta)| {
            let inner: Vec<&[&str]> =
                fields.iter().filter(|path| path.first() == Some(&name.as_ref())).map(|path| &path[1..]).collect();
            if inner.iter().any(|path| path.is_empty()) {
                return None;
            }
            Some((name, delta.without(&inner)?))
        });
        let left: Vec<_> = left.collect();
        (!left.is_empty()).then_some(Self::Members(left))
    }

    /// Every value that differs, with its place.
    #[must_use]
    pub fn leaves(&self) -> Vec<Leaf<'a>> {
        let mut leaves = Vec::new();
        self.collect(&Path::default(), &mut leaves);
        leaves
    }

    fn collect(&self, path: &Path, leaves: &mut Vec<Leaf<'a>>) {
        match self {
            Self::Value { new, .. } => leaves.push(Leaf { path: path.clone(), new: *new }),
            Self::Members(members) => {
                for (name, delta) in members {
                    delta.collect(&path.field(name), leaves);
                }
            }
            Self::Items { differing, .. } => {
                for Differing { index, delta, .. } in differing {
                    delta.collect(&path.then(Segment::Item { index: *index, key: None }), leaves);
                }
            }
        }
    }
}
