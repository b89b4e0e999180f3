//! OLM's operator-controller, the people who pin a ClusterExtension, and the garbage collector.
//!
//! Sources: `internal/operator-controller/applier/helm.go` and the chunked storage of helm-operator-plugins, and their traffic that
//! was recorded on a real API server. OLM never rolls back and never uninstalls. Over a pending record it does nothing at
//! all: a person deletes the index, and OLM goes on from what is left. The chunks of a record are not modelled.

use interlock_engine::release::Status;

use super::helm::delete;
use super::sdk::{Action, INSTALLS, UPGRADES, actions, sdk};
use crate::client::{Act, Client, Goal, Operation, View, Write};
use crate::cluster::{Age, Body, Chart, Driver};
use crate::users::User;

/// A ClusterExtension, and the operator-controller that reconciles it.
pub(crate) struct Olm {
    /// The versions that its source may resolve to: what a catalog brings, and what people pin.
    pub(crate) charts: &'static [Chart],
    /// Whether actions may fail.
    pub(crate) fails: bool,
    /// Who deletes the index of a dead operation: a person, or the garbage collector where the ClusterExtension is deleted meanwhile.
    pub(crate) unstuck_by: User,
}

impl Client for Olm {
    fn name(&self) -> &'static str {
        "operator-controller"
    }

    fn user(&self) -> User {
        User::Olm
    }

    fn goal(&self) -> Option<Goal> {
        Some(|cluster| cluster.is_settled(Driver::Olm))
    }

    /// OLM's own deletions are those of old records, which the model leaves out.
    fn user_of(&self, write: &Write) -> User {
        if matches!(write, Write::Delete(..) | Write::Restore(_)) { self.unstuck_by } else { User::Olm }
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        let newest = view.cluster.newest(Driver::Olm).map(|newest| (newest.status(), newest.body.chart));
        let ways: &[Action] = match newest {
            None => &INSTALLS,
            // "Another operation is in progress": no write at all, not even against drift.
            Some((status, _)) if status.is_in_flight() => return unstick(view).into_iter().collect(),
            Some(_) => &UPGRADES,
        };
        let charts = self.charts.iter().filter(|chart| newest != Some((Status::Deployed, **chart)));
        let of_chart = |chart: &Chart| actions(&sdk(User::Olm, Driver::Olm, *chart), self.fails, ways, view);
        let mut operations: Vec<_> = charts.flat_map(of_chart).collect();
        match newest {
            Some((Status::Deployed, chart)) => {
                operations.push(Operation { name: "reconcile", acts: vec![Act::or_stop(Write::Apply(chart))] });
            }
            // helm upgrades neither this record nor what is below it, unless that is deployed.
            Some((Status::Uninstalled, _)) => operations.extend(unstick(view)),
            _ => {}
        }
        operations
    }

    fn look(&self, _: u8, _: &[Body], _: &View<'_>) -> Vec<Vec<Act>> {
        Vec::new()
    }
}

/// What is done about an operation of OLM that is dead, once it is stale, and about a record that a person has marked as uninstalled.
/// The workloads must be there before.
fn unstick(view: &View<'_>) -> Option<Operation> {
    let stale = view.cluster.newest(Driver::Olm).filter(|newest| newest.age() == Age::Stale)?;
    let missing = view.cluster.object.is_none().then_some(Write::Restore(stale.body.chart));
    let acts = missing.into_iter().chain([delete(stale)]).map(Act::or_stop).collect();
    Some(Operation { name: "the index is deleted", acts })
}

/// The garbage collector, after somebody has deleted the ClusterExtension: every record and every object goes, in any order.
pub(crate) struct Collector;

impl Client for Collector {
    fn name(&self) -> &'static str {
        "garbage collector"
    }

    fn user(&self) -> User {
        User::Collector
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        let index = |record| Operation { name: "collect an index", acts: vec![Act::or_stop(delete(record))] };
        let mut operations: Vec<_> = view.cluster.history(Driver::Olm).map(index).collect();
        let object = view.cluster.object.map(|_| Act::or_stop(Write::DeleteObject));
        operations.extend(object.map(|act| Operation { name: "collect the object", acts: vec![act] }));
        operations
    }
}
