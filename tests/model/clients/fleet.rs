//! Rancher Fleet's agent.
//!
//! Sources: `internal/helmdeployer/{install,rollback,delete}.go` of fleet, with the handling of orphaned `pending-install` records
//! of 2026. It finishes an uninstall that died before it installs again; over a pending record it rolls back, and where there
//! is no revision to roll back to, it marks the record failed; then it upgrades. It corrects drift by a rollback to the newest
//! revision. If that fails, it deletes the failed record, and writes the copy of the newest one that it read before.

use interlock_engine::release::Status;

use super::helm::{Helm, Way, delete, update};
use super::sdk::{INSTALLS, UPGRADES, actions, sdk};
use crate::client::{Act, Client, Goal, Operation, View, Write};
use crate::cluster::{Body, Chart, Driver, Record};
use crate::users::User;

/// A BundleDeployment, and the agent that deploys it.
pub(crate) struct Fleet {
    pub(crate) chart: Chart,
    /// `keepResources`: deletes the records, and leaves the objects.
    pub(crate) keep_resources: bool,
    /// Whether actions may fail.
    pub(crate) fails: bool,
}

const INSTALL: u8 = 10;
const UPGRADE: u8 = 11;
const REMOVE_FAILED: u8 = 12;

impl Client for Fleet {
    fn name(&self) -> &'static str {
        "fleet"
    }

    fn user(&self) -> User {
        User::Fleet
    }

    fn goal(&self) -> Option<Goal> {
        Some(|cluster| cluster.is_settled(Driver::Secret))
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        let mut operations = self.deploy(view);
        operations.extend(self.correct_drift(view));
        operations.extend(self.remove(view));
        operations
    }

    fn look(&self, what: u8, copies: &[Body], view: &View<'_>) -> Vec<Vec<Act>> {
        let plan = |way| vec![self.helm().plan(way, view).unwrap_or_default()];
        match what {
            INSTALL => plan(Way::Install),
            UPGRADE => plan(Way::Upgrade),
            REMOVE_FAILED => copies.iter().map(|copy| remove_failed(*copy, view)).collect(),
            _ => self.helm().look(what, copies, view),
        }
    }
}

impl Fleet {
    fn helm(&self) -> Helm {
        sdk(User::Fleet, Driver::Secret, self.chart)
    }

    fn deploy(&self, view: &View<'_>) -> Vec<Operation> {
        let Some(last) = view.cluster.newest(Driver::Secret) else {
            return actions(&self.helm(), self.fails, &INSTALLS, view);
        };
        if last.status() == Status::Uninstalling {
            let mut acts = self.helm().plan(Way::Uninstall, view).unwrap_or_default();
            acts.push(Act::Look(INSTALL, Vec::new()));
            return vec![Operation { name: "uninstall first, then install", acts }];
        }
        if last.status().is_pending() {
            return self.unstick(last, view).into_iter().collect();
        }
        actions(&self.helm(), self.fails, &UPGRADES, view)
    }

    /// Over a pending record.
    fn unstick(&self, last: &Record, view: &View<'_>) -> Option<Operation> {
        let previous = last.body.revision.checked_sub(1).and_then(|below| view.cluster.record(Driver::Secret, below));
        let (name, mut acts) = match previous {
            None => ("mark as failed, then upgrade", vec![Act::or_stop(update(last, Status::Failed))]),
            Some(previous) => ("roll back, then upgrade", self.helm().rollback_to(Way::Rollback, previous, view)?),
        };
        acts.push(Act::Look(UPGRADE, Vec::new()));
        Some(Operation { name, acts })
    }

    /// A rollback to the newest revision, which may fail.
    fn correct_drift(&self, view: &View<'_>) -> Vec<Operation> {
        let drifted = view.cluster.object.is_none_or(|object| object.edited);
        let Some(last) =
            view.cluster.newest(Driver::Secret).filter(|last| last.status() == Status::Deployed && drifted)
        else {
            return Vec::new();
        };
        let rollback = |name, way| Some(Operation { name, acts: self.helm().rollback_to(way, last, view)? });
        let mut operations: Vec<_> = rollback("correct drift", Way::Rollback).into_iter().collect();
        let failing = self.fails.then(|| rollback("correct drift, which fails", Way::RollbackFails)).flatten();
        operations.extend(failing.map(|mut failing| {
            failing.acts.push(Act::Look(REMOVE_FAILED, vec![last.body]));
            failing
        }));
        operations
    }

    /// The bundle is deleted.
    fn remove(&self, view: &View<'_>) -> Option<Operation> {
        if !self.keep_resources {
            return Some(Operation { name: "delete the bundle", acts: self.helm().plan(Way::Uninstall, view)? });
        }
        let acts: Vec<_> = view.cluster.history(Driver::Secret).map(|record| Act::or_stop(delete(record))).collect();
        (!acts.is_empty()).then_some(Operation { name: "delete the bundle and keep its resources", acts })
    }
}

/// `removeFailedRollback`: if the newest record is the failed rollback over the copy, it goes, and the copy is written as it was.
fn remove_failed(copy: Body, view: &View<'_>) -> Vec<Act> {
    let newest = view.cluster.newest(Driver::Secret);
    let failed = newest.filter(|newest| newest.body.revision == copy.revision + 1 && newest.status() == Status::Failed);
    failed.map(|failed| vec![Act::or_stop(delete(failed)), Act::or_stop(Write::Update(copy))]).unwrap_or_default()
}
