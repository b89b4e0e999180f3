//! nelm, and werf, which is built on it: every operation holds a lease of the release, and none looks at pending records.
//!
//! Sources: `internal/plan/{plan_build,release_info}.go` of nelm and lockgate. An upgrade supersedes every deployed record. Where none
//! is deployed, the operation is an install, whatever the newest record is. A failed plan of an uninstall marks the record
//! failed. The order in which an upgrade supersedes and promotes, and in which a purge deletes records, is not fixed; here it
//! is Helm's.

use interlock_engine::release::Status;

use super::helm::{delete, update};
use crate::client::{Act, Client, Goal, Operation, Reaction, View, Write};
use crate::cluster::{Body, Chart, Cluster, Driver, Other, Record, Words};
use crate::users::User;

/// `nelm` or `werf` under an account.
pub(crate) struct Nelm {
    pub(crate) user: User,
    pub(crate) chart: Chart,
    /// Whether actions may fail.
    pub(crate) fails: bool,
}

impl Client for Nelm {
    fn name(&self) -> &'static str {
        "nelm"
    }

    fn user(&self) -> User {
        self.user
    }

    fn goal(&self) -> Option<Goal> {
        Some(|cluster| cluster.is_settled(Driver::Secret))
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        // It waits for the lease of another run, and of its own dead one.
        if view.cluster.others.contains(&Other::Lease) {
            return Vec::new();
        }
        let endings: &[bool] = if self.fails { &[false, true] } else { &[false] };
        endings.iter().flat_map(|fails| self.operations(*fails, view)).collect()
    }
}

impl Nelm {
    fn operations(&self, fails: bool, view: &View<'_>) -> Vec<Operation> {
        let name = |name, failing| if fails { failing } else { name };
        let (status, operation) = match view.cluster.deployed(Driver::Secret) {
            Some(_) => (Status::PendingUpgrade, name("upgrade", "upgrade, which fails")),
            None => (Status::PendingInstall, name("install", "install, which fails")),
        };
        let mut operations = vec![Operation { name: operation, acts: self.deploy(status, self.chart, fails, view) }];
        if let Some(target) = target(view.cluster) {
            let acts = self.deploy(Status::PendingRollback, target.body.chart, fails, view);
            operations.push(Operation { name: name("rollback", "rollback, which fails"), acts });
        }
        let uninstall = uninstall(fails, view);
        operations.extend(uninstall.map(|acts| Operation { name: name("uninstall", "uninstall, which fails"), acts }));
        operations
    }

    /// An install, upgrade or rollback.
    fn deploy(&self, status: Status, chart: Chart, fails: bool, view: &View<'_>) -> Vec<Act> {
        let revision = view.cluster.newest(Driver::Secret).map_or(1, |newest| newest.body.revision + 1);
        let new = Body {
            driver: Driver::Secret,
            revision,
            status,
            chart,
            life: view.new_life(revision),
            words: Words::Usual,
        };
        let failed = || [Act::go_on(Write::Update(new.to(Status::Failed))), release()];
        let mut acts = vec![
            Act::or_stop(Write::Put(Other::Lease)),
            Act::Write(Write::Create(new), Reaction::Instead(vec![release()])),
            Act::Write(Write::Apply(chart), Reaction::Instead(failed().to_vec())),
        ];
        if fails {
            acts.extend(failed());
            return acts;
        }
        let deployed = view.cluster.history(Driver::Secret).filter(|record| record.label == Status::Deployed);
        let fatal = |write| Act::Write(write, Reaction::Instead(failed().to_vec()));
        acts.extend(deployed.map(|record| fatal(update(record, Status::Superseded))));
        acts.push(fatal(Write::Update(new.to(Status::Deployed))));
        acts.push(release());
        acts
    }
}

fn uninstall(fails: bool, view: &View<'_>) -> Option<Vec<Act>> {
    let newest = view.cluster.newest(Driver::Secret)?;
    let failed = || vec![Act::go_on(update(newest, Status::Failed)), release()];
    let mut acts = vec![
        Act::or_stop(Write::Put(Other::Lease)),
        Act::Write(update(newest, Status::Uninstalling), Reaction::Instead(vec![release()])),
        Act::Write(Write::DeleteObject, Reaction::Instead(failed())),
    ];
    if fails {
        acts.pop();
        acts.extend(failed());
        return Some(acts);
    }
    let purge = view.cluster.history(Driver::Secret);
    acts.extend(purge.map(|record| Act::Write(delete(record), Reaction::Instead(vec![release()]))));
    acts.push(release());
    Some(acts)
}

/// What a rollback goes back to: the newest revision below the newest one that was deployed once.
fn target(cluster: &Cluster) -> Option<&Record> {
    cluster.history(Driver::Secret).rev().skip(1).find(|record| record.status() == Status::Superseded)
}

/// Gives the lease back.
fn release() -> Act {
    Act::go_on(Write::Take(Other::Lease))
}
