//! What a policy says of a rule.

use jiff::{SignedDuration, Timestamp};

use super::scope::{Scope, When};
use crate::engine::release::ReleaseRef;
use crate::engine::rule::{Mode, RuleId};

/// The namespace that Interlock is installed in, unless somebody chooses another one.
pub const DEFAULT_NAMESPACE: &str = "interlock-system";

/// What an enforced rule does when it could not learn what it needs; the later the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnUndecided {
    /// Admit, with a warning.
    Allow,
    /// Refuse, with the reason.
    Deny,
}

/// How a rule is applied to which requests.
#[derive(Debug, Clone)]
pub struct Modes {
    /// Where no case holds.
    pub mode: Mode,
    /// To some requests; the first condition that holds counts.
    pub cases: Vec<(When, Mode)>,
}

impl Modes {
    /// How the rule is applied to a request.
    #[must_use]
    pub fn of(&self, scope: &Scope<'_>) -> Mode {
        let case = self.cases.iter().find(|(when, _)| when.holds(scope));
        case.map_or(self.mode, |(_, mode)| *mode)
    }
}

/// The settings that every rule has.
#[derive(Debug, Clone)]
pub struct RuleSettings {
    /// As the cluster has it, or the namespace that the rule is delegated to.
    pub modes: Modes,
    /// What a namespace has tightened; the stricter of the two counts.
    pub tightened: Option<Modes>,
    /// `None`: refuse the CREATE of a record, admit everything else.
    pub on_undecided: Option<OnUndecided>,
}

impl RuleSettings {
    /// The settings of a rule that a policy does not mention.
    #[must_use]
    pub fn shipped(rule: RuleId) -> Self {
        let modes = Modes { mode: rule.specification().mode, cases: Vec::new() };
        Self { modes, tightened: None, on_undecided: None }
    }

    /// How the rule is applied to a request.
    #[must_use]
    pub fn mode(&self, scope: &Scope<'_>) -> Mode {
        let mode = self.modes.of(scope);
        self.tightened.as_ref().map_or(mode, |tightened| tightened.of(scope).max(mode))
    }
}

/// The settings of `pending-recovery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoverySettings {
    /// An operation older than this, by the server's clock, counts as stuck.
    pub stale_after: SignedDuration,
    /// Whether a rollback may be started over an operation in flight.
    pub rollback: AllowRollback,
    /// Closes rollback altogether: over an operation in flight, and for people over a failed record.
    pub roll_forward_only: bool,
}

impl RecoverySettings {
    /// Whether an operation that started then is stale. What has no start is not: it cannot be shown to be.
    #[must_use]
    pub fn is_stale(&self, started: Option<Timestamp>, now: Timestamp) -> bool {
        started.is_some_and(|started| now.duration_since(started) >= self.stale_after)
    }

    /// Whether no rollback is ever admitted over an operation in flight.
    #[must_use]
    pub fn closes_rollback(&self) -> bool {
        self.roll_forward_only || self.rollback == AllowRollback::Never
    }
}

impl Default for RecoverySettings {
    fn default() -> Self {
        Self {
            // Three times helm's default timeout, which is per hook and per wait and is stored nowhere.
            stale_after: SignedDuration::from_mins(15),
            rollback: AllowRollback::WhenStale,
            roll_forward_only: false,
        }
    }
}

/// When a rollback may be started over an operation in flight; the later the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AllowRollback {
    /// At any time, as Helm does without us.
    Always,
    /// Once the operation is stale.
    WhenStale,
    /// Never.
    Never,
}

/// Who may start operations; the later the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StartedBy {
    /// Whoever may write records.
    Anybody,
    /// Managers alone, and the account that a HelmRelease names for its release.
    Managers,
}

/// The settings of `dropped-bundles`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedBundlesSettings {
    /// A release is left out, and no chart is said to have failed.
    pub unexplained: OnUnexplained,
    /// What is left out was never delivered, so that nothing can be removed.
    pub first_install: OnFirstInstall,
}

impl Default for DroppedBundlesSettings {
    fn default() -> Self {
        Self { unexplained: OnUnexplained::Deny, first_install: OnFirstInstall::Allow }
    }
}

/// What becomes of a commit that leaves out a release where nothing tells why; the later the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnUnexplained {
    /// It is undecided: admitted with a warning, unless `onUndecided` says otherwise.
    Warn,
    /// It is refused.
    Deny,
}

/// Whether something is admitted; the later the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnFirstInstall {
    /// It is.
    Allow,
    /// It is refused.
    Deny,
}

/// What ReleaseOverrides may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideSettings {
    /// Whether there may be any.
    pub allowed: bool,
    /// How long one may hold.
    pub max_duration: SignedDuration,
    /// Whether who makes one may not use it.
    pub second_person: bool,
    /// The namespace of those for what is in no namespace.
    pub namespace: String,
}

impl OverrideSettings {
    /// The release with the namespace in which overrides of it are looked for.
    #[must_use]
    pub fn home_of(&self, release: &ReleaseRef) -> ReleaseRef {
        let namespace = if release.namespace.is_empty() { &self.namespace } else { &release.namespace };
        ReleaseRef::new(namespace, &release.name)
    }

    /// What both bounds allow.
    #[must_use]
    pub fn stricter(&self, other: &Self) -> Self {
        Self {
            allowed: self.allowed && other.allowed,
            max_duration: self.max_duration.min(other.max_duration),
            second_person: self.second_person || other.second_person,
            namespace: self.namespace.clone(),
        }
    }
}

impl Default for OverrideSettings {
    fn default() -> Self {
        Self {
            allowed: true,
            // Longer than an incident's night shift would make it a way of working.
            max_duration: SignedDuration::from_hours(4),
            second_person: false,
            namespace: DEFAULT_NAMESPACE.to_owned(),
        }
    }
}
