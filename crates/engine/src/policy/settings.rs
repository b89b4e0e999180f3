//! The settings of rules in a policy.

use jiff::{SignedDuration, Timestamp};

use super::reason_pattern::ReasonPattern;
use super::scope::{Scope, When};
use crate::release::ReleaseRef;
use crate::rule::{Mode, RuleId};

/// The default namespace of an installation.
pub const DEFAULT_NAMESPACE: &str = "interlock-system";

/// What happens if an enforced rule cannot be evaluated; a later variant is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnUndecided {
    /// Admit, with a warning.
    Allow,
    /// Refuse, with the reason.
    Deny,
}

/// The modes of a rule.
#[derive(Debug, Clone)]
pub struct Modes {
    /// The mode if no case matches.
    pub mode: Mode,
    /// Modes for some requests. The first condition that matches counts.
    pub cases: Vec<(When, Mode)>,
}

impl Modes {
    /// The mode for a request.
    #[must_use]
    pub fn of(&self, scope: &Scope<'_>) -> Mode {
        let case = self.cases.iter().find(|(when, _)| when.holds(scope));
        case.map_or(self.mode, |(_, mode)| *mode)
    }
}

/// The settings that every rule has.
#[derive(Debug, Clone)]
pub struct RuleSettings {
    /// The modes of the cluster, or of the namespace that the rule is delegated to.
    pub modes: Modes,
    /// Modes that a namespace adds. The stricter mode counts.
    pub tightened: Option<Modes>,
    /// `None` stands for the default of the rule.
    pub on_undecided: Option<OnUndecided>,
}

impl RuleSettings {
    /// The settings of a rule that a policy does not mention.
    #[must_use]
    pub fn shipped(rule: RuleId) -> Self {
        let modes = Modes { mode: rule.specification().mode, cases: Vec::new() };
        Self { modes, tightened: None, on_undecided: None }
    }

    /// The mode for a request.
    #[must_use]
    pub fn mode(&self, scope: &Scope<'_>) -> Mode {
        let mode = self.modes.of(scope);
        self.tightened.as_ref().map_or(mode, |tightened| tightened.of(scope).max(mode))
    }
}

/// The settings of `pending-recovery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoverySettings {
    /// An operation older than this, by the clock of the API server, counts as stuck.
    pub stale_after: SignedDuration,
    /// The maximum to which the timeouts of a HelmRelease can extend `stale_after`.
    pub max_patience: SignedDuration,
    pub rollback: AllowRollback,
    /// Refuses every rollback over an operation in flight, and rollbacks by people over a failed revision.
    pub roll_forward_only: bool,
}

impl RecoverySettings {
    /// Whether an operation with this start is stale. An operation without a known start is not stale.
    #[must_use]
    pub fn is_stale(&self, started: Option<Timestamp>, now: Timestamp) -> bool {
        started.is_some_and(|started| now.duration_since(started) >= self.stale_after)
    }

    /// The age at which an operation counts as stuck, if its client may be silent for these timeouts.
    #[must_use]
    pub fn patience(&self, timeouts: impl Iterator<Item = SignedDuration>) -> SignedDuration {
        let longest = timeouts.max().unwrap_or_default().min(self.max_patience);
        longest.max(self.stale_after)
    }

    /// Whether a rollback over an operation in flight is never admitted.
    #[must_use]
    pub fn closes_rollback(&self) -> bool {
        self.roll_forward_only || self.rollback == AllowRollback::Never
    }
}

impl Default for RecoverySettings {
    fn default() -> Self {
        Self {
            // Three times helm's default timeout. That timeout applies per hook and per wait, and is stored nowhere.
            stale_after: SignedDuration::from_mins(15),
            // A timeout has no upper limit. For longer timeouts, Interlock waits only this long.
            max_patience: SignedDuration::from_hours(6),
            rollback: AllowRollback::WhenStale,
            roll_forward_only: false,
        }
    }
}

/// When a rollback may start over an operation in flight; a later variant is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AllowRollback {
    /// At any time, as Helm allows it.
    Always,
    /// Once the operation is stale.
    WhenStale,
    /// Never.
    Never,
}

