//! The effects of a policy by rule, by namespace and by account, with examples.

use std::cmp::Reverse;
use std::collections::HashMap;

use interlock_engine::text::printable;
use jiff::Timestamp;

use super::effect::Effect;
use super::tally::object_of;
use crate::offline::replay::{Replayed, ReplayedViolation};

/// The most groups of one kind, because people read the page and a broken client can use any number of names.
const MAX_GROUPS: usize = 1_000;

/// The most examples of a group.
const MAX_EXAMPLES: usize = 3;

/// The longest reason of an example, in bytes. With these limits, all examples take a few MiB.
const MAX_REASON_BYTES: usize = 1_024;

/// The count of each effect, in the order of [`Effect::ALL`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Counts(pub(super) [usize; Effect::ALL.len()]);

impl Counts {
    fn add(&mut self, effect: Effect) {
        for (count, known) in self.0.iter_mut().zip(Effect::ALL) {
            *count += usize::from(known == effect);
        }
    }
}

/// All reviews.
#[derive(Default)]
pub(super) struct Overview {
    pub(super) reviews: usize,
    /// By the most severe effect of each review.
    pub(super) counts: Counts,
    /// The first and the last time.
    pub(super) times: Option<(Timestamp, Timestamp)>,
    pub(super) rules: Groups,
    pub(super) namespaces: Groups,
    pub(super) accounts: Groups,
}

/// The groups of one kind, by name.
#[derive(Default)]
pub(super) struct Groups {
    groups: HashMap<String, Group>,
    /// Findings beyond the maximum number of groups.
    pub(super) further: usize,
}

#[derive(Default)]
pub(super) struct Group {
    pub(super) counts: Counts,
    pub(super) examples: Vec<Example>,
}

/// One finding.
pub(super) struct Example {
    pub(super) effect: Effect,
    pub(super) rule: &'static str,
    pub(super) at: Timestamp,
    /// The line in its file.
    pub(super) line: usize,
    pub(super) operation: String,
    /// `deployments.apps shop/web`.
    pub(super) object: String,
    pub(super) user: String,
    pub(super) reason: String,
}

impl Overview {
    /// Counts a review: once for each broken rule, and once each for its namespace and its account.
    pub(super) fn add(&mut self, replayed: &Replayed) {
        self.reviews += 1;
        let at = replayed.at;
        self.times = Some(self.times.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
        for violation in &replayed.violations {
            self.rules.add(violation.rule, Effect::of(violation), violation, replayed);
        }
        if let Some((effect, violation)) = Effect::worst(replayed) {
            self.counts.add(effect);
            self.namespaces.add(&replayed.namespace, effect, violation, replayed);
            self.accounts.add(&replayed.user, effect, violation, replayed);
        }
    }
}

impl Groups {
    fn add(&mut self, name: &str, effect: Effect, violation: &ReplayedViolation, replayed: &Replayed) {
        if !self.groups.contains_key(name) {
            if self.groups.len() == MAX_GROUPS {
                self.further += 1;
                return;
            }
            self.groups.insert(name.to_owned(), Group::default());
        }
        if let Some(group) = self.groups.get_mut(name) {
            group.counts.add(effect);
            group.exemplify(effect, violation, replayed);
        }
    }

    /// The groups, most severe effects first.
    pub(super) fn sorted(&self) -> Vec<(&str, &Group)> {
        let mut sorted: Vec<_> = self.groups.iter().map(|(name, group)| (name.as_str(), group)).collect();
        sorted.sort_by_key(|(name, group)| (Reverse(group.counts), *name));
        sorted
    }
}

impl Group {
    /// Keeps the first examples, each with another account, rule or effect, because repeats of one client add no information.
    fn exemplify(&mut self, effect: Effect, violation: &ReplayedViolation, replayed: &Replayed) {
        let key = (effect, violation.rule, &replayed.user);
        let is_known = self.examples.iter().any(|it| (it.effect, it.rule, &it.user) == key);
        if is_known || self.examples.len() == MAX_EXAMPLES {
            return;
        }
        self.examples.push(Example {
            effect,
            rule: violation.rule,
            at: replayed.at,
            line: replayed.line,
            operation: replayed.operation.clone(),
            object: object_of(replayed),
            user: replayed.user.clone(),
            reason: printable(&violation.message, MAX_REASON_BYTES).into_owned(),
        });
    }
}
