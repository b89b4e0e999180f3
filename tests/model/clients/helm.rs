//! helm 3 and 4: the actions of their CLI as sequences of writes.
//!
//! Sources: `pkg/action/{install,upgrade,rollback,uninstall,release_testing}.go` and `pkg/storage/storage.go` of helm 3.22 and 4.3, and
//! the traffic of both that was recorded on a real API server.

use interlock_engine::release::Status;

use crate::client::{Act, Client, Goal, Operation, Reaction, View, Write};
use crate::cluster::{Body, Chart, Driver, Record, Revision, Words};
use crate::users::User;

/// `helm` in one terminal, or one run of a pipeline after the other.
pub(crate) struct Helm {
    pub(crate) user: User,
    pub(crate) driver: Driver,
    /// The chart that it installs and upgrades to.
    pub(crate) chart: Chart,
    pub(crate) ways: &'static [Way],
}

/// An action with its flags, and how it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Install,
    /// `install --replace`, and `upgrade --install` over an uninstalled release.
    Replace,
    /// The objects cannot be applied, or do not get ready.
    InstallFails,
    /// `install --rollback-on-failure`: uninstalls all of it.
    InstallAtomic,
    /// SIGTERM in the instant after the promotion: fails what it has promoted.
    InstallCancelled,
    Upgrade,
    /// With a hook before and after.
    UpgradeHooks,
    UpgradeFails,
    /// `--rollback-on-failure`.
    UpgradeAtomic,
    /// `--cleanup-on-fail`.
    UpgradeCleanup,
    /// `--history-max 2`.
    UpgradePrunes,
    /// To the newest revision below that did not fail.
    Rollback,
    /// `--history-max 2`.
    RollbackPrunes,
    /// The objects cannot be applied.
    RollbackFails,
    /// Objects do not get ready.
    RollbackWaits,
    /// A hook fails: nothing is recorded.
    RollbackHook,
    Uninstall,
    KeepHistory,
    /// An object cannot be deleted.
    UninstallFails,
    Test,
}

use Way::{
    Install, InstallAtomic, InstallCancelled, InstallFails, KeepHistory, Replace, Rollback, RollbackFails,
    RollbackHook, RollbackPrunes, RollbackWaits, Test, Uninstall, UninstallFails, Upgrade, UpgradeAtomic,
    UpgradeCleanup, UpgradeFails, UpgradeHooks, UpgradePrunes,
};

/// Every action, as a story of what happened calls it.
const NAMES: [(Way, &str); 20] = [
    (Install, "install"),
    (Replace, "install --replace"),
    (InstallFails, "install, which fails"),
    (InstallAtomic, "install --rollback-on-failure, which fails"),
    (InstallCancelled, "install, cancelled as it ends"),
    (Upgrade, "upgrade"),
    (UpgradeHooks, "upgrade with hooks"),
    (UpgradeFails, "upgrade, which fails"),
    (UpgradeAtomic, "upgrade --rollback-on-failure, which fails"),
    (UpgradeCleanup, "upgrade --cleanup-on-fail, which fails"),
    (UpgradePrunes, "upgrade --history-max 2"),
    (Rollback, "rollback"),
    (RollbackPrunes, "rollback --history-max 2"),
    (RollbackFails, "rollback, which fails to apply"),
    (RollbackWaits, "rollback, which times out"),
    (RollbackHook, "rollback, whose hook fails"),
    (Uninstall, "uninstall"),
    (KeepHistory, "uninstall --keep-history"),
    (UninstallFails, "uninstall, which fails to delete"),
    (Test, "test"),
];

impl Way {
    pub(crate) const ALL: &'static [Self] = &{
        let mut all = [Install; NAMES.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = NAMES[at].0;
            at += 1;
        }
        all
    };

    /// What people do every day.
    pub(crate) const USUAL: &'static [Self] =
        &[Install, InstallFails, Upgrade, UpgradeFails, Rollback, RollbackFails, Uninstall];

    fn name(self) -> &'static str {
        NAMES.iter().find(|(way, _)| *way == self).map_or("", |(_, name)| name)
    }
}

/// The looks in the middle of an action.
const SUPERSEDE_DEPLOYED: u8 = 0;
const SUPERSEDE_OTHERS: u8 = 1;
const ROLL_BACK: u8 = 2;
const UNINSTALL: u8 = 3;

