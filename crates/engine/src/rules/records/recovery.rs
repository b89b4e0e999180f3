//! The next step for an operation that counts as stuck. Refusals and `inspect::diagnosis` both use it.
//!
//! Deleting the record of a dead upgrade makes the revision below it look live again, so the workloads must be healthy. If they
//! are not, a rollback applies that revision again, in any state that the dead upgrade has left.

use crate::owners::Driver;
use crate::owners::OwnerWords;
use crate::policy::RecoverySettings;
use crate::release::{Entry, History, Revision, Status, Storage};
use crate::rules::wording::command;
use crate::ways_out::{Step, StepKind, Way};

/// What the checks of the runbook say about the record of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordCondition {
    /// The checks were not run.
    Unknown,
    /// The record may be deleted.
    Sound,
    /// A workload is not healthy.
    Unhealthy,
    /// The body cannot be read, or has another status than the label.
    Unreadable,
}

/// An operation that counts as stuck.
#[derive(Debug, Clone, Copy)]
pub struct StuckOperation<'a> {
    pub words: OwnerWords<'a>,
    pub history: &'a History,
    /// The record in flight.
    pub newest: &'a Entry,
    pub settings: &'a RecoverySettings,
    pub condition: RecordCondition,
    /// Whether the record may be deleted even if checks fail: by its holder, or with an override of `pending-recovery`.
    pub is_opened: bool,
    /// Whether the release is live in Helm's other storage and not deployed in this one. An uninstall would then delete objects
    /// of the release in the other storage.
    pub is_live_in_sibling: bool,
    /// The HelmRelease whose controller recovers the release by itself.
    pub driver: Option<&'a Driver>,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayOn<'a> {
    /// The controller of the HelmRelease unlocks the record and tries again.
    Reconcile(&'a Driver),
    /// `interlock unstick`.
    Unstick,
    RollBack(Revision),
    /// Start an uninstall, or finish one.
    Uninstall,
    /// Delete the record: the owner has no command that uninstalls.
    Delete,
    /// Only an override allows the deletion of the record.
    Override,
}

impl<'a> StuckOperation<'a> {
    /// The next step for the people who own the release.
    pub fn way_on(&self) -> WayOn<'a> {
        let has_commands = self.words.has_commands();
        if self.newest.status == Status::Uninstalling {
            return if has_commands { WayOn::Uninstall } else { WayOn::Delete };
        }
        if let Some(driver) = self.driver {
            return WayOn::Reconcile(driver);
        }
        let below = |status| self.history.below(self.newest.revision).find(|entry| entry.status == status);
        let (deployed, superseded) = (below(Status::Deployed), below(Status::Superseded));
        let rollback =
            |to: &Entry| (has_commands && !self.settings.closes_rollback()).then_some(WayOn::RollBack(to.revision));
        match (self.condition, deployed, superseded) {
            (RecordCondition::Unhealthy, Some(deployed), _) => rollback(deployed).unwrap_or_else(|| self.delete()),
            (RecordCondition::Unhealthy | RecordCondition::Unreadable, ..) => self.delete(),
            (_, Some(_), _) => WayOn::Unstick,
            (_, None, _) if !has_commands && superseded.is_none() || self.is_live_in_sibling => WayOn::Unstick,
            (_, None, Some(superseded)) => rollback(superseded).unwrap_or(WayOn::Unstick),
            (_, None, None) => WayOn::Uninstall,
        }
    }

    /// Deletes the record although checks fail.
    fn delete(&self) -> WayOn<'a> {
        if self.is_opened { WayOn::Unstick } else { WayOn::Override }
    }
}

impl WayOn<'_> {
    /// The step as a refusal prints it.
    pub(crate) fn way(self, stuck: &StuckOperation<'_>) -> Way {
        let command = self.command(stuck);
        let again = stuck.words.run_again(stuck.newest.status, "");
        match self {
            Self::Reconcile(driver) => driver.unstick().into(),
            Self::Unstick => unstick(stuck.words, stuck.newest.status),
            Self::RollBack(_) => Step::run("roll back with {}", command).into(),
            Self::Uninstall if stuck.newest.status == Status::Uninstalling => {
                Step::run("run {}, which finishes it", command).into()
            }
            Self::Uninstall => {
                Way::from(Step::run("run {}", command)).then(Step::of(StepKind::NextOperation, "install again"))
            }
            Self::Delete => Way::from(Step::run("run {}", command)).then(again),
            Self::Override => Step::release_override().into(),
        }
    }

    /// The command, quoted for a shell.
    pub fn command(self, stuck: &StuckOperation<'_>) -> String {
        let words = stuck.words;
        match self {
            Self::Reconcile(driver) => driver.reconcile_command(),
            Self::Unstick => unstick_command(words),
            Self::RollBack(revision) => words.rollback_command(revision),
            Self::Uninstall => words.remove_command(),
            Self::Delete => words.delete_command(&[&stuck.newest.name]),
            Self::Override => override_command(words),
        }
    }
}

