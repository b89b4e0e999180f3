//! The checked policy: which rules are in force, and how.

mod globs;
mod ignore;
mod policies;
mod scalable;
mod scope;
mod settings;
mod whole;

pub use globs::Globs;
pub use ignore::Ignored;
pub use policies::Policies;
pub use scalable::Scalable;
pub use scope::{Scope, When};
pub use settings::{
    Consent, DEFAULT_NAMESPACE, Modes, OnUndecided, Overrides, Recovery, RollbackWay, Rollouts, RuleSettings, Starters,
    Unexplained,
};
pub use whole::Policy;

/// Until everybody names the new rooms.
pub use super::policy_files::*;
pub use super::rule::Mode;
