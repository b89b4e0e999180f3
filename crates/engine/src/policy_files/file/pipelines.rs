//! The values of a pipeline: its name, and who holds its operations.

use serde_json::{Value, json};

use super::nearest::did_you_mean;
use super::read::FromText;
use super::values::{Spelled, compiled_glob};
use crate::object::is_dns_subdomain;
use crate::policy::PipelineHolder;

/// The longest name of a pipeline, in bytes.
const MAX_NAME_BYTES: usize = 63;

/// The value of `holder` that names a glob over groups.
const GROUP_PREFIX: &str = "group:";

/// The name of a pipeline. It has no `/`, because a `/` separates it from the group in a stamp.
pub(in crate::policy_files) struct PipelineName;

impl FromText for PipelineName {
    type Output = String;

    fn schema() -> Value {
        json!({"type": "string", "maxLength": MAX_NAME_BYTES, "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"})
    }

    fn parse(text: &str) -> Result<String, String> {
        if is_dns_subdomain(text, MAX_NAME_BYTES) {
            return Ok(text.to_owned());
        }
        Err(format!(
            "`{text}` is not a name of a pipeline: use lower-case letters, digits, `-` and `.`, at most {MAX_NAME_BYTES} of them"
        ))
    }
}

impl FromText for PipelineHolder {
    type Output = Self;

    fn schema() -> Value {
        json!({"type": "string", "pattern": "^(session|pipeline|group:.+)$", "examples": ["session", "pipeline", "group:gitlab:project:*"]})
    }

    fn parse(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix(GROUP_PREFIX)) {
            ("session", _) => Ok(Self::Session),
            ("pipeline", _) => Ok(Self::Pipeline),
            (_, Some("")) => {
                Err("`group:` names no group; write a glob after it, for example group:gitlab:project:*".to_owned())
            }
            (_, Some(glob)) => compiled_glob(glob).map(Self::Group),
            (_, None) => {
                let meant = did_you_mean(text, ["session", "pipeline"].into_iter());
                Err(format!("`{text}` is no holder: session, pipeline, or group: and a glob over groups{meant}"))
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