/// The step if the checks were not run.
pub(crate) fn unstick(words: OwnerWords<'_>, status: Status) -> Way {
    let text = "run {}, which checks the workloads and deletes the record, or names the next step";
    Way::from(Step::run(text, unstick_command(words))).then(words.run_again(status, ""))
}

/// The command that deletes a record that is in the way of its release, and keeps a copy.
#[must_use]
pub fn unstick_command(words: OwnerWords<'_>) -> String {
    let release = format!("{}/{}", words.namespace, words.release);
    let unstick = ["interlock", "unstick", &release];
    // Without this flag, the command prefers a pending record in a Secret.
    let storage = if words.storage == Storage::ConfigMap { &["--storage", "configmap"][..] } else { &[] };
    command(&[&unstick[..], storage].concat())
}

fn override_command(words: OwnerWords<'_>) -> String {
    let release = format!("{}/{}", words.namespace, words.release);
    let reason = "the operation is stuck, and its record fails its checks";
    command(&["interlock", "override", &release, "--rule", "pending-recovery", "--for", "15m", "--reason", reason])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::AllowRollback;
    use RecordCondition::{Sound, Unhealthy, Unknown, Unreadable};
    use Status::{Deployed, Failed, PendingInstall, PendingUpgrade, Superseded, Uninstalling};

    fn way_on(
        storage: Storage,
        records: &[Status],
        condition: RecordCondition,
        settings: RecoverySettings,
        is_opened: bool,
    ) -> String {
        let entries = records.iter().zip(1..).map(|(status, revision)| Entry::of_web(revision, *status)).collect();
        let history = History::new(entries);
        let words = OwnerWords { storage, namespace: "shop", release: "web" };
        let newest = history.newest().unwrap();
        let stuck = StuckOperation {
            words,
            history: &history,
            newest,
            settings: &settings,
            condition,
            is_opened,
            is_live_in_sibling: false,
            driver: None,
        };
        stuck.way_on().command(&stuck)
    }

    #[test]
    fn a_release_live_in_the_other_storage_is_not_uninstalled() {
        let history = History::new(vec![Entry::of_web(1, PendingInstall)]);
        let words = OwnerWords { storage: Storage::ConfigMap, namespace: "shop", release: "web" };
        let (newest, settings) = (history.newest().unwrap(), RecoverySettings::default());
        let stuck = StuckOperation {
            words,
            history: &history,
            newest,
            settings: &settings,
            condition: Sound,
            is_opened: false,
            is_live_in_sibling: true,
            driver: None,
        };
        assert_eq!(stuck.way_on(), WayOn::Unstick);
        let alone = StuckOperation { is_live_in_sibling: false, ..stuck };
        assert_eq!(alone.way_on(), WayOn::Uninstall);
    }

    #[test]
    fn each_stuck_operation_has_one_next_step() {
        const UNSTICK: &str = "interlock unstick shop/web";
        const BACK: &str = "helm rollback web 1 -n shop";
        const OPEN: &str = "interlock override shop/web --rule pending-recovery";
        let (open, closed) = (
            RecoverySettings::default(),
            RecoverySettings { rollback: AllowRollback::Never, ..RecoverySettings::default() },
        );
        let upgrade = &[Deployed, PendingUpgrade][..];
        let (helm, olm) = (Storage::Secret, Storage::Index);
        for (storage, records, condition, settings, is_opened, wanted) in [
            (helm, upgrade, Unknown, open, false, UNSTICK),
            (helm, upgrade, Sound, open, false, UNSTICK),
            (helm, upgrade, Unhealthy, open, false, BACK),
            (helm, upgrade, Unhealthy, closed, false, OPEN),
            (helm, upgrade, Unhealthy, closed, true, UNSTICK),
            (helm, upgrade, Unreadable, open, false, OPEN),
            (helm, upgrade, Unreadable, open, true, UNSTICK),
            (olm, upgrade, Sound, open, false, UNSTICK),
            (olm, upgrade, Unhealthy, open, false, OPEN),
            (olm, upgrade, Unhealthy, open, true, UNSTICK),
            (helm, &[Superseded, PendingUpgrade], Sound, open, false, BACK),
            (helm, &[Superseded, PendingUpgrade], Sound, closed, false, UNSTICK),
            (helm, &[PendingInstall], Sound, open, false, "helm uninstall web -n shop"),
            (helm, &[Failed, PendingUpgrade], Sound, open, false, "helm uninstall web -n shop"),
            (olm, &[PendingInstall], Sound, open, false, UNSTICK),
            (helm, &[Deployed, Uninstalling], Unknown, closed, false, "helm uninstall web -n shop"),
            (olm, &[Uninstalling], Unknown, open, false, "kubectl delete secret -n shop sh.helm.release.v1.web.v1"),
        ] {
            let text = way_on(storage, records, condition, settings, is_opened);
            assert!(text.starts_with(wanted), "{storage:?} {records:?} {condition:?} {is_opened}: {text}");
        }
    }
}
