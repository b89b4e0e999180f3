//! Sveltos' addon-controller in push mode, which uses Helm's SDK under an account of its own.
//!
//! Source: `controllers/handlers_helm.go` of addon-controller. It installs where the release is not deployed, upgrades where Helm
//! says that the name is in use, and after any error of an upgrade looks at the newest record: one that is pending or being
//! uninstalled it recovers. (In pull mode it writes no record.)

use interlock_engine::release::Status;

use super::helm::{Helm, Way, delete};
use super::sdk::{Action, INSTALLS, REPLACES, UPGRADES, actions, sdk};
use crate::client::{Act, Client, Goal, Operation, Reaction, View, Write};
use crate::cluster::{Body, Chart, Driver};
use crate::users::User;

/// A ClusterSummary with one chart, and the addon-controller that deploys it.
pub(crate) struct Sveltos {
    pub(crate) chart: Chart,
    pub(crate) recovery: Recovery,
    /// Whether actions may fail.
    pub(crate) fails: bool,
}

/// What `recoverRelease` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// Deletes the newest record.
    Deletes,
    /// Uninstalls the release, as versions before March 2026 did.
    Uninstalls,
}

/// After an error: recovers the release if its newest record is in flight.
const RECOVER: u8 = 10;

impl Client for Sveltos {
    fn name(&self) -> &'static str {
        "sveltos"
    }

    fn user(&self) -> User {
        User::Sveltos
    }

    fn goal(&self) -> Option<Goal> {
        Some(|cluster| cluster.is_settled(Driver::Secret))
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        let newest = view.cluster.newest(Driver::Secret).map(|newest| newest.status());
        let mut operations = match newest {
            None => self.actions(&INSTALLS, view),
            Some(Status::Uninstalled) => self.actions(&REPLACES, view),
            Some(_) => self.actions(&UPGRADES, view),
        };
        // Helm does not begin an upgrade here.
        if operations.is_empty() && newest.is_some_and(Status::is_in_flight) {
            operations.push(Operation { name: "recover", acts: self.recover(view) });
        }
        // The profile is deleted, or does not match the cluster any more.
        let uninstall = self.helm().plan(Way::Uninstall, view);
        operations.extend(uninstall.map(|acts| Operation { name: "withdraw", acts }));
        operations
    }

    fn look(&self, what: u8, copies: &[Body], view: &View<'_>) -> Vec<Vec<Act>> {
        match what {
            RECOVER => vec![self.recover(view)],
            _ => self.helm().look(what, copies, view),
        }
    }
}

impl Sveltos {
    fn helm(&self) -> Helm {
        sdk(User::Sveltos, Driver::Secret, self.chart)
    }

    fn actions(&self, ways: &[Action], view: &View<'_>) -> Vec<Operation> {
        let mut operations = actions(&self.helm(), self.fails, ways, view);
        for operation in &mut operations {
            operation.acts = std::mem::take(&mut operation.acts).into_iter().map(recovering).collect();
        }
        operations
    }

    fn recover(&self, view: &View<'_>) -> Vec<Act> {
        let Some(newest) = view.cluster.newest(Driver::Secret).filter(|newest| newest.status().is_in_flight()) else {
            return Vec::new();
        };
        match self.recovery {
            Recovery::Deletes => vec![Act::or_stop(delete(newest))],
            Recovery::Uninstalls => self.helm().plan(Way::Uninstall, view).unwrap_or_default(),
        }
    }
}

/// An action whose error is returned is followed by a look at the release.
fn recovering(act: Act) -> Act {
    match act {
        Act::Write(write @ (Write::Create(_) | Write::Update(_)), Reaction::Stop) => {
            Act::Write(write, Reaction::Instead(vec![Act::Look(RECOVER, Vec::new())]))
        }
        act => act,
    }
}
