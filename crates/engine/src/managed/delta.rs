//! The difference between two JSON texts, found without building a tree of either.
//!
//! Both sides of a review come from the same encoder, so equal texts are equal values. A memory comparison finds equal
//! parts, and only one of two equal parts is parsed. Nothing is parsed after the last difference.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::cursor::{Cursor, Member, common_prefix, remaining_members, unquoted};
use crate::json::{FieldPath, Segment};

/// The maximum number of differences that are reported separately. Beyond it, a container counts as one difference.
pub(super) const MAX_DIFFERENCES: usize = 1_000;

/// The deepest level at which differences are reported separately.
const MAX_DEPTH: usize = 100;

/// The deepest level at which a container is skipped at once if it ends before the next difference. At each of these levels
/// around a difference the search is in vain, so deep nesting makes a comparison at most this many times longer.
const MAX_SKIPPED_DEPTH: usize = 10;

/// The difference between an old and a new value.
#[derive(Debug, PartialEq)]
pub enum Delta<'a> {
    /// The values differ entirely: one side is absent, the kinds differ, or there are too many differences.
    Value {
        /// As JSON text; `None` if absent.
        old: Option<&'a str>,
        /// As JSON text; `None` if absent.
        new: Option<&'a str>,
    },
    /// Some members of an object, in the order of the new object.
    Members(Vec<(Cow<'a, str>, Delta<'a>)>),
    /// Some items of two lists of the same length, by index. The JSON does not contain the keys of items.
    Items { old: &'a str, new: &'a str, differing: Vec<DifferingItem<'a>> },
}

/// An item that differs from the old item at the same index.
#[derive(Debug, PartialEq)]
pub struct DifferingItem<'a> {
    pub index: usize,
    pub old: &'a str,
    pub new: &'a str,
    pub delta: Delta<'a>,
}

/// A value that differs.
#[derive(Debug)]
pub struct ChangedValue<'a> {
    pub path: FieldPath,
    /// As JSON text; `None` if the value was removed.
    pub new: Option<&'a str>,
}

/// The difference between two JSON texts; `None` if there is none.
#[must_use]
pub fn delta<'a>(old: &'a str, new: &'a str) -> Option<Delta<'a>> {
    delta_except(old, new, Exceptions::default())
}

/// The parts that a comparison leaves out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exceptions<'e> {
    /// The paths of the members that are left out. They do not pass through lists.
    pub paths: &'e [&'e [&'e str]],
    /// Those of these values whose ends are already known, as parts of either text. Their ends are not searched again.
    pub found: &'e [&'e str],
}

/// Like [`delta`], without some members.
#[must_use]
pub fn delta_except<'a>(old: &'a str, new: &'a str, except: Exceptions<'_>) -> Option<Delta<'a>> {
    between_except(Some(old), Some(new), except, &mut MAX_DIFFERENCES.clone())
}

/// Like [`delta`], for values that may be absent.
pub(super) fn between<'a>(old: Option<&'a str>, new: Option<&'a str>) -> Option<Delta<'a>> {
    between_except(old, new, Exceptions::default(), &mut MAX_DIFFERENCES.clone())
}

fn between_except<'a>(
    old: Option<&'a str>,
    new: Option<&'a str>,
    except: Exceptions<'_>,
    budget: &mut usize,
) -> Option<Delta<'a>> {
    if old == new {
        return None;
    }
    let replaced = Delta::Value { old, new };
    let (Some(old), Some(new)) = (old, new) else {
        return Some(replaced);
    };
    let equal_until = common_prefix(old, new);
    let (old, new) = (Cursor::new(old), Cursor::new(new));
    let Exceptions { paths, found } = except;
    let mut pair = Comparison { old, new, equal_until, ignored: paths.to_vec(), found, budget, depth: 0, lists: 0 };
    // Malformed text counts as one difference.
    pair.value().unwrap_or(Some(replaced))
}

/// Two texts that are parsed in parallel.
struct Comparison<'a, 'b> {
    old: Cursor<'a>,
    new: Cursor<'a>,
    /// The position in the old text up to which both texts are equal from the cursors on.
    equal_until: usize,
    /// The paths of members that are not compared, from the cursors on.
    ignored: Vec<&'b [&'b str]>,
    found: &'b [&'b str],
    budget: &'b mut usize,
    depth: usize,
    /// The number of lists around the cursors. The text of their items is needed, so these lists are parsed to the end.
    lists: usize,
}

