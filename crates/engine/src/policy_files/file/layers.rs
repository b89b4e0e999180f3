//! Merges a file over the shipped policy: mappings are merged key by key, a list adds to the shipped one or replaces
//! it, and any other value replaces the shipped one.

use std::sync::LazyLock;

use super::mapping::Mapping;
use super::parts::{PolicyFile, RuleFile};
use super::read::KeySpec;
use super::tree::{Content, KeyValue, Node, ONLY};
use crate::policy_files::files::{SHIPPED_PATH, SHIPPED_POLICY};
use crate::policy_files::problem::{Layer, Problems, SourceFile};
use crate::rule::Mode;

static SHIPPED: LazyLock<Node> = LazyLock::new(|| {
    let source = SourceFile { path: SHIPPED_PATH.into(), text: SHIPPED_POLICY.to_owned() };
    let shipped = Node::parse(&source.text, Layer::Shipped, &mut Problems::of(&source));
    shipped.unwrap_or_else(Node::nothing)
});

/// A cluster policy, completed by the shipped policy.
pub(in crate::policy_files) fn over_shipped(given: &Node, problems: &mut Problems<'_>) -> Node {
    over(&shipped_under(given), given, problems)
}

/// The policy of a namespace, unchanged: it adds to the policy of the cluster, and replaces none of its lists.
pub(super) fn over_cluster(given: Node, problems: &mut Problems<'_>) -> Node {
    let lists = given.entries().iter().chain(rules_of(&given).iter().flat_map(|rule| rule.value.entries()));
    for only in lists.filter_map(|list| list.value.entry(ONLY)) {
        problems.at(only.at, "only cluster.yaml replaces lists, those that are shipped; write the list without `only`");
    }
    given
}

fn rules_of(policy: &Node) -> &[KeyValue] {
    policy.get("rules").map(Node::entries).unwrap_or_default()
}

/// The shipped policy without the cases that are stricter than the mode that a file sets for their rule.
fn shipped_under(given: &Node) -> Node {
    let mut shipped = SHIPPED.clone();
    for KeyValue { key: rule, value, .. } in rules_of(given) {
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

/// Merges a value of a file over a shipped one.
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

/// An empty list probably means the opposite of its effect.
const EMPTY_ADDITION: &str = "an empty list adds nothing to the shipped entries; remove the key to keep these, or write `{only: []}` to drop them";

fn joined(shipped: &[KeyValue], given: &Node, entries: &[KeyValue], problems: &mut Problems<'_>) -> Vec<KeyValue> {
    let known = shipped.iter().map(|below| match given.entry(&below.key) {
        Some(entry) => KeyValue { value: over(&below.value, &entry.value, problems), ..entry.clone() },
        None => below.clone(),
    });
    let others = entries.iter().filter(|entry| !shipped.iter().any(|below| below.key == entry.key));
    others.cloned().chain(known).collect()
}

/// The entries of a file, then the shipped ones, so that those of the file count first. Equal entries appear once.
fn added(shipped: &[Node], given: &[Node]) -> Vec<Node> {
    let others = shipped.iter().filter(|below| !given.iter().any(|item| is_same_entry(item, below)));
    given.iter().chain(others).cloned().collect()
}

/// Whether an entry replaces another: they have the same name, or the same content.
fn is_same_entry(one: &Node, other: &Node) -> bool {
    match (one.get("name"), other.get("name")) {
        (Some(one), Some(other)) => one.says(other),
        _ => one.says(other),
    }
}

/// The lists of a policy that add to shipped ones, by their keys. If a list replaces the shipped one, the entries are
/// in `only`.
pub(in crate::policy_files) struct Lists<'n>(pub(in crate::policy_files) Vec<List<'n>>);

/// The keys of a list, and its entries.
pub(in crate::policy_files) type List<'n> = (Vec<&'n str>, &'n [Node]);

impl<'n> Lists<'n> {
    pub(in crate::policy_files) fn of(policy: &'n Node) -> Self {
        let mut lists = Vec::new();
        for entry in policy.entries() {
            lists.extend(layered_items(entry, PolicyFile::KEYS).map(|items| (vec![&*entry.key], items)));
        }
        for rule in rules_of(policy) {
            for entry in rule.value.entries() {
                let items = layered_items(entry, RuleFile::KEYS);
                lists.extend(items.map(|items| (vec!["rules", &*rule.key, &*entry.key], items)));
            }
        }
        Self(lists)
    }

    /// A list by its keys; empty if the policy does not have it.
    pub(in crate::policy_files) fn get(&self, path: &[&str]) -> &'n [Node] {
        self.0.iter().find(|(known, _)| known == path).map(|(_, items)| *items).unwrap_or_default()
    }
}

/// A policy without the lists that add to shipped ones.
pub(in crate::policy_files) fn without_lists(policy: &Node) -> Node {
    let mut policy = without_layered(policy, PolicyFile::KEYS);
    if let Some(Node { content: Content::Mapping(rules), .. }) = policy.get_mut("rules") {
        rules.iter_mut().for_each(|rule| rule.value = without_layered(&rule.value, RuleFile::KEYS));
    }
    policy
}

fn without_layered(node: &Node, keys: &[KeySpec]) -> Node {
    let kept = node.entries().iter().filter(|entry| !is_layered(entry, keys)).cloned().collect();
    Node { content: Content::Mapping(kept), ..node.clone() }
}

/// The items of a list that adds to a shipped one; `None` for any other entry.
fn layered_items<'n>(entry: &'n KeyValue, keys: &[KeySpec]) -> Option<&'n [Node]> {
    is_layered(entry, keys).then(|| entry.value.listed())
}

fn is_layered(entry: &KeyValue, keys: &[KeySpec]) -> bool {
    keys.iter().any(|key| key.name == entry.key && key.layered)
}
