//! One release, as far as its records and the HelmReleases behind it tell.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::ways;
use crate::engine::flux::Driver;
use crate::engine::policy::Policy;
use crate::engine::release::{Entry, History, ReleaseRef, Status, Storage};
use crate::engine::rules::flux_release::FluxRelease;
use crate::world::kubernetes::Head;

/// The accounts under which Sveltos writes records, whatever its namespace is called.
const SVELTOS: [&str; 2] = [":addon-controller", ":sveltos-applier-manager"];

/// How a release stands. Nothing that an object contains is in it, names apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The namespace of its records.
    pub namespace: String,
    /// Its name.
    pub release: String,
    /// How its records are stored.
    pub storage: Kept,
    /// The object of its newest record.
    pub record: String,
    /// The revision of that.
    pub revision: u64,
    /// The status of that, by its label.
    pub status: &'static str,
    /// Since when it has been so, by the API server's clock.
    pub since: Option<Timestamp>,
    /// Who started its last operation, as stamped.
    pub holder: Option<String>,
    /// Where that was not stamped: the field manager that wrote the record, a hint and no more, since a client chooses it.
    pub manager: Option<String>,
    /// `name-version` of what it brings in.
    pub chart: Option<String>,
    /// Who drives it.
    pub owner: Owner,
    /// Whether its operation counts as stuck.
    pub stuck: Stuck,
    /// From when on the operation in flight counts as stuck.
    pub stuck_from: Option<Timestamp>,
    /// `name-version@revision` of an operation that was interrupted and not finished.
    pub interrupted: Option<String>,
    /// The next safe step; `None` where nothing is to be done.
    pub next: Option<String>,
}

/// How records are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kept {
    /// In Secrets.
    Secret,
    /// In ConfigMaps.
    ConfigMap,
    /// In Secrets of OLM's.
    Olm,
}

/// Who drives a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "name")]
pub enum Owner {
    /// People and pipelines, with Helm.
    Helm,
    /// Flux, by this HelmRelease.
    Flux(String),
    /// OLM, by this ClusterExtension.
    Olm(String),
    /// Sveltos.
    Sveltos,
    /// Helm or Flux: the HelmReleases cannot be read.
    Unknown,
}

/// Whether an operation counts as stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stuck {
    /// No operation is in flight, or it is not old enough.
    No,
    /// It is older than it takes.
    Yes,
    /// It would be, if no HelmRelease gives it more time, and these cannot be read.
    Unknown,
}

impl From<Storage> for Kept {
    fn from(storage: Storage) -> Self {
        match storage {
            Storage::Secret => Self::Secret,
            Storage::ConfigMap => Self::ConfigMap,
            Storage::OlmIndex => Self::Olm,
        }
    }
}

impl From<Kept> for Storage {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Secret => Self::Secret,
            Kept::ConfigMap => Self::ConfigMap,
            Kept::Olm => Self::OlmIndex,
        }
    }
}

impl Kept {
    /// As it is spelled.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::ConfigMap => "configmap",
            Self::Olm => "olm",
        }
    }
}

