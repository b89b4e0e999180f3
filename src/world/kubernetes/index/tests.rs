//! The index as a watch fills it, and its memory.

use std::mem::size_of;

use interlock_engine::answers::locate::OriginRecords;
use interlock_engine::evidence::CandidateRecords;
use interlock_engine::managed::Origin;
use interlock_engine::owners::InstalledAt;
use serde_json::{Value, json};

use super::*;

/// The metadata of a record as Helm writes it.
fn record(namespace: &str, release: &str, revision: u64, status: &str) -> Value {
    json!({
        "name": format!("sh.helm.release.v1.{release}.v{revision}"),
        "namespace": namespace,
        "uid": format!("6f1c2a8e-9b7d-4c35-8e1f-{revision:012x}"),
        "resourceVersion": format!("{}", 184_467 + revision),
        "creationTimestamp": format!("2026-11-21T09:{:02}:20Z", revision % 60),
        "labels": {
            "owner": "helm", "name": release, "version": revision.to_string(), "status": status,
            "modifiedAt": "1795253000",
        },
        "managedFields": [{
            "manager": "helm", "operation": "Update", "apiVersion": "v1", "time": "2026-11-21T09:23:20Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "f:release": {}}},
        }],
    })
}

fn stamped(mut record: Value, target_namespace: &str) -> Value {
    record["annotations"] = json!({
        "interlock.dev/holder": "system:serviceaccount:flux-system:helm-controller",
        "interlock.dev/started": "2026-11-21T09:23:20Z",
        "interlock.dev/chart": "kube-prometheus-stack-65.1.0",
        "interlock.dev/target-namespace": target_namespace,
    });
    record
}

fn metadata(record: &Value) -> ObjectMeta {
    serde_json::from_value(record.clone()).unwrap()
}

fn index(records: &[Value]) -> Index {
    let mut index = Index::new("Secret", Arc::default());
    for record in records {
        index.apply(&metadata(record));
    }
    index
}

/// The records in the namespace that is named last, or elsewhere if there are any.
fn locate(index: &Index, name: &str, target_namespace: &str, records: Option<&str>) -> Option<CandidateRecords> {
    let tenants = Origin { namespace: "tenants".to_owned(), name: "web".to_owned() };
    let installed = records.map(|records| InstalledAt { records: records.to_owned(), account: None });
    let origin = installed.as_ref().map(|installed| OriginRecords { origin: &tenants, installed });
    let query = ReleaseQuery { name, target_namespace, origin };
    let found = query.candidates(index.record_sets(query));
    found
        .into_iter()
        .max_by_key(|candidate| (candidate.namespace != target_namespace, records == Some(&*candidate.namespace)))
}

/// Namespace of the records and revisions found, newest first.
fn found(index: &Index, name: &str, target_namespace: &str, origin: Option<&str>) -> Option<(String, Vec<u64>)> {
    let candidate = locate(index, name, target_namespace, origin)?;
    let revisions = candidate.history.below(Revision(u64::MAX)).map(|entry| entry.revision.0).collect();
    Some((candidate.namespace, revisions))
}

fn at(namespace: &str, revisions: &[u64]) -> Option<(String, Vec<u64>)> {
    Some((namespace.to_owned(), revisions.to_vec()))
}

#[test]
fn a_release_is_found_by_namespace_flux_or_stamp() {
    let mut records = vec![record("shop", "web", 1, "deployed")];
    assert_eq!(found(&index(&records), "web", "shop", Some("flux")), at("shop", &[1]));
    records.push(record("flux", "web", 2, "deployed"));
    assert_eq!(found(&index(&records), "web", "shop", Some("flux")), at("flux", &[2]));
    assert_eq!(found(&index(&records), "web", "shop", None), at("shop", &[1]));
    records.push(stamped(record("releases", "web", 3, "pending-upgrade"), "shop"));
    records.push(record("releases", "web", 2, "deployed"));
    assert_eq!(found(&index(&records), "web", "shop", None), at("releases", &[3, 2]));
    assert_eq!(found(&index(&records), "web", "elsewhere", None), None);
    assert_eq!(found(&index(&records), "other", "shop", None), None);
}

#[test]
fn no_namespace_crowds_out_the_stamped_records_of_another() {
    let strangers = (0..3_000).map(|number| stamped(record("evil", &format!("r{number}"), 1, "deployed"), "shop"));
    let mut records: Vec<_> = strangers.collect();
    records.push(stamped(record("flux", "web", 3, "deployed"), "shop"));
    records.push(stamped(record("flux", "other", 3, "deployed"), "elsewhere"));
    records.push(record("shop", "home", 1, "deployed"));
    let found = index(&records).stamped_for("shop");
    assert_eq!(found.iter().filter(|(_, set)| set.namespace == "evil").count(), MAX_STAMPED);
    let others = found.iter().filter(|(_, set)| set.namespace != "evil");
    assert_eq!(others.map(|(release, set)| (&**release, &*set.namespace)).collect::<Vec<_>>(), [("web", "flux")]);
}

