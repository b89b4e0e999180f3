//! Policy files: from YAML texts to policies, with the location of every problem.

mod changed;
mod checks;
mod cluster;
mod excerpt;
mod file;
mod files;
mod freezes;
mod identity;
mod in_force;
mod loaded;
mod migrate;
mod namespace;
mod problem;
mod reasons;
mod settings;
mod show;
mod stored_freeze;

use std::path::Path;
use std::sync::Arc;

use jiff::SignedDuration;

pub use changed::ChangedMeaning;
pub use checks::{impossible_group, impossible_kind, impossible_user};
pub use excerpt::{ExcerptStyle, excerpts};
pub use file::{nearest_to, schema};
pub use files::bad_file_name;
pub use files::{NAMESPACES_DIR, PolicyFiles};
pub use identity::{HeldBy, Identity, PipelineIdentity, identity};
pub use in_force::{
    FreezeInForce, InForce, RuleInForce, SettingDoc, SettingInForce, SettingOrigin, in_force, settings_of,
};
pub use loaded::LoadedPolicies;
pub use migrate::MigrationError;
pub use problem::{Location, PolicyError, Problem};
pub use show::{EffectivePolicy, EffectiveSetting};
pub use stored_freeze::{BadFreeze, FreezeName};

use super::policy::{Policies, Policy};
use file::Spelled;

/// A duration in the spelling of policies.
#[must_use]
pub(crate) fn spelled(duration: SignedDuration) -> String {
    duration.spelled()
}

impl Policy {
    /// Checks the text of a cluster policy; `source` names it in errors.
    ///
    /// # Errors
    /// Every problem in the file, with its location.
    pub fn parse(text: &str, source: &Path) -> Result<Self, PolicyError> {
        let mut files = PolicyFiles::default();
        files.set_cluster(source.to_owned(), text.to_owned());
        Policies::of_files(&files).map(|policies| Arc::unwrap_or_clone(policies.cluster))
    }

    /// The shipped policy, for a start without policy files.
    ///
    /// # Errors
    /// Never in a build whose tests passed: a test parses it.
    pub fn shipped() -> Result<Self, PolicyError> {
        Policies::of_files(&PolicyFiles::shipped()).map(|policies| Arc::unwrap_or_clone(policies.cluster))
    }
}

#[cfg(test)]
mod tests;
