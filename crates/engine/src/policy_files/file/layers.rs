//! What a file says over the shipped policy: mappings are joined key by key, a list adds to the shipped one or replaces it, and
//! everything else replaces what is shipped.

use std::sync::LazyLock;

use super::parts::{PolicyFile, RuleFile};
use super::read::{KeySpec, Mapping};
use super::tree::{Content, KeyValue, Node, ONLY};
use crate::policy_files::files::{SHIPPED_PATH, SHIPPED_POLICY};
use crate::policy_files::problem::{Layer, Problems, SourceFile};
use crate::rule::Mode;

static SHIPPED: LazyLock<Node> = LazyLock::new(|| {
    let source = SourceFile { path: SHIPPED_PATH.into(), text: SHIPPED_POLICY.to_owned() };
    let shipped = Node::parse(&source.text, Layer::Shipped, &mut Problems::of(&source));
    shipped.unwrap_or_else(Node::nothing)
});

/// A cluster policy with everything that it leaves out, as shipped.
pub(in crate::policy_files) fn over_shipped(given: &Node, problems: &mut Problems<'_>) -> Node {
    over(&shipped_beside(given), given, problems)
}

/// The policy of a namespace as it is: it adds to the policy of the cluster, and replaces none of its lists.
pub(super) fn over_cluster(given: Node, problems: &mut Problems<'_>) -> Node {
    let rules = given.get("rules").map(entries).unwrap_or_default();
    let lists = entries(&given).iter().chain(rules.iter().flat_map(|rule| entries(&rule.value)));
    for only in lists.filter_map(|list| list.value.entry(ONLY)) {
        problems.at(only.at, "only cluster.yaml replaces lists, those that are shipped; write the list without `only`");
    }
    given
}

fn entries(node: &Node) -> &[KeyValue] {
    match &node.content {
        Content::Mapping(entries) => entries,
        _ => &[],
    }
}

/// The shipped policy without the cases that are stricter than the mode that a file states for their rule.
fn shipped_beside(given: &Node) -> Node {
    let mut shipped = SHIPPED.clone();
    for KeyValue { key: rule, value, .. } in given.get("rules").map(entries).unwrap_or_default() {
        let mode = value.get("mode").and_then(mode_of);
        let cases = shipped.get_mut("rules").and_then(|rules| rules.get_mut(rule)?.get_mut("cases"));
        if let (Some(mode), Some(Node { content: Content::List(cases), .. })) = (mode, cases) {
            cases.retain(|case| case.get("mode").and_then(mode_of).is_none_or(|of_case| of_case <= mode));
        }
    }
    shipped
}

fn mode_of(node: &Node) -> Option<Mode> {
    [Mode::Off, Mode::Audit, Mode::Warn, Mode::Enforce].into_iter().find(|mode| Some(mode.as_str()) == node.text())
}

/// A value of a file over a shipped one.
fn over(shipped: &Node, given: &Node, problems: &mut Problems<'_>) -> Node {
    let content = match (&shipped.content, &given.content) {
        (Content::Mapping(_) | Content::List(_), Content::Null) => shipped.content.clone(),
        (Content::Mapping(shipped), Content::Mapping(entries)) => {
            Content::Mapping(joined(shipped, given, entries, problems))
        }
        (Content::List(shipped), Content::List(items)) => {
            if items.is_empty() && !shipped.is_empty() {
                problems.at(given.span, EMPTY_ADDITION);
            }
            Content::List(added(shipped, items))
        }
        (_, content) => content.clone(),
    };
    Node { content, ..given.clone() }
}

/// What somebody probably means by an empty list is the opposite of what it would do.
const EMPTY_ADDITION: &str = "an empty list adds nothing to the shipped entries; remove the key to keep these, or write `{only: []}` to drop them";

fn joined(shipped: &[KeyValue], given: &Node, entries: &[KeyValue], problems: &mut Problems<'_>) -> Vec<KeyValue> {
    let known = shipped.iter().map(|below| match given.entry(&below.key) {
        Some(entry) => KeyValue { value: over(&below.value, &entry.value, problems), ..entry.clone() },
        None => below.clone(),
    });
    let others = entries.iter().filter(|entry| !shipped.iter().any(|below| below.key == entry.key));
    others.cloned().chain(known).collect()
}

/// The entries of a file before the shipped ones, so that they count first. An entry that is shipped too stands once.
fn added(shipped: &[Node], given: &[Node]) -> Vec<Node> {
    let others = shipped.iter().filter(|below| !given.iter().any(|item| is_same_entry(item, below)));
    given.iter().chain(others).cloned().collect()
}

/// Whether an entry takes the place of another one: they have one name, or say the same.
fn is_same_entry(one: &Node, other: &Node) -> bool {
    match (one.get("name"), other.get("name")) {
        (Some(one), Some(other)) => one.says(other),
        _ => one.says(other),
    }
}

/// The lists of a policy that add to shipped ones, by their keys. A list that is replaced counts as the list in `only`.
pub(in crate::policy_files) struct Lists<'n>(pub(in crate::policy_files) Vec<List<'n>>);

/// The keys of a list, and its entries.
pub(in crate::policy_files) type List<'n> = (Vec<&'n str>, &'n [Node]);

impl<'n> Lists<'n> {
    pub(in crate::policy_files) fn of(policy: &'n Node) -> Self {
        let listed = |entry: &'n KeyValue, keys: &[KeySpec]| {
            let is_layered = keys.iter().any(|key| key.name == entry.key && key.is_layered());
            is_layered.then(|| items(entry.value.get(ONLY).unwrap_or(&entry.value)))
        };
        let mut lists = Vec::new();
        for entry in entries(policy) {
            lists.extend(listed(entry, PolicyFile::KEYS).map(|items| (vec![&*entry.key], items)));
        }
        for rule in policy.get("rules").map(entries).unwrap_or_default() {
            for entry in entries(&rule.value) {
                let path = || vec!["rules", &rule.key, &entry.key];
                lists.extend(listed(entry, RuleFile::KEYS).map(|items| (path(), items)));
            }
        }
        Self(lists)
    }

    /// A list by its keys; empty if the policy does not have it.
    pub(in crate::policy_files) fn get(&self, path: &[&str]) -> &'n [Node] {
        self.0.iter().find(|(known, _)| known == path).map(|(_, items)| *items).unwrap_or_default()
    }
}

/// A policy without these lists.
pub(in crate::policy_files) fn without_lists(policy: &Node) -> Node {
    let without = |node: &Node, keys: &[KeySpec]| {
        let is_kept = |entry: &&KeyValue| !keys.iter().any(|key| key.name == entry.key && key.is_layered());
        let kept = entries(node).iter().filter(is_kept).cloned().collect();
        Node { content: Content::Mapping(kept), ..node.clone() }
    };
    let mut policy = without(policy, PolicyFile::KEYS);
    if let Some(Node { content: Content::Mapping(rules), .. }) = policy.get_mut("rules") {
        rules.iter_mut().for_each(|rule| rule.value = without(&rule.value, RuleFile::KEYS));
    }
    policy
}

fn items(node: &Node) -> &[Node] {
    match &node.content {
        Content::List(items) => items,
        _ => &[],
    }
}
