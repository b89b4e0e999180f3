//! Parses policy files strictly: a typing error is an error, and never a rule that is silently off.

mod conditions;
mod label_keys;
mod layers;
mod limits;
mod mapping;
mod nearest;
mod parts;
mod pipelines;
mod read;
mod schema;
mod times;
mod tree;
mod values;

pub(super) use conditions::namespaces;
pub(super) use layers::{Lists, over_shipped, without_lists};
pub(super) use limits::{Limit, Limits};
pub(super) use mapping::Mapping;
pub use nearest::nearest_to;
pub(super) use parts::{
    CLUSTER_ONLY_KEYS, CaseFile, ExemptFile, FreezeFile, IgnoredFile, LabelSelectorFile, OverridesFile, PipelineFile,
    PolicyFile, ProtectedFile, RuleFile, ScalableResourceFile, TEAM_FREEZES, TeamFreezesFile, WhenFile,
    rule_of_setting,
};
pub(super) use read::{Key, KeySpec, Spanned};
pub use schema::schema;
pub(super) use times::Moment;
pub(super) use tree::{Content, KeyValue, Node, ONLY};
pub(super) use values::{GlobList, PolicyKind, Spelled};

use super::problem::{Layer, Problems, SourceFile};
use crate::policy::NamespaceCondition;
use crate::rule::RuleId;
use read::FromNode;

/// A file with the location of each setting.
pub(super) struct ParsedFile<'f> {
    pub(super) source: &'f SourceFile,
    /// The effective content: the policy of the cluster is merged over the shipped one.
    pub(super) tree: Node,
    pub(super) file: PolicyFile,
}

impl PolicyFile {
    /// Whether the file is for the namespaces that it lists or selects, and not for the namespace of its file name.
    pub(super) fn is_shared(&self) -> bool {
        self.namespaces.is_some() || self.namespace_selector.is_some()
    }

    /// The namespaces that a shared file is for.
    pub(super) fn served(&self) -> NamespaceCondition {
        namespaces(&self.namespaces, &self.namespace_selector)
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = (RuleId, &RuleFile)> {
        self.rules.items().iter().map(|(rule, at)| (*rule, &at.value))
    }

    /// The cases of all rules.
    pub(super) fn cases(&self) -> impl Iterator<Item = &CaseFile> {
        self.rules().flat_map(|(_, rule)| rule.cases.items())
    }
}

/// The content of a file, without the shipped policy.
pub(super) fn given(source: &SourceFile, problems: &mut Problems<'_>) -> Option<Node> {
    Node::parse(&source.text, Layer::File, problems)
}

/// The effective content of a file.
pub(super) fn tree(source: &SourceFile, kind: PolicyKind, problems: &mut Problems<'_>) -> Option<Node> {
    let given = given(source, problems)?;
    Some(match kind {
        PolicyKind::Cluster => over_shipped(&given, problems),
        PolicyKind::Namespace => layers::over_cluster(given, problems),
    })
}

/// Parses the text of one freeze, as a file with nothing else.
pub(super) fn read_freeze(source: &SourceFile, problems: &mut Problems<'_>) -> PolicyFile {
    let Some(node) = given(source, problems) else { return PolicyFile::default() };
    let freeze = FreezeFile::read(&node, problems).map(|freeze| Spanned {
        value: vec![freeze],
        span: node.span,
        key: node.span,
        text: node.to_string(),
        items: Vec::new(),
    });
    PolicyFile { freezes: freeze.into(), ..PolicyFile::default() }
}

/// Parses a file. Wrong values are reported and left out of the result.
pub(super) fn read<'f>(source: &'f SourceFile, kind: PolicyKind, problems: &mut Problems<'_>) -> ParsedFile<'f> {
    let tree = tree(source, kind, problems);
    let file = tree.as_ref().and_then(|tree| PolicyFile::read(tree, problems)).unwrap_or_default();
    if let Some(given) = file.kind.as_ref().filter(|given| given.value != kind) {
        problems.at(given.span, format!("expected {} in this file, got {}", kind.spelled(), given.text));
    }
    for (rule, settings) in file.rules() {
        for (setting, key) in settings.given() {
            if let Some(owner) = rule_of_setting(setting).filter(|owner| *owner != rule) {
                problems.at(key, format!("`{setting}` is a setting of {owner}, not of {rule}"));
            }
        }
    }
    ParsedFile { source, tree: tree.unwrap_or_else(Node::nothing), file }
}
