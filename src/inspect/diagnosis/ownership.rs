//! The owner of a release.

use interlock_engine::owners::Driver;
use interlock_engine::release::{Entry, Storage};
use serde::Serialize;

use super::state::ReleaseState;

/// The service accounts with which Sveltos writes records, in any namespace.
const SVELTOS_ACCOUNTS: [&str; 2] = [":addon-controller", ":sveltos-applier-manager"];

/// The owner of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "name")]
pub enum ReleaseOwner {
    /// People and pipelines, with Helm.
    Helm,
    /// Flux, by this HelmRelease.
    Flux(String),
    /// OLM, by this ClusterExtension.
    Olm(String),
    /// Sveltos.
    Sveltos,
    /// Helm or Flux; the HelmReleases cannot be read.
    Unknown,
}

impl ReleaseOwner {
    /// `Flux (shop/web)`.
    #[must_use]
    pub(crate) fn display(&self) -> String {
        match self {
            Self::Helm => "Helm".to_owned(),
            Self::Flux(name) => format!("Flux ({name})"),
            Self::Olm(name) => format!("OLM ({name})"),
            Self::Sveltos => "Sveltos".to_owned(),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

impl<'a> ReleaseState<'a> {
    pub(super) fn owner(&self, newest: &Entry) -> ReleaseOwner {
        let holder = newest.stamps.holder();
        match (self.storage, self.driver(newest)) {
            (Storage::Index, _) => ReleaseOwner::Olm(self.release.name.clone()),
            (_, Some(driver)) => ReleaseOwner::Flux(format!("{}/{}", driver.namespace, driver.name)),
            _ if is_sveltos(holder) => ReleaseOwner::Sveltos,
            (Storage::Secret, None) if self.drivers.is_none() => ReleaseOwner::Unknown,
            _ => ReleaseOwner::Helm,
        }
    }

    /// The HelmRelease for which Flux acts on the release.
    pub(super) fn driver(&self, newest: &Entry) -> Option<&'a Driver> {
        let driven = self.driven(newest);
        let drivers = self.drivers.filter(|_| self.storage == Storage::Secret)?;
        let mut named = drivers.iter().filter(|driver| driver.drives(&self.release.namespace, &self.release.name));
        named.find(|driver| driven.is_driven_by(driver, self.policy))
    }
}

fn is_sveltos(holder: Option<&str>) -> bool {
    holder.is_some_and(|holder| SVELTOS_ACCOUNTS.iter().any(|account| holder.ends_with(account)))
}