#[test]
fn the_index_keeps_all_fields_of_an_entry() {
    let record = metadata(&stamped(record("flux", "web", 3, "failed"), "shop"));
    let mut index = Index::new("Secret", Arc::default());
    index.apply(&record);
    let candidate = locate(&index, "web", "shop", None).unwrap();
    assert_eq!(candidate.history.newest(), read::entry(&record).as_ref());
    assert_eq!(candidate.storage, Storage::Secret);
}

#[test]
fn operations_in_flight_are_listed_oldest_start_first() {
    // An uninstall starts on a record that may be months old.
    let mut uninstalling = stamped(record("shop", "old", 1, "uninstalling"), "shop");
    uninstalling["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    let index = index(&[
        uninstalling,
        record("shop", "late", 30, "pending-upgrade"),
        record("shop", "early", 8, "deployed"),
        record("shop", "early", 9, "pending-rollback"),
        record("other", "early", 9, "pending-install"),
        // Neither recovered nor finished operations are in flight.
        record("shop", "done", 2, "deployed"),
        record("shop", "recovered", 2, "pending-upgrade"),
        record("shop", "recovered", 3, "failed"),
    ]);
    let named = |limit: usize| {
        let (found, total) = index.in_flight(limit);
        (found.iter().map(|it| it.release.to_string()).collect::<Vec<_>>(), total)
    };
    let (all, total) = named(9);
    assert_eq!((&all[..], total), (&["other/early", "shop/early", "shop/old", "shop/late"].map(str::to_owned)[..], 4));
    assert_eq!(named(2), (all[..2].to_vec(), 4));
    let (found, _) = index.in_flight(3);
    assert_eq!((found[1].entries.len(), found[2].started), (2, "2026-11-21T09:23:20Z".parse().ok()));
    assert!(found.iter().all(|it| {
        let newest = it.entries.iter().max_by_key(|entry| entry.revision).unwrap();
        newest.started() == it.started && it.storage == Storage::Secret
    }));
}

#[test]
fn superseded_records_leave_and_stay_out() {
    let mut index = index(&[record("shop", "web", 1, "deployed"), record("shop", "web", 2, "pending-upgrade")]);
    index.apply(&metadata(&record("shop", "web", 2, "deployed")));
    index.apply(&metadata(&record("shop", "web", 1, "superseded")));
    assert_eq!(found(&index, "web", "shop", None), at("shop", &[2]));
    index.apply(&metadata(&record("shop", "web", 2, "superseded")));
    assert_eq!(found(&index, "web", "shop", None), None);
    assert_empty(&index);
}

#[test]
fn deletions_and_changed_labels_are_followed() {
    let web = stamped(record("flux", "web", 1, "deployed"), "shop");
    let mut index = index(std::slice::from_ref(&web));
    let mut renamed = web.clone();
    renamed["labels"]["name"] = "api".into();
    index.apply(&metadata(&renamed));
    assert_eq!(found(&index, "web", "shop", None), None);
    assert_eq!(found(&index, "api", "shop", None), at("flux", &[1]));
    let mut moved = renamed.clone();
    moved["annotations"]["interlock.dev/target-namespace"] = "other".into();
    index.apply(&metadata(&moved));
    assert_eq!(found(&index, "api", "shop", None), None);
    assert_eq!(found(&index, "api", "other", None), at("flux", &[1]));
    // A deleted object has the labels that it had last, which may be any.
    index.delete(&metadata(&web));
    assert_empty(&index);
}

#[test]
fn one_of_two_stamped_records_keeps_the_way_to_their_place() {
    let failed = stamped(record("flux", "web", 2, "failed"), "shop");
    let mut index = index(&[stamped(record("flux", "web", 1, "deployed"), "shop"), failed.clone()]);
    index.delete(&metadata(&failed));
    assert_eq!(found(&index, "web", "shop", None), at("flux", &[1]));
}

#[test]
fn only_records_are_taken_in() {
    let mut chunk = record("olm", "ext", 1, "deployed");
    chunk["labels"]["owner"] = "operator-controller".into();
    let mut first = chunk.clone();
    first["labels"]["type"] = "index".into();
    assert_empty(&index(&[chunk]));
    let index = index(&[first]);
    assert_eq!(locate(&index, "ext", "olm", None).unwrap().storage, Storage::Index);
    let mut config_maps = Index::new("ConfigMap", Arc::default());
    config_maps.apply(&metadata(&record("shop", "web", 1, "deployed")));
    assert_eq!(locate(&config_maps, "web", "shop", None).unwrap().storage, Storage::ConfigMap);
    let mut nameless = record("shop", "web", 1, "deployed");
    nameless["labels"]["status"] = "strange".into();
    config_maps.apply(&metadata(&nameless));
    assert_empty(&config_maps);
}

fn assert_empty(index: &Index) {
    assert!(index.releases.is_empty() && index.objects.is_empty() && index.elsewhere.is_empty(), "{index:?}");
}

