//! The actions of Helm's SDK, as controllers use them under their accounts.

use super::helm::{Helm, Way};
use crate::client::{Operation, View};
use crate::cluster::{Chart, Driver};
use crate::users::User;

/// An action by its name among the operations of a client.
pub(super) type Action = (&'static str, Way);

/// The second action of each pair fails.
pub(super) const INSTALLS: [Action; 2] = [("install", Way::Install), ("install, which fails", Way::InstallFails)];
pub(super) const REPLACES: [Action; 1] = [("install again", Way::Replace)];
pub(super) const UPGRADES: [Action; 2] = [("upgrade", Way::Upgrade), ("upgrade, which fails", Way::UpgradeFails)];

/// Helm's SDK in the hands of a controller.
pub(super) fn sdk(user: User, driver: Driver, chart: Chart) -> Helm {
    Helm { user, driver, chart, ways: &[] }
}

/// The actions that can be done now, those that fail only if actions may fail.
pub(super) fn actions(helm: &Helm, fails: bool, actions: &[Action], view: &View<'_>) -> Vec<Operation> {
    let plan = |(name, way): &Action| Some(Operation { name, acts: helm.plan(*way, view)? });
    actions.iter().take(if fails { actions.len() } else { 1 }).filter_map(plan).collect()
}
