//! The references of a profile to ConfigMaps, Secrets and Flux sources, and their bundles.

use std::borrow::Cow;

use serde::Deserialize;

use super::Bundle;
use super::bundle::Source;
use super::summary::is_template;
use crate::json::null_is_default;

/// The kinds whose content Sveltos deploys.
const KINDS: [&str; 5] = ["ConfigMap", "Secret", "GitRepository", "OCIRepository", "Bucket"];

/// A reference of a profile to objects to deploy.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PolicyRef<'a> {
    /// `ConfigMap`, `Secret`, or one of Flux's sources.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// May be a template. Empty for the namespace of the cluster.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    /// May be a template.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// `Remote`, or `Local` for the management cluster.
    #[serde(borrow)]
    pub deployment_type: Cow<'a, str>,
    /// Whether it may be absent.
    #[serde(deserialize_with = "null_is_default")]
    pub optional: bool,
}

/// A reference that must have a bundle. Two references to one object with different paths share one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reference {
    kind: String,
    namespace: WrittenName,
    name: WrittenName,
}

/// A name in a profile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct WrittenName {
    written: String,
    /// With the cluster's names filled in. Other templates remain.
    expanded: String,
}

/// Where the content of a bundle comes from, in relation to a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From this reference.
    Same,
    /// From another reference, a chart, or Sveltos itself.
    Other,
    /// The bundle does not say.
    Unknown,
}

impl PolicyRef<'_> {
    /// The required reference on a cluster; `None` if it is optional or deploys nothing there.
    #[must_use]
    pub(crate) fn required(&self, cluster_namespace: &str, cluster: &str) -> Option<Reference> {
        let deploys = KINDS.contains(&self.kind.as_ref()) && !self.optional && self.deployment_type != "Local";
        let values = [(".Cluster.metadata.namespace", cluster_namespace), (".Cluster.metadata.name", cluster)];
        let name = |text: &str| WrittenName { written: text.to_owned(), expanded: expanded(text, &values) };
        let namespace = match self.namespace.as_ref() {
            "" => WrittenName { written: String::new(), expanded: cluster_namespace.to_owned() },
            namespace => name(namespace),
        };
        deploys.then(|| Reference { kind: self.kind.to_string(), namespace, name: name(&self.name) })
    }
}

impl Reference {
    /// Whether Sveltos computes the namespace or the name.
    #[must_use]
    pub(crate) fn is_template(&self) -> bool {
        is_template(&self.namespace.expanded) || is_template(&self.name.expanded)
    }

    /// The length of the fixed parts of its names. A template with more fixed parts matches fewer objects.
    #[must_use]
    pub(crate) fn fixed_length(&self) -> usize {
        [&self.namespace, &self.name].into_iter().flat_map(|it| fixed_parts(&it.expanded)).map(str::len).sum()
    }

    /// Whether the reference can mean an object. Unknown names and templates match anything.
    #[must_use]
    pub(crate) fn can_be(&self, kind: &str, namespace: &str, name: &str) -> bool {
        (kind.is_empty() || self.kind == kind)
            && (namespace.is_empty() || self.namespace.can_be(namespace))
            && self.name.can_be(name)
    }

    /// Whether a bundle has the content of this reference.
    #[must_use]
    pub(crate) fn origin_of(&self, bundle: &Bundle) -> Origin {
        if bundle.is_own || bundle.release.is_some() {
            return Origin::Other;
        }
        let known = bundle.source.as_ref().map(|Source { kind, namespace, name }| {
            self.can_be(kind, namespace, name) && (!namespace.is_empty() || !has_index(bundle) || self.is_index(bundle))
        });
        match known.or_else(|| has_index(bundle).then(|| self.is_index(bundle))) {
            Some(true) => Origin::Same,
            Some(false) => Origin::Other,
            None => Origin::Unknown,
        }
    }

    /// Whether the index of a bundle matches the reference. Sveltos writes it with expanded or with unexpanded names.
    fn is_index(&self, bundle: &Bundle) -> bool {
        let Self { kind, namespace, name } = self;
        bundle.index == format!("{kind}-{}-{}", namespace.written, name.written)
            || can_expand_to(&format!("{kind}-{}-{}", namespace.expanded, name.expanded), &bundle.index)
    }
}

impl WrittenName {
    fn can_be(&self, name: &str) -> bool {
        self.written == name || can_expand_to(&self.expanded, name)
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {}/{}", self.kind, self.namespace.expanded, self.name.expanded)
    }
}

/// Whether the index of a bundle shows where its content comes from.
fn has_index(bundle: &Bundle) -> bool {
    bundle.index.split_once('-').is_some_and(|(kind, _)| KINDS.contains(&kind))
}

/// The parts of a text outside of its templates.
fn fixed_parts(text: &str) -> impl Iterator<Item = &str> {
    text.split("{{").enumerate().map(|(index, part)| match part.split_once("}}") {
        Some((_, fixed)) if index > 0 => fixed,
        None if index > 0 => "",
        _ => part,
    })
}

/// A text in which these templates are replaced by their values.
fn expanded(text: &str, values: &[(&str, &str)]) -> String {
    let mut parts = text.split("{{");
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let value = |inner: &str| values.iter().find(|(path, _)| inner.trim_matches(['-', ' ']) == *path);
        match part.split_once("}}").and_then(|(inner, rest)| Some((value(inner)?.1, rest))) {
            Some((value, rest)) => expanded.extend([value, rest]),
            None => expanded.extend(["{{", part]),
        }
    }
    expanded
}

/// Whether a text has templates with branches, so that only some of its parts apply.
fn has_branches(text: &str) -> bool {
    let word = |part: &str| part.trim_start_matches(['-', ' ']).split([' ', '-', '}']).next().map(str::to_owned);
    let mut words = text.split("{{").skip(1).filter_map(word);
    words.any(|word| matches!(word.as_str(), "if" | "else" | "end" | "range" | "with"))
}

/// Whether a text with templates can expand to a name: its fixed parts occur in the name in their order.
pub(super) fn can_expand_to(text: &str, name: &str) -> bool {
    if !is_template(text) || text == name {
        return text == name;
    }
    let parts: Vec<_> = fixed_parts(text).collect();
    let [first, middle @ .., last] = parts.as_slice() else { return false };
    let Some(mut rest) = name.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else { return false };
    for part in middle.iter().filter(|_| !has_branches(text)) {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}
