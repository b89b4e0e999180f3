//! Parses policy files strictly: a typing error is an error, and never a rule that is silently off.

mod label_keys;
mod layers;
mod nearest;
mod parts;
mod pipelines;
mod read;
mod schema;
mod times;
mod tree;
mod values;

pub(super) use layers::{Lists, over_shipped, without_lists};
pub use nearest::nearest_to;
pub(super) use parts::{
    CLUSTER_ONLY_KEYS, CaseFile, ExemptFile, FreezeFile, IgnoredFile, LabelSelectorFile, OverridesFile, PipelineFile,
    PolicyFile, ProtectedFile, RuleFile, ScalableResourceFile, TEAM_FREEZES, TeamFreezesFile, WhenFile,
    rule_of_setting,
};
pub(super) use pipelines::PipelineName;
pub(super) use read::{GivenKey, KeySpec, Mapping, Spanned};
pub use schema::schema;
pub(super) use times::Moment;
pub(super) use tree::{Content, KeyValue, Node, ONLY};
pub(super) use values::{AtLeastOne, GlobList, PolicyKind, SingleGlob, Spelled};

use super::problem::{Layer, Problems, SourceFile};
use read::FromNode;

impl PolicyFile {
    /// Whether the file is for the namespaces that it lists or selects, and not for the namespace of its file name.
    pub(super) fn is_shared(&self) -> bool {
        self.namespaces.is_some() || self.namespace_selector.is_some()
    }
}

/// The content of a file, without the shipped policy.
pub(super) fn given(source: &SourceFile, problems: &mut Problems<'_>) -> Option<Node> {
    Node::parse(&source.text, Layer::File, problems)
}

/// The effective content of a file: the policy of the cluster is merged over the shipped one.
pub(super) fn tree(source: &SourceFile, kind: PolicyKind, problems: &mut Problems<'_>) -> Option<Node> {
    let given = given(source, problems)?;
    Some(match kind {
        PolicyKind::Cluster => over_shipped(&given, problems),
        PolicyKind::Namespace => layers::over_cluster(given, problems),
    })
}

/// Parses the text of one freeze, as a file with nothing else.
pub(super) fn read_freeze(source: &SourceFile, problems: &mut Problems<'_>) -> PolicyFile {
    let node = Node::parse(&source.text, Layer::File, problems);
    let freeze = node.and_then(|node| Some((FreezeFile::read(&node, problems)?, node)));
    let freezes = freeze.map(|(freeze, node)| Spanned {
        value: vec![freeze],
        span: node.span,
        key: node.span,
        text: node.to_string(),
        items: Vec::new(),
    });
    PolicyFile { freezes, ..PolicyFile::default() }
}

/// Parses a file. Wrong values are reported and left out of the result.
pub(super) fn read(source: &SourceFile, kind: PolicyKind, problems: &mut Problems<'_>) -> PolicyFile {
    let file = tree(source, kind, problems).and_then(|node| PolicyFile::read(&node, problems));
    let file = file.unwrap_or_default();
    if let Some(given) = file.kind.as_ref().filter(|given| given.value != kind) {
        problems.at(given.span, format!("expected {} in this file, got {}", kind.spelled(), given.text));
    }
    for (rule, settings) in file.rules.iter().flat_map(|rules| &rules.value.0) {
        for given in settings.value.given() {
            if let Some(owner) = rule_of_setting(given.name).filter(|owner| owner != rule) {
                problems.at(given.key, format!("`{}` is a setting of {owner}, not of {rule}", given.name));
            }
        }
    }
    file
}