impl Client for Helm {
    fn name(&self) -> &'static str {
        "helm"
    }

    fn user(&self) -> User {
        self.user
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        let plan = |way: &Way| Some(Operation { name: way.name(), acts: self.plan(*way, view)? });
        self.ways.iter().filter_map(plan).collect()
    }

    fn goal(&self) -> Option<Goal> {
        Some(match self.driver {
            // Beside a release of the other driver the way out is that driver's.
            Driver::ConfigMap => {
                |cluster| cluster.is_settled(Driver::ConfigMap) || cluster.newest(Driver::Secret).is_some()
            }
            Driver::Secret | Driver::Olm => |cluster| cluster.is_settled(Driver::Secret),
        })
    }

    fn look(&self, what: u8, copies: &[Body], view: &View<'_>) -> Vec<Vec<Act>> {
        match what {
            SUPERSEDE_DEPLOYED => {
                // A rollback supersedes every deployed record, and is then deployed itself.
                let deployed = view.cluster.history(self.driver).filter(|record| record.label == Status::Deployed);
                let supersede = deployed.map(|record| Act::go_on(update(record, Status::Superseded)));
                let promote = copies.iter().map(|new| Act::or_stop(Write::Update(new.to(Status::Deployed))));
                vec![supersede.chain(promote).collect()]
            }
            SUPERSEDE_OTHERS => {
                let deployed = view.cluster.history(self.driver).filter(|record| record.label == Status::Deployed);
                vec![deployed.map(|record| Act::go_on(update(record, Status::Superseded))).collect()]
            }
            ROLL_BACK => vec![self.rollback(Rollback, view).unwrap_or_default()],
            _ => vec![self.uninstall(Uninstall, view).unwrap_or_default()],
        }
    }
}

impl Helm {
    pub(crate) fn plan(&self, way: Way, view: &View<'_>) -> Option<Vec<Act>> {
        match way {
            Install | Replace | InstallFails | InstallAtomic | InstallCancelled => self.install(way, view),
            Upgrade | UpgradeHooks | UpgradeFails | UpgradeAtomic | UpgradeCleanup | UpgradePrunes => {
                self.upgrade(way, view)
            }
            Rollback | RollbackPrunes | RollbackFails | RollbackWaits | RollbackHook => self.rollback(way, view),
            Uninstall | KeepHistory | UninstallFails => self.uninstall(way, view),
            Test => {
                let last = view.cluster.newest(self.driver)?;
                // The run of the hook, and the result, with the status read at the start.
                Some(vec![Act::go_on(update(last, last.status())), Act::go_on(update(last, last.status()))])
            }
        }
    }

    fn new_body(&self, revision: Revision, status: Status, chart: Chart, view: &View<'_>) -> Body {
        Body { driver: self.driver, revision, status, chart, life: view.new_life(revision), words: Words::Usual }
    }

    fn next(&self, view: &View<'_>) -> Revision {
        view.cluster.newest(self.driver).map_or(1, |last| last.body.revision + 1)
    }

    fn install(&self, way: Way, view: &View<'_>) -> Option<Vec<Act>> {
        let mut acts = Vec::new();
        match view.cluster.newest(self.driver).map(|last| (last, last.status())) {
            None if way != Replace => {}
            Some((last, Status::Uninstalled)) if way == Replace => {
                acts.push(Act::or_stop(update(last, Status::Superseded)));
            }
            Some((_, Status::Failed)) if way == Replace => {}
            _ => return None,
        }
        let new = self.new_body(self.next(view), Status::PendingInstall, self.chart, view);
        let failed = || vec![Act::go_on(Write::Update(new.to(Status::Failed)))];
        acts.push(Act::or_stop(Write::Create(new)));
        acts.push(Act::Write(Write::Apply(self.chart), Reaction::Instead(failed())));
        match way {
            InstallFails => acts.extend(failed()),
            InstallAtomic => acts.push(Act::Look(UNINSTALL, vec![])),
            _ => acts.push(Act::go_on(Write::Update(new.to(Status::Deployed)))),
        }
        if way == InstallCancelled {
            acts.extend(failed());
        }
        Some(acts)
    }

