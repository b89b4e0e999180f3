//! Stamps what protects a release onto its records, so that a protection outlasts its annotated object: deleting that object would
//! otherwise be the first half of an uninstall. The stamp is removed once the object exists without its annotation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use interlock_engine::evidence::CandidateRecords;
use interlock_engine::object::{PROTECTED, protects};
use interlock_engine::owners::{HELM_RELEASES, PROTECTING, ProtectingKind};
use interlock_engine::release::stamps::PROTECTED_BY;
use interlock_engine::release::{Entry, ProtectorRef, Status, Storage};
use kube::api::{ListParams, ObjectList};
use kube::{Client, Error, ResourceExt};
use tokio::time::sleep;

use crate::inspect::annotation::annotate;
use crate::log_limit::LogLimit;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::api_error::{is_not_found, reason};
use crate::world::metadata_only::MetadataOnly;

/// The pause between two passes. A pass over a cluster where nothing changes reads only the kinds that are not watched.
const INTERVAL: Duration = Duration::from_secs(10);

/// How many stamps one pass changes. The first pass after an upgrade of Interlock may find thousands.
const MAX_CHANGES: usize = 100;

/// The number of objects in a page of a list.
const PAGE_SIZE: u32 = 100;

/// An object that protects releases, or did once.
#[derive(Debug)]
struct Protector {
    /// Its stamp.
    stamp: String,
    is_annotated: bool,
    /// The records of the release that it declares.
    records: Vec<CandidateRecords>,
}

/// A stamp to set or to remove.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    storage: Storage,
    namespace: String,
    record: Entry,
    stamp: Option<String>,
}

/// Sets and removes stamps, forever.
pub(super) async fn stamp_all(client: &Client, cluster: &Cluster) {
    let log_limit = LogLimit::new();
    loop {
        sleep(INTERVAL).await;
        for (what, why) in pass(client, cluster).await {
            if let Some(suppressed) = log_limit.admit(what) {
                tracing::warn!(
                    what,
                    why,
                    suppressed,
                    "the stamps of protected releases are not up to date; trying again"
                );
            }
        }
    }
}

/// Makes the changes that are due. Returns what failed, and why.
async fn pass(client: &Client, cluster: &Cluster) -> Vec<(&'static str, String)> {
    let Some(stamped) = cluster.releases_with_stamp(PROTECTED_BY) else {
        return Vec::new();
    };
    let stamped: Vec<_> = stamped.into_iter().map(|(_, records)| records).collect();
    let mut failed = Vec::new();
    let mut protectors = watched(cluster, &stamped);
    for kind in PROTECTING.iter().filter(|it| (it.group, it.kind) != HELM_RELEASES) {
        match listed(client, cluster, kind).await {
            Ok(listed) => protectors.extend(listed),
            Err(error) => failed.push((kind.kind, reason(&error))),
        }
    }
    for Change { storage, namespace, record, stamp } in due(&protectors, &stamped).into_iter().take(MAX_CHANGES) {
        let name = &record.name;
        match annotate(client, (storage, &namespace), &record, (PROTECTED_BY, stamp.as_deref()), false).await {
            Ok(()) => tracing::info!(%namespace, %name, stamp, "stamped what protects the release of a record"),
            // The record has changed, or is gone. The next pass sees that.
            Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => failed.push((storage.kind(), format!("{namespace}/{name}: {}", reason(&error)))),
        }
    }
    failed
}

/// The watched objects that are annotated, or named by a stamp.
fn watched(cluster: &Cluster, stamped: &[CandidateRecords]) -> Vec<Protector> {
    let named: BTreeSet<_> = stamps(stamped).filter_map(ProtectorRef::parse).map(|it| it.uid).collect();
    let found = cluster.helm_releases_that(|driver| driver.protected || named.contains(driver.uid.as_str()));
    let protectors = found.unwrap_or_default().into_iter().map(|driver| {
        let (kind, namespace, name, uid) = (HELM_RELEASES.1, &*driver.namespace, &*driver.name, &*driver.uid);
        let here = driver.installed().filter(|_| driver.kube_config.is_none());
        let history = here.and_then(|release| Some((release, cluster.known_history(Storage::Secret, release)?)));
        let records = history.map(|(release, history)| CandidateRecords {
            storage: Storage::Secret,
            namespace: release.namespace.clone(),
            history,
            held_for_origin: false,
        });
        Protector {
            stamp: ProtectorRef { kind, namespace, name, uid }.to_string(),
            is_annotated: driver.protected,
            records: records.into_iter().collect(),
        }
    });
    protectors.collect()
}

