//! Who continues a release, according to its records and declarations, and how.

use serde::Serialize;

use super::{Driver, flux, helm, olm, sveltos};
use crate::release::{ReleaseRef, Storage};

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

/// How an owner continues after a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoesOn {
    /// The owner retries by itself, for this reason.
    Alone(&'static str),
    /// This command makes the owner retry, for this reason.
    After(String, &'static str),
}

/// What is known about a release besides its records.
#[derive(Debug, Clone, Copy)]
pub struct Drivers<'d> {
    /// The HelmRelease for which its controller acts on the release.
    pub driver: Option<&'d Driver>,
    /// Whether HelmReleases can be read.
    pub are_known: bool,
}

impl ReleaseOwner {
    /// The owner of a release with records in this storage and this holder.
    #[must_use]
    pub fn of(storage: Storage, release: &ReleaseRef, holder: Option<&str>, drivers: Drivers<'_>) -> Self {
        match (storage, drivers.driver) {
            (Storage::Index, _) => Self::Olm(release.name.clone()),
            (_, Some(driver)) => Self::Flux(format!("{}/{}", driver.namespace, driver.name)),
            _ if holder.is_some_and(sveltos::is_account) => Self::Sveltos,
            (Storage::Secret, None) if !drivers.are_known => Self::Unknown,
            _ => Self::Helm,
        }
    }

    /// `Flux (shop/web)`.
    #[must_use]
    pub fn display(&self) -> String {
        match self {
            Self::Helm => helm::NAME.to_owned(),
            Self::Flux(name) => format!("{} ({name})", flux::NAME),
            Self::Olm(name) => format!("{} ({name})", olm::NAME),
            Self::Sveltos => sveltos::NAME.to_owned(),
            Self::Unknown => "unknown".to_owned(),
        }
    }

    /// Whether only people can continue the release. An unknown owner may be a controller.
    #[must_use]
    pub fn waits_for_people(&self) -> bool {
        *self == Self::Helm
    }

    /// How the owner continues after a failure; `None` if people must act. `driver` is the HelmRelease at work.
    #[must_use]
    pub fn goes_on(&self, driver: Option<&Driver>) -> Option<GoesOn> {
        match self {
            Self::Olm(_) => Some(GoesOn::Alone(olm::words::TRIES_AGAIN)),
            Self::Sveltos => Some(GoesOn::Alone(sveltos::TRIES_AGAIN)),
            Self::Flux(_) => driver.map(|driver| GoesOn::After(driver.reset_command(), flux::words::TRIES_AGAIN)),
            Self::Helm | Self::Unknown => None,
        }
    }

    /// What finishes the interrupted operation of a chart: the owner itself, a command, or an upgrade by people.
    pub fn finish(&self, chart: &str, release: &str, driver: Option<&Driver>) -> Finish {
        let version = olm::version_range::version_of(chart, release);
        match (self, driver) {
            (Self::Olm(name), _) => {
                version.map_or(Finish::Alone, |version| Finish::Command(olm::words::pin_command(name, &version)))
            }
            (_, Some(driver)) => Finish::Command(driver.reset_command()),
            (_, None) => Finish::Upgrade(version.map(|version| version.to_string())),
        }
    }
}

/// How an interrupted operation is finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The owner finishes it by itself.
    Alone,
    Command(String),
    /// People upgrade to this version of the chart, if it is known.
    Upgrade(Option<String>),
}