/// The most bytes of memory for a release with two records, allocator rounding left out.
const BYTES_PER_RELEASE: usize = 1400;

#[test]
fn ten_thousand_releases_take_little_memory() {
    const RELEASES: usize = 10_000;
    let mut index = Index::new("Secret", Arc::default());
    for number in 0..RELEASES {
        // Every fourth is Flux's, with its records in another namespace than its objects.
        let target = format!("team-{:04}-production", number / 3);
        let storage = if number % 4 == 0 { "flux-system" } else { &target };
        let release = format!("payment-gateway-{number:05}");
        for (revision, status) in [(17, "deployed"), (18, "failed")] {
            index.apply(&metadata(&stamped(record(storage, &release, revision, status), &target)));
        }
    }
    assert_eq!(found(&index, "payment-gateway-00004", "team-0001-production", None), at("flux-system", &[18, 17]));
    let each = owned_bytes(&index) / RELEASES;
    assert!(each <= BYTES_PER_RELEASE, "{each} bytes for each release");
}

/// The bytes that an index requested from its allocator. Tables are counted as hashbrown allocates them: for each bucket one
/// control byte and one item, and as many buckets as the next power of two above 8/7 of the capacity.
fn owned_bytes(index: &Index) -> usize {
    fn table<K, V>(map: &HashMap<K, V>) -> usize {
        (map.capacity() * 8 / 7).next_power_of_two() * (size_of::<(K, V)>() + 1)
    }
    /// The two counters of an `Arc`.
    const COUNTERS: usize = 2 * size_of::<usize>();
    let entry = |entry: &CompactEntry| {
        let stamps = entry.stamps.iter().map(|(_, value)| value.len() + size_of::<(&str, Box<str>)>());
        COUNTERS + entry.name.len() + entry.uid.len() + entry.resource_version.len() + stamps.sum::<usize>()
    };
    let release = |(location, records): (&Arc<RecordLocation>, &Vec<CompactEntry>)| {
        let texts = COUNTERS + location.namespace.len() + location.release.len();
        let records = records.capacity() * size_of::<CompactEntry>() + records.iter().map(entry).sum::<usize>();
        COUNTERS + size_of::<RecordLocation>() + texts + records
    };
    let elsewhere = |(target, locations): (&TargetRelease, &Vec<Arc<RecordLocation>>)| {
        target.release.len() + target.namespace.len() + locations.capacity() * size_of::<Arc<RecordLocation>>()
    };
    table(&index.releases)
        + table(&index.objects)
        + table(&index.elsewhere)
        + index.releases.iter().map(release).sum::<usize>()
        + index.elsewhere.iter().map(elsewhere).sum::<usize>()
}

/// The revisions of the lost pending records, in order.
fn lost(deleted_pending: &DeletedPendingRecords) -> Vec<u64> {
    use futures_util::FutureExt;
    let next = || {
        let deleted = deleted_pending.next().now_or_never()?;
        deleted_pending.done(&deleted);
        Some(deleted.record.revision.0)
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn a_deleted_newest_pending_record_is_reported_once() {
    let deleted_pending = Arc::default();
    let mut index = Index::new("Secret", Arc::clone(&deleted_pending));
    let records = [record("shop", "web", 1, "deployed"), record("shop", "web", 2, "pending-upgrade")];
    records.iter().for_each(|record| index.apply(&metadata(record)));
    // A change of the record is no deletion.
    index.apply(&metadata(&records[1]));
    assert_eq!(lost(&deleted_pending), [0; 0]);
    index.delete(&metadata(&records[1]));
    index.delete(&metadata(&records[1]));
    assert_eq!(lost(&deleted_pending), [2]);
    index.delete(&metadata(&records[0]));
    assert_eq!(lost(&deleted_pending), [0; 0]);

    // A record that was pruned from the middle, or that an uninstall marked first.
    index.apply(&metadata(&record("shop", "web", 3, "pending-upgrade")));
    index.apply(&metadata(&record("shop", "web", 4, "failed")));
    index.delete(&metadata(&record("shop", "web", 3, "pending-upgrade")));
    index.apply(&metadata(&record("shop", "web", 4, "uninstalling")));
    index.delete(&metadata(&record("shop", "web", 4, "uninstalling")));
    assert_eq!(lost(&deleted_pending), [0; 0]);
}

#[test]
fn a_deletion_without_a_watch_is_reported_by_the_next_list() {
    let deleted_pending = Arc::default();
    let mut old = Index::new("Secret", Arc::clone(&deleted_pending));
    let all = [
        record("shop", "web", 1, "deployed"),
        record("shop", "web", 2, "pending-upgrade"),
        record("shop", "api", 5, "pending-upgrade"),
        record("shop", "api", 4, "pending-upgrade"),
    ];
    all.iter().for_each(|record| old.apply(&metadata(record)));
    let mut new = old.fresh();
    [&all[0], &all[2]].into_iter().for_each(|record| new.apply(&metadata(record)));
    new.follow(&old);
    assert_eq!(lost(&deleted_pending), [2]);
}
