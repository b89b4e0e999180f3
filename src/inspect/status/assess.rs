//! Computes the summary of a release from its records and HelmReleases.

use jiff::{SignedDuration, Timestamp};

use super::next_step::next_step;
use super::summary::{ReleaseOwner, ReleaseSummary, Stuck};
use crate::engine::flux::Driver;
use crate::engine::policy::Policy;
use crate::engine::release::{Entry, History, ReleaseRef, Status, Storage};
use crate::engine::rules::flux_release::FluxRelease;

/// The service accounts with which Sveltos writes records, in any namespace.
const SVELTOS_ACCOUNTS: [&str; 2] = [":addon-controller", ":sveltos-applier-manager"];

/// The summary of a release; `None` without records. `drivers` are all HelmReleases, or `None` if they cannot be read.
pub(crate) fn assess(
    release: &ReleaseRef,
    storage: Storage,
    history: &History,
    drivers: Option<&[Driver]>,
    policy: &Policy,
    now: Timestamp,
) -> Option<ReleaseSummary> {
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
        (Storage::OlmIndex, _) => ReleaseOwner::Olm(name.clone()),
        (_, Some(driver)) => ReleaseOwner::Flux(format!("{}/{}", driver.namespace, driver.name)),
        _ if holder.is_some_and(|holder| SVELTOS_ACCOUNTS.iter().any(|account| holder.ends_with(account))) => {
            ReleaseOwner::Sveltos
        }
        _ if is_flux_unknown => ReleaseOwner::Unknown,
        _ => ReleaseOwner::Helm,
    };
    let mut row = ReleaseSummary {
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
    row.next = next_step(&row, history, newest, policy.recovery.closes_rollback());
    Some(row)
}

/// When a record reached its status: a pending record when it was created, others when their operation ended.
pub(super) fn since(entry: &Entry) -> Option<Timestamp> {
    match entry.status {
        status if status.is_in_flight() => entry.started(),
        Status::Superseded => entry.created,
        _ => entry.stamps.ended().or(entry.created),
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
    use crate::inspect::storage_kind::StorageKind;
    use crate::world::kubernetes::RecordSummary;
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

    fn row(storage: Storage, entries: Vec<Entry>, drivers: Option<&[Driver]>) -> ReleaseSummary {
        let (policy, now) = (Policy::shipped().unwrap(), NOW.parse().unwrap());
        assess(&ReleaseRef::new("shop", "web"), storage, &History::new(entries), drivers, &policy, now).unwrap()
    }

    fn next(entries: Vec<Entry>) -> (Stuck, String) {
        let row = row(Storage::Secret, entries, Some(&[]));
        (row.stuck, row.next.unwrap_or_default())
    }

    #[test]
    fn every_status_has_its_next_safe_step() {
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
            (vec![old(1, Uninstalling)], Stuck::Yes, "run again: helm uninstall web -n shop"),
            (vec![old(1, Deployed), old(2, Failed)], Stuck::No, "roll forward: helm upgrade web CHART -n shop"),
            (vec![old(1, Failed)], Stuck::No, "roll forward: helm upgrade web CHART -n shop"),
        ] {
            assert_eq!(next(entries.clone()), (stuck, wanted.to_owned()), "{entries:?}");
        }
        let mut noted = old(1, Deployed);
        noted.stamps.set(INTERRUPTED, "demo-2.0.0@2".to_owned());
        assert_eq!(next(vec![noted]).1, "finish demo-2.0.0 first: helm upgrade web CHART --version 2.0.0 -n shop");
        // The start is unknown.
        let unborn = Entry { created: None, ..old(2, PendingUpgrade) };
        assert_eq!(
            next(vec![old(1, Deployed), unborn]),
            (
                Stuck::No,
                "wait: the start of the operation is \
            unknown"
                    .to_owned()
            )
        );
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
        assert_eq!((young.owner, young.storage), (ReleaseOwner::Helm, StorageKind::ConfigMap));
    }

    #[test]
    fn owners_are_named_and_a_helm_release_gives_more_time() {
        let release = |timeout: &str| -> Driver {
            let object = serde_json::json!({
                "metadata": {"name": "web", "namespace": "shop"}, "spec": {"timeout": timeout},
                "status": {"storageNamespace": "shop", "history": [{"name": "web", "status": "deployed"}]},
            });
            Driver::from(&serde_json::from_value::<HelmRelease>(object).unwrap())
        };
        let stuck = || vec![entry(1, Deployed, 9_000, "alice"), entry(2, PendingUpgrade, 3_600, "alice")];
        let patient = row(Storage::Secret, stuck(), Some(&[release("2h")]));
        assert_eq!((&patient.owner, patient.stuck), (&ReleaseOwner::Flux("shop/web".to_owned()), Stuck::No));
        assert_eq!(patient.next.as_deref(), Some("wait until 11:00 UTC"));
        let brisk = row(Storage::Secret, stuck(), Some(&[release("5m")]));
        assert_eq!((brisk.owner.display().as_str(), brisk.stuck), ("Flux (shop/web)", Stuck::Yes));
        // Flux stores no records in ConfigMaps.
        assert_eq!(row(Storage::ConfigMap, stuck(), Some(&[release("2h")])).stuck, Stuck::Yes);
        let unread = row(Storage::Secret, stuck(), None);
        assert_eq!((&unread.owner, unread.stuck), (&ReleaseOwner::Unknown, Stuck::Unknown));
        assert_eq!(
            unread.next.as_deref(),
            Some("check whether Flux is working on it: the HelmReleases cannot be read")
        );
        assert_eq!(row(Storage::OlmIndex, stuck(), None).owner, ReleaseOwner::Olm("web".to_owned()));
        let sveltos = entry(1, Deployed, 9, "system:serviceaccount:projectsveltos:addon-controller");
        assert_eq!(row(Storage::Secret, vec![sveltos], Some(&[])).owner, ReleaseOwner::Sveltos);
    }

    #[test]
    fn a_field_manager_is_a_hint_only_where_no_holder_is_stamped() {
        let head = || RecordSummary { chart: Some("demo-1.0.0".to_owned()), manager: Some("helm".to_owned()) };
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
