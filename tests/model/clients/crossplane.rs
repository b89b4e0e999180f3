//! Crossplane's provider-helm: a neighbour that rolls back over its own pending record.
//!
//! Source: `pkg/controller/namespaced/release/release.go` of provider-helm. With `rollbackLimit`, a failed or pending release is rolled
//! back to the revision before, or uninstalled if it is the first one. Each attempt counts, refused ones too, until the
//! release is deployed again; at the limit it does nothing more.

use interlock_engine::release::Status;

use super::helm::{Helm, Way};
use super::sdk::{Action, INSTALLS, UPGRADES, actions, sdk};
use crate::client::{Act, Client, Goal, Operation, View};
use crate::cluster::{Body, Chart, Driver, Record};
use crate::users::User;

/// A Release of Crossplane, and its provider.
pub(crate) struct Crossplane {
    pub(crate) chart: Chart,
    /// Whether actions may fail.
    pub(crate) fails: bool,
}

/// `rollbackLimit`.
const LIMIT: u16 = 2;

impl Client for Crossplane {
    fn name(&self) -> &'static str {
        "provider-helm"
    }

    fn user(&self) -> User {
        User::Crossplane
    }

    fn goal(&self) -> Option<Goal> {
        Some(|cluster| cluster.is_settled(Driver::Secret))
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        let newest = view.cluster.newest(Driver::Secret);
        let mut operations = match newest.map(|newest| (newest, newest.status())) {
            None => self.actions(&INSTALLS, view),
            Some((newest, Status::PendingInstall | Status::PendingUpgrade)) => self.roll_back(newest, view),
            Some((newest, Status::Failed)) => {
                let mut operations = self.roll_back(newest, view);
                // The Release has changed.
                operations.extend(self.actions(&UPGRADES[..1], view));
                operations
            }
            Some(_) => self.actions(&UPGRADES, view),
        };
        let uninstall = self.helm().plan(Way::Uninstall, view);
        operations.extend(uninstall.map(|acts| Operation { name: "delete the Release", acts }));
        operations
    }

    fn look(&self, what: u8, copies: &[Body], view: &View<'_>) -> Vec<Vec<Act>> {
        self.helm().look(what, copies, view)
    }
}

impl Crossplane {
    fn helm(&self) -> Helm {
        sdk(User::Crossplane, Driver::Secret, self.chart)
    }

    fn roll_back(&self, newest: &Record, view: &View<'_>) -> Vec<Operation> {
        if view.memory >= LIMIT {
            return Vec::new();
        }
        let attempt = Act::Remember(view.memory + 1);
        let (name, acts) = if newest.body.revision == 1 {
            ("uninstall to retry", self.helm().plan(Way::Uninstall, view))
        } else {
            let previous = view.cluster.record(Driver::Secret, newest.body.revision - 1);
            ("roll back", previous.and_then(|previous| self.helm().rollback_to(Way::Rollback, previous, view)))
        };
        acts.map(|acts| Operation { name, acts: [attempt].into_iter().chain(acts).collect() }).into_iter().collect()
    }

    /// A deployed release resets the count.
    fn actions(&self, ways: &[Action], view: &View<'_>) -> Vec<Operation> {
        let is_deployed = view.cluster.newest(Driver::Secret).is_some_and(|newest| newest.status() == Status::Deployed);
        let reset = (is_deployed && view.memory > 0).then_some(Act::Remember(0));
        let mut operations = actions(&self.helm(), self.fails, ways, view);
        for operation in &mut operations {
            operation.acts.splice(..0, reset.clone());
        }
        operations
    }
}
