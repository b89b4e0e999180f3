//! Who goes on with a release.

use interlock_engine::owners::{Driver, Drivers, ReleaseOwner};
use interlock_engine::release::{Entry, Storage};

use super::state::ReleaseState;

impl<'a> ReleaseState<'a> {
    pub(super) fn owner(&self, newest: &Entry) -> ReleaseOwner {
        let drivers = Drivers { driver: self.driver(newest), are_known: self.drivers.is_some() };
        ReleaseOwner::of(self.storage, self.release, newest.stamps.holder(), drivers)
    }

    /// The HelmRelease for which its controller acts on the release.
    pub(super) fn driver(&self, newest: &Entry) -> Option<&'a Driver> {
        let driven = self.driven(newest);
        let drivers = self.drivers.filter(|_| self.storage == Storage::Secret)?;
        let mut named = drivers.iter().filter(|driver| driver.drives(&self.release.namespace, &self.release.name));
        named.find(|driver| driven.is_driven_by(driver, self.policy))
    }
}
