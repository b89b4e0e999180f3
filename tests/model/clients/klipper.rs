//! klipper-helm: the Jobs that the Helm controller of k3s and RKE2 starts, as a shell script around helm.
//!
//! Source: `entry` of klipper-helm and its `helm set-status` plugin. A Job that finds an interrupted operation, or a newest record
//! that is superseded, marks it failed first. It then upgrades, or, after an install or a rollback, and with the failure
//! policy `reinstall`, uninstalls and installs. An error ends the Job; the next one starts over.

use interlock_engine::release::Status;

use super::helm::{Helm, Way, update};
use super::sdk::{INSTALLS, UPGRADES, actions, sdk};
use crate::client::{Act, Client, Goal, Operation, View};
use crate::cluster::{Body, Chart, Driver};
use crate::users::User;

/// A HelmChart, and its Jobs.
pub(crate) struct Klipper {
    pub(crate) chart: Chart,
    /// Whether actions may fail.
    pub(crate) fails: bool,
}

const UPGRADE: u8 = 10;
const UNINSTALL: u8 = 11;
const INSTALL: u8 = 12;

impl Client for Klipper {
    fn name(&self) -> &'static str {
        "klipper-helm"
    }

    fn user(&self) -> User {
        User::Klipper
    }

    fn goal(&self) -> Option<Goal> {
        Some(|cluster| cluster.is_settled(Driver::Secret))
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        let newest = view.cluster.newest(Driver::Secret);
        let mut operations = match newest.map(|newest| (newest, newest.status())) {
            None => actions(&self.helm(), self.fails, &INSTALLS, view),
            Some((newest, status)) if status.is_in_flight() || status == Status::Superseded => {
                let set = Act::or_stop(update(newest, Status::Failed));
                let then = |name, what| Operation { name, acts: vec![set.clone(), Act::Look(what, Vec::new())] };
                vec![then("set-status, then upgrade", UPGRADE), then("set-status, then reinstall", UNINSTALL)]
            }
            Some((_, Status::Failed)) => {
                let mut operations = actions(&self.helm(), false, &UPGRADES, view);
                operations.push(Operation { name: "reinstall", acts: vec![Act::Look(UNINSTALL, Vec::new())] });
                operations
            }
            Some(_) => actions(&self.helm(), self.fails, &UPGRADES, view),
        };
        let uninstall = self.helm().plan(Way::Uninstall, view);
        operations.extend(uninstall.map(|acts| Operation { name: "delete the HelmChart", acts }));
        operations
    }

    fn look(&self, what: u8, copies: &[Body], view: &View<'_>) -> Vec<Vec<Act>> {
        let plan = |way| self.helm().plan(way, view).unwrap_or_default();
        match what {
            UPGRADE => vec![plan(Way::Upgrade)],
            UNINSTALL => vec![plan(Way::Uninstall).into_iter().chain([Act::Look(INSTALL, Vec::new())]).collect()],
            INSTALL => vec![plan(Way::Install)],
            _ => self.helm().look(what, copies, view),
        }
    }
}

impl Klipper {
    fn helm(&self) -> Helm {
        sdk(User::Klipper, Driver::Secret, self.chart)
    }
}
