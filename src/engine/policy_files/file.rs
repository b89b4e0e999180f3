//! Parses policy files. Strict: a typing error is an error, not a rule that is silently off.

mod label_keys;
mod nearest;
mod parts;
mod pipelines;
mod read;
mod schema;
mod times;
mod tree;
mod values;

pub use nearest::nearest_to;
pub(super) use parts::{
    CLUSTER_ONLY_KEYS, CaseFile, FreezeFile, IgnoredFile, OverridesFile, PipelineFile, PolicyFile, ProtectedFile,
    RuleFile, ScalableResourceFile, WhenFile, rule_of_setting,
};
pub(super) use pipelines::PipelineName;
pub(super) use read::{GivenKey, KeySpec, Mapping, Spanned};
pub use schema::schema;
pub(super) use times::Moment;
pub(super) use values::{AtLeastOne, GlobList, PolicyKind, SingleGlob, Spelled};

use super::problem::{Problems, SourceFile};
use read::FromNode;
use tree::Node;

/// Parses a file. Wrong values are reported and left out of the result.
pub(super) fn read(source: &SourceFile, kind: PolicyKind, problems: &mut Problems<'_>) -> PolicyFile {
    let file = Node::parse(&source.text, problems).and_then(|node| PolicyFile::read(&node, problems));
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
