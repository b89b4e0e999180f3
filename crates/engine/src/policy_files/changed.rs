//! The former meaning of a cluster policy, before the shipped policy became its base. A list that the file lacked was
//! empty, and a list in the file replaced the shipped list.

use super::file::{Lists, Node, given, over_shipped};
use super::files::PolicyFiles;
use super::problem::Problems;
use crate::rules;

/// How many entries of a list are shown.
const MAX_SHOWN: usize = 3;

/// A list of a policy, or the modes of a rule, with another meaning than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedMeaning {
    /// `managers`, `rules.manual-edit.cases`.
    pub path: String,
    pub before: String,
    pub now: String,
}

impl PolicyFiles {
    /// The parts of the cluster policy with another meaning than before.
    #[must_use]
    pub fn changed_meanings(&self) -> Vec<ChangedMeaning> {
        let Some(source) = &self.cluster else { return Vec::new() };
        let mut problems = Problems::of(source);
        let Some(given) = given(source, &mut problems) else { return Vec::new() };
        // The shipped file has no other keys.
        if given.entries().iter().all(|entry| ["apiVersion", "kind"].contains(&entry.key.as_str())) {
            return Vec::new();
        }
        let now = over_shipped(&given, &mut problems);
        changed(&given, &now).map(|path| ChangedMeaning::of(&path, &given, &now)).collect()
    }
}

/// The lists with another meaning than before, by their keys.
pub(super) fn changed<'n>(given: &'n Node, now: &'n Node) -> impl Iterator<Item = Vec<&'n str>> {
    let before = Lists::of(given);
    let changed = Lists::of(now).0.into_iter().filter(move |(path, items)| {
        let mode = mode_of(path, now);
        !are_same(effective(before.get(path), mode.as_deref()), effective(items, mode.as_deref()))
    });
    changed.map(|(path, _)| path)
}

fn are_same(one: &[Node], other: &[Node]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.says(other))
}

/// The mode next to the cases of a rule; `None` for other lists.
fn mode_of(path: &[&str], policy: &Node) -> Option<String> {
    let [rules, rule, "cases"] = path else { return None };
    let stated = policy.at(&[rules, rule, "mode"]).and_then(Node::text);
    stated.map(str::to_owned).or_else(|| Some(rules::named(rule)?.specification().mode.as_str().to_owned()))
}

/// The entries that count. The last cases of a rule do not count if they have the mode of the rule.
fn effective<'n>(items: &'n [Node], mode: Option<&str>) -> &'n [Node] {
    let idle =
        items.iter().rev().take_while(|case| mode.is_some() && case.get("mode").and_then(Node::text) == mode).count();
    &items[..items.len() - idle]
}

impl ChangedMeaning {
    fn of(path: &[&str], given: &Node, now: &Node) -> Self {
        let shown = |policy: &Node| {
            let lists = Lists::of(policy);
            let mode = mode_of(path, policy);
            let items = effective(lists.get(path), mode.as_deref());
            mode.map_or_else(|| listed(items), |mode| modes(items, &mode))
        };
        Self { path: path.join("."), before: shown(given), now: shown(now) }
    }
}

fn listed(items: &[Node]) -> String {
    let shown: Vec<_> = items.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
    match items.len().saturating_sub(MAX_SHOWN) {
        0 if shown.is_empty() => "none".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn modes(cases: &[Node], mode: &str) -> String {
    let cases: Vec<_> = cases.iter().map(shown_case).chain([mode.to_owned()]).collect();
    cases.join(", otherwise ")
}

/// A case on one line: `audit when {users: [a]}`.
pub(super) fn shown_case(case: &Node) -> String {
    let part = |key: &str| case.get(key).map(ToString::to_string).unwrap_or_default();
    format!("{} when {}", part("mode"), part("when"))
}