impl<'a> Comparison<'a, '_> {
    /// Compares the next values and skips them; the outer `None` for malformed text.
    fn value(&mut self) -> Option<Option<Delta<'a>>> {
        let follow = *self.budget > 0 && self.depth < MAX_DEPTH;
        let containers = match (self.old.peek()?, self.new.peek()?) {
            (b'{', b'{') => Some(Self::members as fn(&mut Self) -> _),
            (b'[', b'[') => Some(Self::items as _),
            _ => None,
        };
        let containers = containers.filter(|_| follow);
        if (containers.is_none() || (1..=MAX_SKIPPED_DEPTH).contains(&self.depth)) && self.skip_equal() {
            return Some(None);
        }
        if let Some(compare) = containers {
            return self.within(compare);
        }
        let (old, new) = self.skip_both()?;
        Some((old != new).then(|| {
            *self.budget = self.budget.saturating_sub(1);
            Delta::Value { old: Some(old), new: Some(new) }
        }))
    }

    /// Skips two values that are equal because they end before the next difference.
    fn skip_equal(&mut self) -> bool {
        let start = self.old.position();
        self.old.skip_value_before(self.equal_until) && self.new.advance(self.old.position() - start).is_some()
    }

    /// Skips two values, and returns their texts.
    fn skip_both(&mut self) -> Option<(&'a str, &'a str)> {
        let both = (self.old.skip_value()?, self.new.skip_value()?);
        self.look_ahead();
        Some(both)
    }

    fn ignore_both(&mut self) -> Option<()> {
        for cursor in [&mut self.old, &mut self.new] {
            cursor.peek()?;
            let start = cursor.remaining().as_ptr();
            match self.found.iter().find(|value| value.as_ptr() == start) {
                Some(value) => cursor.advance(value.len())?,
                None => cursor.skip_value()?,
            };
        }
        self.look_ahead();
        Some(())
    }

    /// Finds the next difference, from two corresponding positions.
    fn look_ahead(&mut self) {
        self.equal_until = self.old.position() + common_prefix(self.old.remaining(), self.new.remaining());
    }

    /// The names of the next members.
    fn names(&mut self) -> Option<(Option<&'a str>, Option<&'a str>)> {
        let start = self.old.position();
        let old = self.old.next_name()?;
        if self.old.position() < self.equal_until {
            self.new.advance(self.old.position() - start)?;
            return Some((old, old));
        }
        Some((old, self.new.next_name()?))
    }

    /// Whether no difference is left and the ends of the values are not needed.
    fn is_done(&self) -> bool {
        let left = self.old.remaining().len();
        self.lists == 0 && self.new.remaining().len() == left && self.equal_until == self.old.position() + left
    }

    fn within<T>(&mut self, compare: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        let compared = compare(self);
        self.depth -= 1;
        compared
    }

    fn members(&mut self) -> Option<Option<Delta<'a>>> {
        self.old.expect_byte(b'{')?;
        self.new.expect_byte(b'{')?;
        let mut differing = Vec::new();
        loop {
            match self.names()? {
                (None, None) => break,
                (Some(old), Some(new)) if old == new => {
                    let name = unquoted(new)?;
                    if let Some(delta) = self.member(&name)? {
                        differing.push((name, delta));
                    }
                    if self.is_done() {
                        break;
                    }
                }
                (old, new) => {
                    let old = Self::members_from(&mut self.old, old)?;
                    let new = Self::members_from(&mut self.new, new)?;
                    let except = Exceptions { paths: &self.ignored, found: self.found };
                    differing.extend(aligned(old, new, except, self.budget));
                    self.look_ahead();
                    break;
                }
            }
        }
        // The texts may differ only in the order of members.
        Some((!differing.is_empty()).then_some(Delta::Members(differing)))
    }

    /// Compares the values of two members of the same name, and skips them.
    fn member(&mut self, name: &str) -> Option<Option<Delta<'a>>> {
        let Some(below) = below(&self.ignored, name) else {
            self.ignore_both()?;
            return Some(None);
        };
        let ignored = std::mem::replace(&mut self.ignored, below);
        let compared = self.value();
        self.ignored = ignored;
        compared
    }

    /// The remaining members, beginning with the member of this name.
    fn members_from(cursor: &mut Cursor<'a>, name: Option<&'a str>) -> Option<Vec<Member<'a>>> {
        match name {
            None => Some(Vec::new()),
            Some(name) => {
                let first = (unquoted(name)?, cursor.skip_value()?);
                remaining_members(cursor, vec![first])
            }
        }
    }

    fn items(&mut self) -> Option<Option<Delta<'a>>> {
        let starts = (self.old.position(), self.new.position());
        self.old.expect_byte(b'[')?;
        self.new.expect_byte(b'[')?;
        self.lists += 1;
        self.ignored.clear();
        let (mut differing, mut index) = (Vec::new(), 0);
        let of_one_length = loop {
            match (self.old.has_next(b']')?, self.new.has_next(b']')?) {
                (true, true) => {}
                (false, false) => break true,
                (more, _) => {
                    // These lists are compared by code that knows their keys.
                    let longer = if more { &mut self.old } else { &mut self.new };
                    while longer.skip_item()? {}
                    self.look_ahead();
                    break false;
                }
            }
            let (old, new) = (self.old.position(), self.new.position());
            if let Some(delta) = self.value()? {
                differing.push(DifferingItem {
                    index,
                    old: self.old.text_since(old)?,
                    new: self.new.text_since(new)?,
                    delta,
                });
            }
            index += 1;
        };
        self.lists -= 1;
        let (old, new) = (self.old.text_since(starts.0)?, self.new.text_since(starts.1)?);
        Some(match (of_one_length, differing.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Delta::Items { old, new, differing }),
            (false, _) => Some(Delta::Value { old: Some(old), new: Some(new) }),
        })
    }
}