impl Owner {
    /// `Flux (shop/web)`.
    #[must_use]
    pub fn display(&self) -> String {
        match self {
            Self::Helm => "Helm".to_owned(),
            Self::Flux(name) => format!("Flux ({name})"),
            Self::Olm(name) => format!("OLM ({name})"),
            Self::Sveltos => "Sveltos".to_owned(),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

impl Row {
    /// What the records of a release tell; `None` where there are none. `drivers` are all HelmReleases, `None` where they
    /// cannot be read.
    pub(crate) fn of(
        release: &ReleaseRef,
        storage: Storage,
        history: &History,
        drivers: Option<&[Driver]>,
        policy: &Policy,
        now: Timestamp,
    ) -> Option<Self> {
        let newest = history.newest()?;
        let ReleaseRef { namespace, name } = release;
        let driven = FluxRelease { storage, namespace, release: name, holder: newest.stamps.holder() };
        let naming = drivers.map(|drivers| driven.helm_releases_among(drivers));
        let patience = driven.stale_after_with(naming.as_deref().unwrap_or_default(), policy);
        let in_flight = newest.status.is_in_flight();
        let stuck_from = newest.started().filter(|_| in_flight).and_then(|started| after(started, patience));
        let is_flux_unknown = naming.is_none() && storage == Storage::Secret;
        let stuck = match stuck_from {
            Some(from) if now < from => Stuck::No,
            Some(_) if is_flux_unknown => Stuck::Unknown,
            Some(_) => Stuck::Yes,
            None => Stuck::No,
        };
        let flux = naming.iter().flatten().find(|driver| driven.is_driven_by(driver, policy));
        let holder = newest.stamps.holder();
        let owner = match (storage, flux) {
            (Storage::OlmIndex, _) => Owner::Olm(name.clone()),
            (_, Some(driver)) => Owner::Flux(format!("{}/{}", driver.namespace, driver.name)),
            _ if holder.is_some_and(|holder| SVELTOS.iter().any(|account| holder.ends_with(account))) => Owner::Sveltos,
            _ if is_flux_unknown => Owner::Unknown,
            _ => Owner::Helm,
        };
        let mut row = Self {
            namespace: namespace.clone(),
            release: name.clone(),
            storage: storage.into(),
            record: newest.name.clone(),
            revision: newest.revision.0,
            status: newest.status.as_str(),
            since: since(newest),
            holder: holder.map(str::to_owned),
            manager: None,
            chart: newest.stamps.chart().map(str::to_owned),
            owner,
            stuck,
            stuck_from,
            interrupted: history.interrupted().filter(|_| !in_flight).map(|(_, note)| note.to_string()),
            next: None,
        };
        row.next = ways::next(&row, history, newest, policy.recovery.closes_rollback());
        Some(row)
    }

    /// Whether something is missing that only the body of the record tells.
    pub(crate) fn lacks_head(&self) -> bool {
        self.chart.is_none() || self.holder.is_none()
    }

    /// Fills in what the body of the record tells.
    pub(crate) fn with_head(mut self, head: Head) -> Self {
        self.chart = self.chart.or(head.chart);
        self.manager = head.manager.filter(|_| self.holder.is_none());
        self
    }

    /// The release.
    #[must_use]
    pub fn release_ref(&self) -> ReleaseRef {
        ReleaseRef::new(&self.namespace, &self.release)
    }
}

/// Since when a record has been as it is. A pending one was created so; another one was written then.
pub(super) fn since(entry: &Entry) -> Option<Timestamp> {
    match entry.status {
        status if status.is_in_flight() => entry.started(),
        Status::Superseded => entry.created,
        _ => entry.written.or(entry.created),
    }
}

fn after(started: Timestamp, patience: SignedDuration) -> Option<Timestamp> {
    started.checked_add(patience).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::flux::HelmRelease;
    use crate::engine::release::stamps::{CHART, HOLDER, INTERRUPTED};
    use Status::{
        Deployed, Failed, PendingInstall, PendingRollback, PendingUpgrade, Superseded, Uninstalled, Uninstalling,
    };

    const NOW: &str = "2026-11-21T10:00:00Z";

    fn entry(revision: u64, status: Status, seconds_ago: i64, holder: &str) -> Entry {
        let now: Timestamp = NOW.parse().unwrap();
        let mut entry = Entry::of_web(revision, status);
        entry.created = now.checked_sub(SignedDuration::from_secs(seconds_ago)).ok();
        if !holder.is_empty() {
            entry.stamps.set(HOLDER, holder.to_owned());
            entry.stamps.set(CHART, format!("demo-{revision}.0.0"));
        }
        entry
    }

    fn row(storage: Storage, entries: Vec<Entry>, drivers: Option<&[Driver]>) -> Row {
        let (policy, now) = (Policy::shipped().unwrap(), NOW.parse().unwrap());
        Row::of(&ReleaseRef::new("shop", "web"), storage, &History::new(entries), drivers, &policy, now).unwrap()
    }

    fn next(entries: Vec<Entry>) -> (Stuck, String) {
        let row = row(Storage::Secret, entries, Some(&[]));
        (row.stuck, row.next.unwrap_or_default())
    }

    #[test]
    fn every_state_has_its_next_safe_step() {
        let old = |revision, status| entry(revision, status, 3_600, "alice");
        let young = |revision, status| entry(revision, status, 60, "alice");
        for (entries, stuck, wanted) in [
            (vec![old(1, Deployed)], Stuck::No, ""),
            (vec![old(1, Uninstalled)], Stuck::No, ""),
            (vec![old(1, Deployed), young(2, PendingUpgrade)], Stuck::No, "wait until 10:14 UTC"),
            (vec![young(1, PendingInstall)], Stuck::No, "wait until 10:14 UTC"),
            (vec![old(1, Deployed), old(2, PendingUpgrade)], Stuck::Yes, "interlock unstick shop/web"),
            (vec![old(1, Deployed), old(2, PendingRollback)], Stuck::Yes, "interlock unstick shop/web"),
            (vec![old(1, Superseded), old(2, PendingUpgrade)], Stuck::Yes, "helm rollback web 1 -n shop"),
            (vec![old(1, PendingInstall)], Stuck::Yes, "helm uninstall web -n shop, then install again"),
            (vec![old(1, Uninstalling)], Stuck::Yes, "helm uninstall web -n shop, again: it goes on where it ended"),
            (vec![old(1, Deployed), old(2, Failed)], Stuck::No, "roll forward: helm upgrade web CHART -n shop"),
            (vec![old(1, Failed)], Stuck::No, "roll forward: helm upgrade web CHART -n shop"),
        ] {
            assert_eq!(next(entries.clone()), (stuck, wanted.to_owned()), "{entries:?}");
        }
        let mut noted = old(1, Deployed);
        noted.stamps.set(INTERRUPTED, "demo-2.0.0@2".to_owned());
        assert_eq!(next(vec![noted]).1, "finish demo-2.0.0 first: helm upgrade web CHART --version 2.0.0 -n shop");
        // Nothing shows when it started.
        let unborn = Entry { created: None, ..old(2, PendingUpgrade) };
        assert_eq!(next(vec![old(1, Deployed), unborn]), (Stuck::No, "wait: nothing shows when it started".to_owned()));
    }

    #[test]
    fn commands_of_helm_name_the_driver() {
        let young = row(Storage::ConfigMap, vec![entry(1, Failed, 9, "a")], None);
        assert_eq!(
            young.next.unwrap(),
            "roll forward: HELM_DRIVER=configmap helm upgrade web CHART -n shop",
            "{:?}",
            young.stuck
        );
        assert_eq!((young.owner, young.storage), (Owner::Helm, Kept::ConfigMap));
    }

    #[test]
    fn owners_are_told_and_a_helm_release_gives_more_time() {
        let release = |timeout: &str| -> Driver {
            let object = serde_json::json!({
                "metadata": {"name": "web", "namespace": "shop"}, "spec": {"timeout": timeout},
                "status": {"storageNamespace": "shop", "history": [{"name": "web", "status": "deployed"}]},
            });
            Driver::from(&serde_json::from_value::<HelmRelease>(object).unwrap())
        };
        let stuck = || vec![entry(1, Deployed, 9_000, "alice"), entry(2, PendingUpgrade, 3_600, "alice")];
        let patient = row(Storage::Secret, stuck(), Some(&[release("2h")]));
        assert_eq!((&patient.owner, patient.stuck), (&Owner::Flux("shop/web".to_owned()), Stuck::No));
        assert_eq!(patient.next.as_deref(), Some("wait until 11:00 UTC"));
        let brisk = row(Storage::Secret, stuck(), Some(&[release("5m")]));
        assert_eq!((brisk.owner.display().as_str(), brisk.stuck), ("Flux (shop/web)", Stuck::Yes));
        // Flux keeps nothing in ConfigMaps.
        assert_eq!(row(Storage::ConfigMap, stuck(), Some(&[release("2h")])).stuck, Stuck::Yes);
        let unread = row(Storage::Secret, stuck(), None);
        assert_eq!((&unread.owner, unread.stuck), (&Owner::Unknown, Stuck::Unknown));
        assert_eq!(
            unread.next.as_deref(),
            Some("find out whether Flux may be at work: the HelmReleases cannot be read")
        );
        assert_eq!(row(Storage::OlmIndex, stuck(), None).owner, Owner::Olm("web".to_owned()));
        let sveltos = entry(1, Deployed, 9, "system:serviceaccount:projectsveltos:addon-controller");
        assert_eq!(row(Storage::Secret, vec![sveltos], Some(&[])).owner, Owner::Sveltos);
    }

    #[test]
    fn a_field_manager_is_a_hint_only_where_no_holder_is_stamped() {
        let head = || Head { chart: Some("demo-1.0.0".to_owned()), manager: Some("helm".to_owned()) };
        let lost = row(Storage::Secret, vec![entry(1, Deployed, 9, "")], Some(&[]));
        assert!(lost.lacks_head());
        let lost = lost.with_head(head());
        assert_eq!(
            (lost.holder, lost.manager.as_deref(), lost.chart.as_deref()),
            (None, Some("helm"), Some("demo-1.0.0"))
        );
        let stamped = row(Storage::Secret, vec![entry(2, Deployed, 9, "alice")], Some(&[]));
        assert!(!stamped.lacks_head());
        let stamped = stamped.with_head(head());
        assert_eq!((stamped.manager, stamped.chart.as_deref()), (None, Some("demo-2.0.0")));
    }

    #[test]
    fn the_json_is_flat_and_its_words_are_lower_case() {
        let row = row(Storage::OlmIndex, vec![entry(1, Deployed, 9, "alice")], None);
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!(json["owner"], serde_json::json!({"kind": "olm", "name": "web"}));
        assert_eq!((&json["storage"], &json["stuck"], &json["revision"]), (&"olm".into(), &"no".into(), &1.into()));
        assert_eq!(json["stuckFrom"], serde_json::Value::Null);
    }
}
