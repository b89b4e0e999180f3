//! What a policy says of a rule.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::When;
use crate::rules::RuleId;

/// How a rule is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Refuses.
    Enforce,
    /// Admits with a warning that kubectl and helm show.
    Warn,
    /// Admits silently; the decision is logged and counted.
    Audit,
    /// Is not evaluated.
    Off,
}

impl Mode {
    /// As policies spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Audit => "audit",
            Self::Off => "off",
        }
    }
}

/// What an enforced rule does when it could not learn what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnUndecided {
    /// Refuse, with the reason.
    Deny,
    /// Admit, with a warning.
    Allow,
}

/// The settings that every rule has.
#[derive(Debug, Clone)]
pub struct RuleSettings {
    /// How it is applied where no case holds.
    pub mode: Mode,
    /// How it is applied to some requests; the first condition that holds counts.
    pub cases: Vec<(When, Mode)>,
    /// `None`: refuse the CREATE of a record, admit everything else.
    pub on_undecided: Option<OnUndecided>,
}

impl RuleSettings {
    /// The settings of a rule that a policy does not mention: those that advise only warn.
    #[must_use]
    pub fn of(rule: RuleId) -> Self {
        let advises =
            [RuleId::ResumeInterrupted, RuleId::RemoveWhileLive, RuleId::RetryStrategy, RuleId::ExtensionSafety];
        let mode = if advises.contains(&rule) { Mode::Warn } else { Mode::Enforce };
        Self { mode, cases: Vec::new(), on_undecided: None }
    }
}

/// The settings of `pending-recovery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// An operation older than this, by the server's clock, counts as stuck.
    pub stale_after: SignedDuration,
    /// Whether a rollback may be started over an operation in flight.
    pub rollback: RollbackWay,
    /// Closes rollback altogether: over an operation in flight, and for people over a failed record.
    pub roll_forward_only: bool,
}

impl Recovery {
    /// Whether an operation that started then is stale. What has no start is not: it cannot be shown to be.
    #[must_use]
    pub fn is_stale(&self, started: Option<Timestamp>, now: Timestamp) -> bool {
        started.is_some_and(|started| now.duration_since(started) >= self.stale_after)
    }

    /// Whether no rollback is ever admitted over an operation in flight.
    #[must_use]
    pub fn closes_rollback(&self) -> bool {
        self.roll_forward_only || self.rollback == RollbackWay::Never
    }
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            // Three times helm's default timeout, which is per hook and per wait and is stored nowhere.
            stale_after: SignedDuration::from_mins(15),
            rollback: RollbackWay::WhenStale,
            roll_forward_only: false,
        }
    }
}

/// When a rollback may be started over an operation in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RollbackWay {
    /// Never.
    Never,
    /// Once the operation is stale.
    WhenStale,
    /// At any time, as Helm does without us.
    Always,
}

/// The settings of `dropped-bundles`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rollouts {
    /// A release is left out, and no chart is said to have failed.
    pub unexplained: Unexplained,
    /// What is left out was never delivered, so that nothing can be removed.
    pub first_install: Consent,
}

impl Default for Rollouts {
    fn default() -> Self {
        Self { unexplained: Unexplained::Deny, first_install: Consent::Allow }
    }
}

/// What becomes of a commit that leaves out a release where nothing tells why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unexplained {
    /// It is refused.
    Deny,
    /// It is undecided: admitted with a warning, unless `onUndecided` says otherwise.
    Warn,
}

/// Whether something is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consent {
    /// It is.
    Allow,
    /// It is refused.
    Deny,
}