    fn upgrade(&self, way: Way, view: &View<'_>) -> Option<Vec<Act>> {
        let last = view.cluster.newest(self.driver)?;
        if last.status().is_pending() {
            return None;
        }
        let deployed = view.cluster.deployed(self.driver);
        let usable = matches!(last.status(), Status::Failed | Status::Superseded);
        let original = if last.status() == Status::Deployed { Some(last) } else { deployed };
        let original = original.or_else(|| usable.then_some(last))?;
        let new = self.new_body(self.next(view), Status::PendingUpgrade, self.chart, view);
        let rewrite = update(original, original.status());
        let mut failed = vec![Act::go_on(rewrite), Act::go_on(Write::Update(new.to(Status::Failed)))];
        match way {
            UpgradeAtomic => failed.push(Act::Look(ROLL_BACK, vec![])),
            UpgradeCleanup if view.cluster.object.is_none() => failed.push(Act::go_on(Write::DeleteObject)),
            UpgradeCleanup => return None,
            _ => {}
        }
        let mut acts = if way == UpgradePrunes { self.pruned(2, view)? } else { Vec::new() };
        acts.push(Act::or_stop(Write::Create(new)));
        let hook = Act::go_on(Write::Update(new));
        acts.extend((way == UpgradeHooks).then(|| hook.clone()));
        acts.push(Act::Write(Write::Apply(self.chart), Reaction::Instead(failed.clone())));
        if matches!(way, UpgradeFails | UpgradeAtomic | UpgradeCleanup) {
            acts.extend(failed);
            return Some(acts);
        }
        acts.extend((way == UpgradeHooks).then_some(hook));
        acts.push(Act::go_on(update(original, Status::Superseded)));
        acts.push(Act::or_stop(Write::Update(new.to(Status::Deployed))));
        Some(acts)
    }

    /// Deletes the oldest records, never the newest deployed one, until one less than the limit is left. `None` if there is nothing to
    /// delete.
    fn pruned(&self, limit: usize, view: &View<'_>) -> Option<Vec<Act>> {
        let kept = view.cluster.deployed(self.driver).map(|record| record.body.revision);
        let excess = (view.cluster.history(self.driver).count() + 1).checked_sub(limit).filter(|excess| *excess > 0)?;
        let old = view.cluster.history(self.driver).filter(|record| Some(record.body.revision) != kept);
        Some(old.take(excess).map(|record| Act::or_stop(delete(record))).collect())
    }

    fn rollback(&self, way: Way, view: &View<'_>) -> Option<Vec<Act>> {
        let last = view.cluster.newest(self.driver)?;
        let done = |record: &&Record| matches!(record.status(), Status::Deployed | Status::Superseded);
        // Without a good one below, back to the first: `helm rollback NAME 1` is the way out of a first install that died.
        let below = || view.cluster.history(self.driver).rev().skip(1);
        self.rollback_to(way, below().find(done).or_else(|| below().next()).unwrap_or(last), view)
    }

    /// A rollback to this revision.
    pub(crate) fn rollback_to(&self, way: Way, target: &Record, view: &View<'_>) -> Option<Vec<Act>> {
        let last = view.cluster.newest(self.driver)?;
        let new = self.new_body(self.next(view), Status::PendingRollback, target.body.chart, view);
        let mut acts = if way == RollbackPrunes { self.pruned(2, view)? } else { Vec::new() };
        acts.push(Act::or_stop(Write::Create(new)));
        if way == RollbackHook {
            acts.push(Act::go_on(Write::Update(new)));
            return Some(acts);
        }
        let failed = |last_to: Status| {
            vec![Act::go_on(update(last, last_to)), Act::go_on(Write::Update(new.to(Status::Failed)))]
        };
        acts.push(Act::Write(Write::Apply(target.body.chart), Reaction::Instead(failed(Status::Superseded))));
        match way {
            RollbackFails => acts.extend(failed(Status::Superseded)),
            RollbackWaits => acts.extend(failed(last.status())),
            _ => acts.push(Act::Look(SUPERSEDE_DEPLOYED, vec![new])),
        }
        Some(acts)
    }

    fn uninstall(&self, way: Way, view: &View<'_>) -> Option<Vec<Act>> {
        let last = view.cluster.newest(self.driver)?;
        let purge = view.cluster.history(self.driver).map(|record| Act::or_stop(delete(record)));
        if last.status() == Status::Uninstalled {
            return (way == Uninstall).then(|| purge.collect());
        }
        // A refused mark is only logged. A refused deletion of an object ends the uninstall.
        let mut acts = vec![Act::go_on(update(last, Status::Uninstalling)), Act::or_stop(Write::DeleteObject)];
        match way {
            UninstallFails => acts.truncate(1),
            KeepHistory => {
                acts.push(Act::go_on(update(last, Status::Uninstalled)));
                acts.push(Act::Look(SUPERSEDE_OTHERS, vec![]));
            }
            _ => acts.extend(purge),
        }
        Some(acts)
    }
}

/// An UPDATE from the copy of a record.
pub(crate) fn update(record: &Record, status: Status) -> Write {
    Write::Update(record.body.to(status))
}

pub(crate) fn delete(record: &Record) -> Write {
    Write::Delete(record.body.driver, record.body.revision)
}
