//! What an object has lost of the children that it generates or applies, and is about to lose. All replicas share it, so that each
//! knows what the others have admitted.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::object::ObjectKey;

/// How long a number of children and a deletion count.
const COUNTS_FOR: SignedDuration = SignedDuration::from_hours(24);

/// How long a controller may take until it asks again, before its next deletion counts as another one. The longest pause of the
/// controllers that try again is 1,000 seconds.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(20);

/// How long after the first request the whole set counts as known.
const SETTLES_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// How far apart the requests of one round may be.
const ROUND: SignedDuration = SignedDuration::from_secs(10);

/// The most bytes for the deletions of one object, about 2,500 of them. Beyond that, the oldest are dropped. All objects share the ConfigMap.
const MOST_BYTES: usize = 400 << 10;

/// The children that one object loses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// How many children there were, oldest first. Each number is larger than all later ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    numbers: Vec<(Timestamp, usize)>,
    /// The deletions that a controller has asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    deletions: BTreeMap<String, Deletion>,
    /// By state, how many admitted deletions were too many to keep.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    forgotten: BTreeMap<String, usize>,
}

/// The deletion of a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Deletion {
    first: Timestamp,
    last: Timestamp,
    #[serde(default, skip_serializing_if = "is_not")]
    admitted: bool,
    #[serde(default, skip_serializing_if = "is_not")]
    is_meant: bool,
    /// The state of the object at the last request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    state: String,
}

/// A request to delete a child.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Loss {
    /// The object that has the child.
    pub of: ObjectKey,
    pub child: String,
    /// How many children there are now, with this one.
    pub children: usize,
    /// Changes once the object lists its children anew. Deletions in another state are part of that list.
    pub state: String,
    /// Whether somebody has said that this child may go. It then counts as one that never was.
    pub is_meant: bool,
}

impl Losses {
    /// With one more request, and what became of it. What is too old is left out.
    #[must_use]
    pub fn with(&self, loss: &Loss, admitted: bool, now: Timestamp) -> Self {
        let mut losses = self.clone();
        losses.numbers.retain(|(at, _)| is_recent(*at, now));
        losses.deletions.retain(|_, deletion| is_recent(deletion.last, now) || deletion.is_in(&loss.state));
        losses.forgotten.retain(|state, _| *state == loss.state);
        let known = losses.deletions.remove(&loss.child).filter(|known| known.is_same(now));
        let was_admitted = known.as_ref().is_some_and(|known| known.admitted);
        if !loss.is_meant {
            while losses.numbers.last().is_some_and(|(_, number)| *number <= loss.children) {
                losses.numbers.pop();
            }
            losses.numbers.push((now, loss.children));
        } else if admitted && !was_admitted {
            losses.numbers.iter_mut().for_each(|(_, number)| *number = number.saturating_sub(1));
        }
        losses.drop_oldest(MOST_BYTES.saturating_sub(bytes_of(&loss.child, &loss.state)));
        let deletion = Deletion {
            first: known.map_or(now, |known| known.first),
            last: now,
            admitted: admitted || was_admitted,
            is_meant: loss.is_meant && admitted,
            state: loss.state.clone(),
        };
        losses.deletions.insert(loss.child.clone(), deletion);
        losses
    }

    /// Leaves this many bytes of deletions.
    fn drop_oldest(&mut self, most: usize) {
        let mut bytes: usize = self.deletions.iter().map(|(child, it)| bytes_of(child, &it.state)).sum();
        while bytes > most {
            let oldest = self.deletions.iter().min_by_key(|(_, deletion)| deletion.last);
            let Some((child, deletion)) =
                oldest.map(|(child, _)| child.clone()).and_then(|it| self.deletions.remove_entry(&it))
            else {
                break;
            };
            bytes -= bytes_of(&child, &deletion.state);
            if deletion.admitted && !deletion.is_meant {
                *self.forgotten.entry(deletion.state).or_default() += 1;
            }
        }
    }

    /// When it was last noted.
    #[must_use]
    pub fn last_note(&self) -> Option<Timestamp> {
        self.deletions.values().map(|deletion| deletion.last).max()
    }

    /// Whether nothing is left that counts.
    #[must_use]
    pub fn is_outdated(&self, now: Timestamp) -> bool {
        !self.numbers.iter().any(|(at, _)| is_recent(*at, now))
            && !self.deletions.values().any(|deletion| is_recent(deletion.last, now))
    }

    /// The largest number of children.
    pub(crate) fn most(&self, now: Timestamp) -> usize {
        self.numbers.iter().filter(|(at, _)| is_recent(*at, now)).map(|(_, number)| *number).max().unwrap_or_default()
    }

    /// Whether a controller has asked for all that it wants to delete. It has once it asks for the same child again: it asks for every
    /// child in each round.
    pub(crate) fn is_settled(&self, child: &str, now: Timestamp) -> bool {
        self.known(child, now).is_some_and(|known| now.duration_since(known.first) >= SETTLES_AFTER)
    }

    /// The children whose deletion the controller has asked for since it last asked for this one, and this one. Without those that were
    /// meant to go.
    pub(crate) fn wanted_with<'l>(&'l self, child: &'l str, now: Timestamp) -> Vec<&'l str> {
        let since = self.known(child, now).map_or(now, |known| known.last) - ROUND;
        let others = self.deletions.iter().filter(|(name, it)| *name != child && it.last >= since && !it.is_meant);
        others.map(|(name, _)| name.as_str()).chain([child]).collect()
    }