/// Who may start operations; a later variant is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StartedBy {
    /// Every user who may write records.
    Anybody,
    /// Only managers, and the account that a HelmRelease names for its release.
    Managers,
}

/// Exceptions from the rules about objects that people declare in HelmReleases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriftExceptions {
    /// Whether people may edit the fields in `spec.driftDetection.ignore` of a HelmRelease.
    pub honour_drift_ignore: bool,
    pub when_suspended: WhenSuspended,
}

impl Default for DriftExceptions {
    fn default() -> Self {
        Self { honour_drift_ignore: true, when_suspended: WhenSuspended::Enforce }
    }
}

/// What happens to manual edits while the HelmRelease of a release is suspended; a later variant is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhenSuspended {
    /// They are admitted with a warning.
    Warn,
    /// The rules apply as always.
    Enforce,
}

/// The settings of `dropped-bundles`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedBundlesSettings {
    /// A release is missing, and no chart is reported as failed.
    pub unexplained: OnUnexplained,
    /// The missing parts were never delivered, so nothing can be removed.
    pub first_install: OnFirstInstall,
}

impl Default for DroppedBundlesSettings {
    fn default() -> Self {
        Self { unexplained: OnUnexplained::Deny, first_install: OnFirstInstall::Allow }
    }
}

/// What happens to a commit that leaves out a release without a known reason; a later variant is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnUnexplained {
    /// The rule is undecided: the commit is admitted with a warning, unless `onUndecided` refuses it.
    Warn,
    /// The commit is refused.
    Deny,
}

/// What happens to an incomplete first install; a later variant is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnFirstInstall {
    /// The commit is admitted.
    Allow,
    /// The commit is refused.
    Deny,
}

/// How many of the children of an object may go without a confirmation, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(pub u8);

impl Share {
    /// The share of a number: at least one of three or more.
    #[must_use]
    pub fn of(self, number: usize) -> usize {
        let share = number * usize::from(self.0) / 100;
        if number >= 3 { share.max(1) } else { share }
    }
}

impl Default for Share {
    fn default() -> Self {
        Self(50)
    }
}

/// The limits of ReleaseOverrides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideSettings {
    pub allowed: bool,
    pub max_duration: SignedDuration,
    /// Whether the creator of an override may not use it.
    pub second_person: bool,
    /// The namespace of overrides for cluster-scoped releases.
    pub namespace: String,
    /// The patterns for the reason of a new override: of the cluster and of the namespace. They are not checked when an override
    /// is used, so a new pattern closes no existing override.
    pub reason_patterns: Vec<ReasonPattern>,
    /// How long after its end an override is kept. Only the cluster policy sets this.
    pub retain_expired: SignedDuration,
}

impl OverrideSettings {
    /// The release with the namespace of its overrides.
    #[must_use]
    pub fn home_of(&self, release: &ReleaseRef) -> ReleaseRef {
        let namespace = if release.namespace.is_empty() { &self.namespace } else { &release.namespace };
        ReleaseRef::new(namespace, &release.name)
    }

    /// The stricter of both settings.
    #[must_use]
    pub fn stricter(&self, other: &Self) -> Self {
        Self {
            allowed: self.allowed && other.allowed,
            max_duration: self.max_duration.min(other.max_duration),
            second_person: self.second_person || other.second_person,
            namespace: self.namespace.clone(),
            reason_patterns: other.reason_patterns.clone(),
            retain_expired: self.retain_expired,
        }
    }
}

impl Default for OverrideSettings {
    fn default() -> Self {
        Self {
            allowed: true,
            // About the length of an incident. Longer overrides would replace the normal process.
            max_duration: SignedDuration::from_hours(4),
            second_person: false,
            namespace: DEFAULT_NAMESPACE.to_owned(),
            reason_patterns: Vec::new(),
            // Three months: the period in which people ask who overrode which rules.
            retain_expired: SignedDuration::from_hours(90 * 24),
        }
    }
}
