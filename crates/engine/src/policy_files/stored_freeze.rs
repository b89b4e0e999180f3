//! A Freeze that is stored in the cluster: its `spec` is a freeze of a policy file.

use std::path::PathBuf;

use serde_json::Value;

use super::checks::check;
use super::file::read_freeze;
use super::freezes;
use super::namespace::refuse_cluster_only_keys;
use super::problem::{PolicyError, Problems, SourceFile};
use crate::json::redacted;
use crate::policy::Freeze;

/// The longest `spec`, in bytes of JSON. Anybody with a namespace may write one, and all are kept in memory.
const MAX_SPEC_BYTES: usize = 4 << 10;

/// The name of the object with a `spec`.
#[derive(Debug, Clone, Copy)]
pub struct FreezeName<'n> {
    pub namespace: &'n str,
    pub name: &'n str,
}

/// Why a Freeze cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFreeze {
    /// The text is not JSON.
    #[error("it cannot be parsed: {0}")]
    Unreadable(String),
    #[error("its spec has more than {MAX_SPEC_BYTES} bytes")]
    TooLarge,
    /// It breaks the checks of policy files. The problems name the lines of the Freeze as YAML.
    #[error(transparent)]
    Wrong(#[from] PolicyError),
}

impl Freeze {
    /// The freeze of a namespace from the `spec` of an object, as JSON text. It is checked as in the policy file of the
    /// namespace.
    ///
    /// # Errors
    /// Every problem in the `spec`.
    pub fn of_spec(FreezeName { namespace, name }: FreezeName<'_>, spec: &str) -> Result<Self, BadFreeze> {
        if spec.len() > MAX_SPEC_BYTES {
            return Err(BadFreeze::TooLarge);
        }
        let spec: Value = serde_json::from_str(spec).map_err(|error| BadFreeze::Unreadable(redacted(&error)))?;
        let spec = serde_saphyr::to_string(&spec).map_err(|error| BadFreeze::Unreadable(error.to_string()))?;
        let source = SourceFile { path: PathBuf::from("spec"), text: format!("name: {}\n{spec}", Value::from(name)) };
        let mut problems = Problems::of(&source);
        let file = read_freeze(&source, &mut problems);
        refuse_cluster_only_keys(&file, &mut problems);
        check(&file, Some(namespace), &mut problems);
        match freezes::of_file(&file, Some(namespace)).next() {
            Some(freeze) if problems.is_empty() => Ok(freeze),
            _ => Err(PolicyError { problems: problems.into_lists().0 }.into()),
        }
    }
}