    /// The children other than this one that are deleted although the object still lists them. Without those that were meant to go.
    pub(crate) fn gone_beside<'l>(&'l self, loss: &'l Loss, now: Timestamp) -> impl Iterator<Item = &'l str> {
        self.in_state(loss, now).filter(|(_, it)| it.admitted && !it.is_meant).map(|(child, _)| child)
    }

    /// How many more there are, whose names are not known any longer.
    pub(crate) fn forgotten_beside(&self, loss: &Loss) -> usize {
        self.forgotten.get(&loss.state).copied().unwrap_or_default()
    }

    /// The other children whose deletion was refused in the same state of the object.
    pub(crate) fn refused_beside<'l>(&'l self, loss: &'l Loss, now: Timestamp) -> impl Iterator<Item = &'l str> {
        self.in_state(loss, now).filter(|(_, deletion)| !deletion.admitted).map(|(child, _)| child)
    }

    fn in_state<'l>(&'l self, loss: &'l Loss, now: Timestamp) -> impl Iterator<Item = (&'l str, &'l Deletion)> {
        let others = self.deletions.iter().filter(|(child, _)| **child != loss.child);
        let same =
            others.filter(move |(_, it)| it.is_in(&loss.state) || (it.state == loss.state && is_recent(it.last, now)));
        same.map(|(child, deletion)| (child.as_str(), deletion))
    }

    fn known(&self, child: &str, now: Timestamp) -> Option<&Deletion> {
        self.deletions.get(child).filter(|known| known.is_same(now))
    }
}

/// About how many bytes a deletion takes as JSON.
fn bytes_of(child: &str, state: &str) -> usize {
    child.len() + state.len() + 130
}

impl Deletion {
    /// Whether the object has not listed its children anew since, however long that is. A state without a name may be any.
    fn is_in(&self, state: &str) -> bool {
        !state.is_empty() && self.state == state
    }

    /// Whether a request now is one more for the same deletion.
    fn is_same(&self, now: Timestamp) -> bool {
        now.duration_since(self.last) < LONGEST_PAUSE
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_not(value: &bool) -> bool {
    !value
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) < COUNTS_FOR
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(child: &str, children: usize) -> Loss {
        let of = ObjectKey::new("argoproj.io", "ApplicationSet", "argocd", "web");
        Loss { of, child: child.to_owned(), children, state: String::new(), is_meant: false }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[test]
    fn the_largest_number_of_a_day_counts() {
        let mut losses = Losses::default();
        for (hour, number) in [(0, 10), (1, 12), (2, 7), (3, 9)] {
            losses = losses.with(&loss("a", number), true, at(hour * 3_600));
        }
        assert_eq!(losses.most(at(4 * 3_600)), 12);
        assert_eq!(losses.numbers.len(), 2, "7 is forgotten: there were 9 later");
        assert_eq!(losses.most(at(25 * 3_600 + 1)), 9);
        assert!(!losses.is_outdated(at(26 * 3_600)) && losses.is_outdated(at(28 * 3_600)));
    }

    #[test]
    fn a_set_is_known_once_its_controller_asks_again() {
        let mut losses = Losses::default();
        assert!(!losses.is_settled("a", at(0)));
        for (second, child) in [(0, "a"), (1, "b"), (2, "c")] {
            losses = losses.with(&loss(child, 4), false, at(second));
        }
        assert!(!losses.is_settled("a", at(4)) && losses.is_settled("a", at(5)));
        assert!(!losses.is_settled("d", at(600)));
        assert_eq!(losses.wanted_with("a", at(5)), ["b", "c", "a"]);
        // Later, the controller wants only one of them.
        losses = losses.with(&loss("a", 4), false, at(600));
        assert_eq!(losses.wanted_with("a", at(700)), ["a"]);
        assert!(!losses.is_settled("a", at(3_600)), "another deletion");
    }

    #[test]
    fn what_is_meant_never_was_a_child() {
        let meant = |child: &str| Loss { is_meant: true, ..loss(child, 9) };
        let mut losses = Losses::default().with(&loss("a", 10), true, at(0));
        losses = losses.with(&meant("b"), true, at(1));
        losses = losses.with(&meant("b"), true, at(2));
        losses = losses.with(&meant("c"), false, at(3));
        assert_eq!(losses.most(at(4)), 9);
    }

    #[test]
    fn deletions_count_while_the_object_lists_their_children() {
        let losses = Losses::default().with(&loss("a", 4), true, at(0)).with(&loss("b", 4), false, at(1));
        let next = loss("c", 4);
        assert_eq!(losses.gone_beside(&next, at(2)).collect::<Vec<_>>(), ["a"]);
        assert_eq!(losses.refused_beside(&next, at(2)).collect::<Vec<_>>(), ["b"]);
        let listed_anew = Loss { state: "v2".to_owned(), ..next };
        assert_eq!(losses.gone_beside(&listed_anew, at(2)).count(), 0);
    }

    #[test]
    fn the_number_of_deletions_is_limited() {
        let name = |number: i64| format!("{number}{}", "n".repeat(10_000));
        let losses = (0..60).fold(Losses::default(), |losses, number| {
            losses.with(&loss(&name(number), 100), number % 2 == 0, at(number))
        });
        assert!(serde_json::to_string(&losses).unwrap().len() < MOST_BYTES + 1_000);
        let kept = losses.deletions.len();
        assert!(kept > 30 && losses.deletions.contains_key(&name(59)) && !losses.deletions.contains_key(&name(0)));
        assert_eq!(losses.forgotten_beside(&loss("next", 40)), (61 - kept) / 2);
    }
}