/// All objects of a kind that is not watched.
async fn listed(client: &Client, cluster: &Cluster, kind: &ProtectingKind) -> Result<Vec<Protector>, Error> {
    let mut protectors = Vec::new();
    let mut page = ListParams::default().limit(PAGE_SIZE);
    loop {
        let request = kube::core::Request::new(kind.path).list_metadata(&page).map_err(Error::BuildRequest)?;
        let read: ObjectList<MetadataOnly> = match client.request(request).await {
            Err(error) if is_not_found(&error) => return Ok(Vec::new()),
            read => read?,
        };
        protectors.extend(read.items.iter().map(|object| protector(cluster, kind.kind, object)));
        match read.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(protectors),
        }
    }
}

fn protector(cluster: &Cluster, kind: &str, object: &MetadataOnly) -> Protector {
    let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
    let namespace = object.namespace().unwrap_or_default();
    let is_annotated = protects(object.annotations().get(PROTECTED).map(String::as_str));
    let records = if is_annotated { cluster.known_extension(&name) } else { None };
    Protector {
        stamp: ProtectorRef { kind, namespace: &namespace, name: &name, uid: &uid }.to_string(),
        is_annotated,
        records: records.unwrap_or_default(),
    }
}

fn stamps(records: &[CandidateRecords]) -> impl Iterator<Item = &str> {
    records.iter().flat_map(|records| records.history.iter()).filter_map(|record| record.stamps.get(PROTECTED_BY))
}

/// The changes that are due: the newest record of a protected release has a stamp, and no record has the stamp of an object that exists
/// without its annotation.
fn due(protectors: &[Protector], stamped: &[CandidateRecords]) -> Vec<Change> {
    let mut changes = BTreeMap::new();
    for (records, newest, stamps) in declared(protectors).into_values() {
        if !newest.stamps.get(PROTECTED_BY).is_some_and(|stamp| stamps.contains(stamp)) {
            changes.insert(key(records, newest), change(records, newest, stamps.first().copied()));
        }
    }
    let void = |stamp: &str| protectors.iter().any(|it| it.stamp == stamp && !it.is_annotated);
    for records in stamped {
        for record in records.history.iter().filter(|it| it.stamps.get(PROTECTED_BY).is_some_and(void)) {
            changes.entry(key(records, record)).or_insert_with(|| change(records, record, None));
        }
        // A record that was created while the webhook was out of service has not inherited the stamp.
        let unstamped = newest_of(records).filter(|it| it.stamps.get(PROTECTED_BY).is_none());
        let inherited = records.history.protectors().map(|it| it.to_string()).find(|stamp| !void(stamp));
        if let (Some(newest), Some(stamp)) = (unstamped, inherited) {
            changes.entry(key(records, newest)).or_insert_with(|| change(records, newest, Some(&stamp)));
        }
    }
    changes.into_values().collect()
}

/// The place of a record: the kind of its object, its namespace and its name.
type Place<'r> = (&'static str, &'r str, &'r str);

fn key<'r>(records: &'r CandidateRecords, record: &'r Entry) -> Place<'r> {
    (records.storage.kind(), &records.namespace, &record.name)
}

/// The newest records of the releases that annotated objects declare, each with the stamps of all that declare it.
fn declared(protectors: &[Protector]) -> BTreeMap<Place<'_>, (&CandidateRecords, &Entry, BTreeSet<&str>)> {
    let mut declared = BTreeMap::new();
    for Protector { stamp, records, .. } in protectors.iter().filter(|protector| protector.is_annotated) {
        for (records, newest) in records.iter().filter_map(|records| Some((records, newest_of(records)?))) {
            let (.., stamps) =
                declared.entry(key(records, newest)).or_insert_with(|| (records, newest, BTreeSet::new()));
            stamps.insert(stamp.as_str());
        }
    }
    declared
}

/// The newest record of a release that is not uninstalled, and not being uninstalled.
fn newest_of(records: &CandidateRecords) -> Option<&Entry> {
    let newest = records.history.newest()?;
    (!matches!(newest.status, Status::Uninstalled | Status::Uninstalling)).then_some(newest)
}

fn change(records: &CandidateRecords, record: &Entry, stamp: Option<&str>) -> Change {
    Change {
        storage: records.storage,
        namespace: records.namespace.clone(),
        record: record.clone(),
        stamp: stamp.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests;
