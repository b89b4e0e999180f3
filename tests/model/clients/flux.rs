//! Flux's helm-controller: what it does next follows from the newest record, and from the status of its HelmRelease.
//!
//! Sources: `internal/reconcile/{state,atomic_release,unlock}.go` of helm-controller 1.6, and its traffic that was recorded on a real
//! API server. It writes the status of the HelmRelease only after an action has ended, so a killed action is not in it, and
//! what it finds then is not what it left: it forgets its history and upgrades.

use interlock_engine::release::Status;

use super::helm::{Helm, Way};
use super::sdk::{Action, INSTALLS, REPLACES, UPGRADES, actions, sdk};
use crate::client::{Act, Client, Goal, Operation, Reaction, View, Write};
use crate::cluster::{Body, Chart, Driver, Record, Revision, Words};
use crate::users::User;

/// A HelmRelease, and the helm-controller that reconciles it.
pub(crate) struct Flux {
    /// The controller, or the account of the tenant that it acts as.
    pub(crate) user: User,
    pub(crate) chart: Chart,
    pub(crate) remedy: Remedy,
    /// Whether actions may fail.
    pub(crate) fails: bool,
}

/// What is done about a failed upgrade. A failed install is uninstalled, unless it is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    RollBack,
    Uninstall,
    /// `RetryOnFailure`.
    Retry,
}

/// What the status of the HelmRelease says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct History {
    /// The release that the last action left.
    last: Option<Snapshot>,
    /// The revision that a rollback goes back to.
    good: Option<Revision>,
    /// The last attempt was an install.
    installs: bool,
}

/// What a digest in the history tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Snapshot {
    revision: Revision,
    life: u8,
    failed: bool,
}

impl Snapshot {
    /// The digest of a record is of its name, version, times, status and description.
    fn is_of(self, record: &Record) -> bool {
        let body = record.body;
        let status = if self.failed { Status::Failed } else { Status::Deployed };
        (body.revision, body.life, body.status, body.words) == (self.revision, self.life, status, Words::Usual)
    }
}

impl History {
    fn of(memory: u16) -> Self {
        let bits = |at: u16, mask: u16| u8::try_from(memory >> at & mask).unwrap_or_default();
        let revision = |at| Some(bits(at, 15)).filter(|revision| *revision > 0);
        let last = revision(0).map(|revision| Snapshot { revision, life: bits(4, 3), failed: bits(6, 1) == 1 });
        Self { last, good: revision(7), installs: bits(11, 1) == 1 }
    }

    fn memory(self) -> u16 {
        let last = self
            .last
            .map_or(0, |last| u16::from(last.revision) | u16::from(last.life) << 4 | u16::from(last.failed) << 6);
        last | u16::from(self.good.unwrap_or_default()) << 7 | u16::from(self.installs) << 11
    }

    /// After an action that wrote this record.
    fn after(self, new: Body, failed: bool) -> Self {
        let last = Snapshot { revision: new.revision, life: new.life, failed };
        let good = if failed { self.good } else { Some(new.revision) };
        Self { last: Some(last), good, installs: new.status == Status::PendingInstall }
    }
}

impl Client for Flux {
    fn name(&self) -> &'static str {
        "flux"
    }

    fn user(&self) -> User {
        self.user
    }

    fn goal(&self) -> Option<Goal> {
        Some(|cluster| cluster.is_settled(Driver::Secret))
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        let mut operations = self.reconcile(view);
        // Somebody deletes the HelmRelease.
        operations.extend(self.uninstall("delete the HelmRelease", view));
        operations
    }

    fn look(&self, what: u8, copies: &[Body], view: &View<'_>) -> Vec<Vec<Act>> {
        self.helm().look(what, copies, view)
    }
}

impl Flux {
    fn helm(&self) -> Helm {
        sdk(self.user, Driver::Secret, self.chart)
    }

