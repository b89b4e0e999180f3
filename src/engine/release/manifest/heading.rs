//! The fields that name the object of a document, read without parsing the rest.

use std::borrow::Cow;

use super::key::DocumentKey;
use crate::engine::object::group_of;

/// Kinds that have moved, and the groups that serve or served the same objects: a chart may name any of them.
const MOVED_KINDS: [(&str, [&str; 2]); 7] = [
    ("DaemonSet", ["extensions", "apps"]),
    ("Deployment", ["extensions", "apps"]),
    ("Event", ["", "events.k8s.io"]),
    ("Ingress", ["extensions", "networking.k8s.io"]),
    ("NetworkPolicy", ["extensions", "networking.k8s.io"]),
    ("PodSecurityPolicy", ["extensions", "policy"]),
    ("ReplicaSet", ["extensions", "apps"]),
];

/// The fields that name an object.
#[derive(Debug, Clone, Default)]
pub(super) struct Heading<'m> {
    pub(super) api_version: Cow<'m, str>,
    pub(super) kind: Cow<'m, str>,
    pub(super) names: Names<'m>,
}

/// `metadata`, as far as it names an object.
#[derive(Debug, Clone, Default)]
pub(super) struct Names<'m> {
    pub(super) name: Option<Cow<'m, str>>,
    pub(super) namespace: Option<Cow<'m, str>>,
}

impl<'m> Heading<'m> {
    /// Reads the heading from the lines of a YAML document. `None` if the document is not written like those of charts: keys
    /// at the margin, the members of `metadata` indented, all of these keys plain words, and each value that is read here whole in
    /// its line. Other keys may stand for one that is read here: a merge key adds members, and `"name"` is `name`.
    pub(super) fn from_lines(document: &'m str) -> Option<Self> {
        let mut heading = Self::default();
        // The indentation of the members of `metadata`.
        let mut indent = None;
        let mut in_metadata = false;
        // The indentation of the value that the line before ended with. It goes on in a line that is indented deeper.
        let mut value_at = None;
        for line in document.lines() {
            let depth = line.len() - line.trim_start().len();
            let text = line.trim();
            // YAML ends a line here too.
            if line.contains('\r') {
                return None;
            }
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            if value_at.take().is_some_and(|value_at| depth > value_at) {
                return None;
            }
            if depth == 0 {
                // The items of a list may stand at the margin.
                if !has_plain_key(text) && !text.starts_with('-') {
                    return None;
                }
                in_metadata = text == "metadata:";
                if let Some(version) = line.strip_prefix("apiVersion:") {
                    (heading.api_version, value_at) = (scalar(version)?, Some(depth));
                } else if let Some(kind) = line.strip_prefix("kind:") {
                    (heading.kind, value_at) = (scalar(kind)?, Some(depth));
                } else if in_metadata {
                    // The last of several counts.
                    (heading.names, indent) = (Names::default(), None);
                } else if line.starts_with("metadata:") {
                    return None;
                }
            } else if in_metadata && depth == *indent.get_or_insert(depth) {
                if !has_plain_key(text) {
                    return None;
                }
                if let Some(name) = text.strip_prefix("name:") {
                    (heading.names.name, value_at) = (Some(scalar(name)?), Some(depth));
                } else if let Some(namespace) = text.strip_prefix("namespace:") {
                    (heading.names.namespace, value_at) = (Some(scalar(namespace)?), Some(depth));
                }
            }
        }
        (!heading.kind.is_empty()).then_some(heading)
    }

    /// Whether the document is a list of objects.
    pub(super) fn is_list(&self) -> bool {
        self.kind.ends_with("List")
    }

    /// Completes the heading of an item by that of its list: the items of a `ConfigMapList` need not say that they are
    /// ConfigMaps.
    pub(super) fn complete_from(&mut self, list: &Self) {
        if self.kind.is_empty() && self.api_version.is_empty() {
            self.kind = Cow::Owned(list.kind.strip_suffix("List").unwrap_or_default().to_owned());
            self.api_version = list.api_version.clone();
        }
    }

    /// Whether it names an object at all.
    pub(super) fn names_object(&self) -> bool {
        !self.kind.is_empty() && self.names.name.is_some()
    }

    /// Whether it names this object.
    pub(super) fn is_of(&self, wanted: &DocumentKey) -> bool {
        self.kind == wanted.kind
            && is_same_group(&self.kind, group_of(&self.api_version), &wanted.group)
            && self.names.name.as_deref() == Some(wanted.name.as_str())
            // Cluster-scoped objects have no namespace, even if their document says so.
            && (wanted.namespace.is_empty() || self.names.namespace_or(&wanted.default_namespace) == wanted.namespace)
    }
}

/// Whether two groups serve, or served, the same objects of a kind.
pub(crate) fn is_same_group(kind: &str, one: &str, other: &str) -> bool {
    let both = |groups: &[&str]| groups.contains(&one) && groups.contains(&other);
    one == other || MOVED_KINDS.iter().any(|(moved, groups)| *moved == kind && both(groups))
}

impl Names<'_> {
    /// The namespace, or the default if the document has none or an empty one.
    pub(super) fn namespace_or<'n>(&'n self, default: &'n str) -> &'n str {
        self.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(default)
    }
}

/// Whether a line begins with a key that is written as it reads, and a colon right after it.
fn has_plain_key(line: &str) -> bool {
    let is_word = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    line.split_once(':')
        .is_some_and(|(key, value)| is_word(key) && (value.is_empty() || value.starts_with([' ', '\t'])))
}

/// A scalar on one line, without its quotes and the comment behind it; `None` if only a parser can read it.
fn scalar(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    let is_comment =
        |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t']) && rest.trim_start().starts_with('#');
    if let Some(quote) = text.chars().next().filter(|first| ['"', '\''].contains(first)) {
        let (inside, rest) = text[1..].split_once(quote)?;
        return (is_comment(rest) && !inside.contains('\\')).then_some(Cow::Borrowed(inside));
    }
    let end = text.match_indices('#').map(|(at, _)| at).find(|at| text[..*at].ends_with([' ', '\t']) || *at == 0);
    let text = text[..end.unwrap_or(text.len())].trim_end();
    (!text.starts_with(['&', '*', '!', '|', '>', '{', '['])).then_some(Cow::Borrowed(text))
}
