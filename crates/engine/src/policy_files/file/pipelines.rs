//! The values of a pipeline: its name, and who holds its operations.

use serde_json::{Value, json};

use super::nearest::did_you_mean;
use super::read::FromNode;
use super::tree::Node;
use super::values::{Spelled, word};
use crate::object::is_dns_subdomain;
use crate::policy::{Globs, PipelineHolder};
use crate::policy_files::problem::Problems;

/// The longest name of a pipeline, in bytes.
const MAX_NAME_BYTES: usize = 63;

/// The value of `holder` that names a glob over groups.
const GROUP_PREFIX: &str = "group:";

/// The name of a pipeline. It has no `/`, because a `/` separates it from the group in a stamp.
#[derive(Debug)]
pub(in crate::policy_files) struct PipelineName(pub(in crate::policy_files) String);

impl FromNode for PipelineName {
    fn schema() -> Value {
        json!({"type": "string", "maxLength": MAX_NAME_BYTES, "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        let text = word(node, problems)?;
        if is_dns_subdomain(text, MAX_NAME_BYTES) {
            return Some(Self(text.to_owned()));
        }
        let message = format!(
            "`{text}` is not a name of a pipeline: use lower-case letters, digits, `-` and `.`, at most {MAX_NAME_BYTES} of them"
        );
        problems.at(node.span, message);
        None
    }
}

impl FromNode for PipelineHolder {
    fn schema() -> Value {
        json!({"type": "string", "pattern": "^(session|pipeline|group:.+)$", "examples": ["session", "pipeline", "group:gitlab:project:*"]})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        let text = word(node, problems)?;
        match (text, text.strip_prefix(GROUP_PREFIX)) {
            ("session", _) => Some(Self::Session),
            ("pipeline", _) => Some(Self::Pipeline),
            (_, Some("")) => {
                problems.at(
                    node.span,
                    "`group:` names no group; write a glob after it, for example group:gitlab:project:*",
                );
                None
            }
            (_, Some(glob)) => match Globs::new([glob]) {
                Ok(globs) => Some(Self::Group(globs)),
                Err(error) => {
                    problems.at(node.span, format!("`{glob}` is not a glob: {}", error.kind()));
                    None
                }
            },
            (_, None) => {
                let meant = did_you_mean(text, ["session", "pipeline"].into_iter());
                let message =
                    format!("`{text}` is no holder: session, pipeline, or group: and a glob over groups{meant}");
                problems.at(node.span, message);
                None
            }
        }
    }
}

impl Spelled for PipelineHolder {
    fn spelled(&self) -> String {
        match self {
            Self::Session => "session".to_owned(),
            Self::Pipeline => "pipeline".to_owned(),
            Self::Group(globs) => format!("{GROUP_PREFIX}{}", globs.texts().join(",")),
        }
    }
}
