//! Similar acts of one account that break the same rules.

use std::collections::HashMap;

use interlock_engine::rules::Family;

use super::seen::{Names, Times};
use crate::offline::replay::{Replayed, ReplayedViolation};

/// The most groups of acts.
const MAX_ACTS: usize = 10_000;

/// The most fields that tell acts apart.
const MAX_FIELDS: usize = 8;

/// The longest sentence that is kept, in bytes.
const MAX_SENTENCE_BYTES: usize = 600;

/// What the policy does with an act, the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Effect {
    Refused,
    /// Refused, because a rule could not be evaluated.
    Undecided,
    Warned,
    Audited,
}

impl Effect {
    /// The effect on a request; `None` if it breaks no rule.
    pub(super) fn of(replayed: &Replayed) -> Option<Self> {
        replayed.violations.iter().filter_map(Self::of_violation).min()
    }

    fn of_violation(violation: &ReplayedViolation) -> Option<Self> {
        match (violation.refuses, violation.undecided, violation.mode) {
            (true, true, _) => Some(Self::Undecided),
            (true, false, _) => Some(Self::Refused),
            // The input lacks what the rule needs, and the cluster may have it.
            (false, true, _) => None,
            (false, false, "audit") => Some(Self::Audited),
            (false, false, _) => Some(Self::Warned),
        }
    }
}

/// What similar acts have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ActKey {
    pub(super) user: String,
    pub(super) effect: Effect,
    /// The rules that it breaks with this effect.
    pub(super) rules: Vec<&'static str>,
    pub(super) operation: String,
    pub(super) resource: String,
    pub(super) kind: String,
    /// JSON pointers; a `*` stands for the place in a list.
    pub(super) fields: Vec<String>,
    /// Empty for acts on objects, because tools do the same to many releases.
    pub(super) release: String,
}

/// How often, when and where.
#[derive(Debug, Clone)]
pub(super) struct Act {
    pub(super) times: Times,
    /// As `NAMESPACE/NAME`.
    pub(super) objects: Names,
    pub(super) namespaces: Names,
    /// The sentence of the first refusal, without its way out.
    pub(super) sentence: String,
    /// The way out of the first refusal.
    pub(super) way_out: String,
}

/// The acts by what they have in common.
#[derive(Debug, Default)]
pub(super) struct Acts {
    acts: HashMap<ActKey, Act>,
    /// Acts beyond the maximum.
    pub(super) further: usize,
}

impl ActKey {
    fn of(user: &str, replayed: &Replayed) -> Option<Self> {
        let effect = Effect::of(replayed)?;
        let broken = replayed.violations.iter().filter(|violation| Effect::of_violation(violation) == Some(effect));
        let rules: Vec<_> = broken.clone().map(|violation| violation.rule).collect();
        let mut fields: Vec<_> =
            broken.flat_map(|violation| &violation.pointers).map(|field| unplaced(field)).collect();
        fields.sort_unstable();
        fields.dedup();
        fields.truncate(MAX_FIELDS);
        let is_of_objects = rules.iter().all(|rule| is_about_objects(rule));
        let release = replayed.release.as_ref().filter(|_| !is_of_objects);
        Some(Self {
            user: user.to_owned(),
            effect,
            rules,
            operation: replayed.operation.clone(),
            resource: replayed.resource.clone(),
            kind: replayed.context.kind.clone(),
            fields,
            release: release.map(ToString::to_string).unwrap_or_default(),
        })
    }

    /// Whether every broken rule is one over the objects of releases.
    pub(super) fn is_about_objects(&self) -> bool {
        self.rules.iter().all(|rule| is_about_objects(rule))
    }
}

/// Whether a rule is one over the objects of releases.
pub(super) fn is_about_objects(rule: &str) -> bool {
    Family::Objects.rules().any(|known| known.as_str() == rule)
}

/// A pointer without the places in lists: `/spec/containers/0/image` and `/spec/containers/1/image` are the same field.
fn unplaced(pointer: &str) -> String {
    let parts = pointer.split('/').map(|part| {
        let is_place = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_place { "*" } else { part }
    });
    parts.collect::<Vec<_>>().join("/")
}

impl Act {
    fn of(replayed: &Replayed, key: &ActKey) -> Self {
        let first = replayed.violations.iter().find(|violation| key.rules.contains(&violation.rule));
        let (sentence, way_out) = first.map(parts).unwrap_or_default();
        let times = Times::from(replayed.at);
        Self { times, objects: Names::default(), namespaces: Names::default(), sentence, way_out }
    }

    fn add(&mut self, replayed: &Replayed) {
        let Replayed { namespace, name, .. } = replayed;
        let slash = if namespace.is_empty() { "" } else { "/" };
        self.times.add(replayed.at);
        self.objects.add(&format!("{namespace}{slash}{name}"));
        self.namespaces.add(namespace);
    }

    /// Adds the same act of another session.
    pub(super) fn extend(&mut self, other: &Self) {
        self.times.extend(&other.times);
        self.objects.extend(&other.objects);
        self.namespaces.extend(&other.namespaces);
    }
}

/// The sentence of a violation, and its way out.
fn parts(violation: &ReplayedViolation) -> (String, String) {
    let ReplayedViolation { rule, message, ways_out, .. } = violation;
    let ways_out = ways_out.to_string();
    let without_rule = message.strip_suffix(&format!(" [{rule}]")).unwrap_or(message);
    let sentence = without_rule.strip_suffix(&ways_out).unwrap_or(without_rule).trim_end();
    let cut = |text: &str| {
        let end = text.floor_char_boundary(MAX_SENTENCE_BYTES.min(text.len()));
        let rest = if end < text.len() { "..." } else { "" };
        format!("{}{rest}", &text[..end])
    };
    (cut(sentence), cut(&ways_out))
}

impl Acts {
    /// Adds a request of an account, if it breaks a rule.
    pub(super) fn add(&mut self, user: &str, replayed: &Replayed) {
        let Some(key) = ActKey::of(user, replayed) else { return };
        if !self.acts.contains_key(&key) && self.acts.len() >= MAX_ACTS {
            self.further += 1;
            return;
        }
        self.acts.entry(key.clone()).or_insert_with(|| Act::of(replayed, &key)).add(replayed);
    }

    /// The acts in order: by account, and by what they have in common.
    pub(super) fn sorted(&self) -> Vec<(&ActKey, &Act)> {
        let mut sorted: Vec<_> = self.acts.iter().collect();
        sorted.sort_by_key(|(key, _)| *key);
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_lists_do_not_tell_acts_apart() {
        assert_eq!(unplaced("/webhooks/12/clientConfig/caBundle"), "/webhooks/*/clientConfig/caBundle");
        assert_eq!(unplaced("/metadata/annotations/a~1b"), "/metadata/annotations/a~1b");
    }
}