    fn reconcile(&self, view: &View<'_>) -> Vec<Operation> {
        let history = History::of(view.memory);
        let Some(newest) = view.cluster.newest(Driver::Secret) else {
            return self.actions(History::default(), &INSTALLS, view);
        };
        let is_known = history.last.is_some_and(|last| last.is_of(newest));
        match newest.status() {
            status if status.is_pending() => vec![unlock(newest)],
            Status::Uninstalled => self.actions(History::default(), &REPLACES, view),
            Status::Failed if is_known => self.remedies(history, view),
            Status::Deployed if is_known => {
                let mut operations = self.upgrades(history, view);
                let drift = view.cluster.object.is_none_or(|object| object.edited);
                operations.extend(drift.then(|| Operation {
                    name: "correct drift",
                    acts: vec![Act::or_stop(Write::Apply(newest.body.chart))],
                }));
                operations
            }
            // Not what it left: it clears its history.
            _ => self.upgrades(History::default(), view),
        }
    }

    /// Upgrades, because the HelmRelease has changed, or because the release is not what it left.
    fn upgrades(&self, history: History, view: &View<'_>) -> Vec<Operation> {
        let mut operations = self.actions(history, &UPGRADES, view);
        operations.extend(self.cancelled(view).filter(|_| self.fails));
        operations
    }

    /// SIGTERM: the new record fails at once, then the thread that applies fails too. No status is written.
    fn cancelled(&self, view: &View<'_>) -> Option<Operation> {
        let mut acts = self.helm().plan(Way::UpgradeFails, view)?;
        let failed = acts.last()?.clone();
        acts.insert(acts.len() - 2, failed);
        Some(Operation { name: "upgrade, ended by SIGTERM", acts })
    }

    fn remedies(&self, history: History, view: &View<'_>) -> Vec<Operation> {
        // A new attempt without a remedy: retries, or a changed HelmRelease, which resets the failures.
        let mut operations = self.upgrades(history, view);
        match self.remedy {
            Remedy::Retry => {}
            Remedy::RollBack if !history.installs => {
                // Without one: MissingRollbackTarget.
                let good = history.good.and_then(|good| view.cluster.record(Driver::Secret, good));
                operations.extend(good.into_iter().flat_map(|good| self.rollbacks(history, good, view)));
            }
            _ => operations.extend(self.uninstall("uninstall what failed", view)),
        }
        operations
    }

    fn rollbacks(&self, history: History, good: &Record, view: &View<'_>) -> Vec<Operation> {
        let ways = [("roll back", Way::Rollback), ("roll back, which fails", Way::RollbackFails)];
        let plan = |(name, way): (&'static str, Way)| {
            let acts = self.helm().rollback_to(way, good, view)?;
            Some(Operation { name, acts: remembered(acts, history, way == Way::RollbackFails) })
        };
        ways.into_iter().take(if self.fails { 2 } else { 1 }).filter_map(plan).collect()
    }

    /// Of a record of any status, pending ones too.
    fn uninstall(&self, name: &'static str, view: &View<'_>) -> Option<Operation> {
        let mut acts = self.helm().plan(Way::Uninstall, view)?;
        acts.push(Act::Remember(History::default().memory()));
        Some(Operation { name, acts })
    }

    fn actions(&self, history: History, ways: &[Action], view: &View<'_>) -> Vec<Operation> {
        let mut operations = actions(&self.helm(), self.fails, ways, view);
        for (index, operation) in operations.iter_mut().enumerate() {
            // The second one of each fails.
            operation.acts = remembered(std::mem::take(&mut operation.acts), history, index == 1);
        }
        operations
    }
}

/// At once, without asking whose operation it is.
fn unlock(newest: &Record) -> Operation {
    let unlocked = Body { words: Words::Unlocked, ..newest.body.to(Status::Failed) };
    Operation { name: "unlock", acts: vec![Act::or_stop(Write::Update(unlocked))] }
}

/// The status of the HelmRelease is written when the action has ended, or has failed on the way.
fn remembered(acts: Vec<Act>, history: History, failed: bool) -> Vec<Act> {
    let created = acts.iter().find_map(|act| match act {
        Act::Write(Write::Create(body), _) => Some(*body),
        _ => None,
    });
    let Some(new) = created else {
        return acts;
    };
    let (ends, fails) = (history.after(new, failed), history.after(new, true));
    let text = |act| match act {
        Act::Write(write, Reaction::Instead(mut instead)) => {
            instead.push(Act::Remember(fails.memory()));
            Act::Write(write, Reaction::Instead(instead))
        }
        act => act,
    };
    acts.into_iter().map(text).chain([Act::Remember(ends.memory())]).collect()
}