/// The difference between members in another order. Removed members come last.
fn aligned<'a>(
    old: Vec<Member<'a>>,
    new: Vec<Member<'a>>,
    except: Exceptions<'_>,
    budget: &mut usize,
) -> Vec<(Cow<'a, str>, Delta<'a>)> {
    let mut before: HashMap<_, _> = old.into_iter().collect();
    let mut differing = Vec::new();
    for (name, new) in new {
        let old = before.remove(&name);
        if let Some(paths) = below(except.paths, &name) {
            let except = Exceptions { paths: &paths, ..except };
            differing.extend(between_except(old, Some(new), except, budget).map(|delta| (name, delta)));
        }
    }
    let mut removed: Vec<_> = before.into_iter().filter(|(name, _)| below(except.paths, name).is_some()).collect();
    removed.sort_unstable();
    differing.extend(removed.into_iter().map(|(name, old)| (name, Delta::Value { old: Some(old), new: None })));
    differing
}

/// The rest of some paths below a member; `None` if a path ends at the member.
fn below<'p>(paths: &[&'p [&'p str]], name: &str) -> Option<Vec<&'p [&'p str]>> {
    let mut left = Vec::new();
    for path in paths {
        match path.split_first() {
            Some((first, [])) if *first == name => return None,
            Some((first, rest)) if *first == name => left.push(rest),
            _ => {}
        }
    }
    Some(left)
}

impl<'a> Delta<'a> {
    /// The old and the new text; unknown for objects.
    pub(super) fn sides(&self) -> [Option<&'a str>; 2] {
        match *self {
            Self::Value { old, new } => [old, new],
            Self::Items { old, new, .. } => [Some(old), Some(new)],
            Self::Members(_) => [None, None],
        }
    }

    /// Every value that differs, with its path.
    #[must_use]
    pub fn changed_values(&self) -> Vec<ChangedValue<'a>> {
        let mut changed_values = Vec::new();
        self.collect(&FieldPath::default(), &mut changed_values);
        changed_values
    }

    fn collect(&self, path: &FieldPath, changed_values: &mut Vec<ChangedValue<'a>>) {
        match self {
            Self::Value { new, .. } => changed_values.push(ChangedValue { path: path.clone(), new: *new }),
            Self::Members(members) => {
                for (name, delta) in members {
                    delta.collect(&path.field(name), changed_values);
                }
            }
            Self::Items { differing, .. } => {
                for DifferingItem { index, delta, .. } in differing {
                    delta.collect(&path.then(Segment::Item { index: *index, key: None }), changed_values);
                }
            }
        }
    }
}
