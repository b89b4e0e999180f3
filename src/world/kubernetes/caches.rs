//! Copies of the most queried state: release records, scalable managed objects, Flux's HelmReleases, overrides and Freezes.

use std::sync::Arc;

use interlock_engine::answers::locate::{self, ReleaseQuery};
use interlock_engine::answers::read;
use interlock_engine::evidence::{CandidateRecords, ScaledRef};
use interlock_engine::owners::{APPLIED_LABELS, Marks, PROFILE_LABEL};
use interlock_engine::policy::{Freeze, NamespaceLabels};
use interlock_engine::release::{History, ReleaseRef, Storage};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ReplicationController, Secret};
use kube::Resource;
use kube::api::{Api, ApiResource};
use tokio::task::JoinSet;

use super::DeletedPendingRecords;
use super::custom::{CustomFeed, CustomObjects};
use super::freezes::Freezes;
use super::helm_releases::HelmReleases;
use super::index::Index;
use super::intake::IntakeClient;
use super::namespaces::NamespacesByName;
use super::reach::Reach;
use super::release_overrides::ReleaseOverrides;
use super::scalable::ScalableMarks;
use super::watch::{Feed, Mirror, follow};
use crate::readiness::{Gate, Readiness};
use crate::world::metadata_only::resource_of;
use crate::world::{InFlight, NewestRecord};

/// The label selector of objects that a Helm release manages.
const HELM_SELECTOR: &str = "app.kubernetes.io/managed-by=Helm";

/// Copies of cluster state, metadata only. They are empty and unused until they are watched.
#[derive(Debug)]
pub(super) struct Caches {
    secrets: Arc<Mirror<Index>>,
    config_maps: Arc<Mirror<Index>>,
    scalable: [ScalableMirrors; 4],
    helm_releases: Arc<HelmReleases>,
    release_overrides: Arc<ReleaseOverrides>,
    freezes: Arc<Freezes>,
    namespaces: Arc<Mirror<NamespacesByName>>,
}

/// The scalable objects of one kind. A selector cannot express "or", so there are three watches.
#[derive(Debug)]
struct ScalableMirrors {
    resource: ApiResource,
    of_releases: Arc<Mirror<ScalableMarks>>,
    of_profiles: Arc<Mirror<ScalableMarks>>,
    /// Those that are applied without a release.
    of_sources: Arc<Mirror<ScalableMarks>>,
    /// The names of the gates.
    gates: [&'static str; 3],
}

impl ScalableMirrors {
    fn of<K: Resource<DynamicType = ()>>(gates: [&'static str; 3]) -> Self {
        let (of_releases, of_profiles, of_sources) = Default::default();
        Self { resource: resource_of::<K>(), of_releases, of_profiles, of_sources, gates }
    }
}

/// The tasks that keep the copies. They end when this value is dropped.
#[derive(Debug)]
#[must_use]
pub struct Watches {
    _tasks: JoinSet<()>,
}

impl Caches {
    /// Empty copies. They add deleted pending records to `deleted_pending`.
    pub(super) fn new(deleted_pending: &Arc<DeletedPendingRecords>) -> Self {
        let index = |kind| Arc::new(Mirror::new(Index::new(kind, Arc::clone(deleted_pending))));
        Self {
            secrets: index("Secret"),
            config_maps: index("ConfigMap"),
            scalable: [
                ScalableMirrors::of::<Deployment>([
                    "the Deployments of releases",
                    "the Deployments of profiles",
                    "the Deployments of sources",
                ]),
                ScalableMirrors::of::<StatefulSet>([
                    "the StatefulSets of releases",
                    "the StatefulSets of profiles",
                    "the StatefulSets of sources",
                ]),
                ScalableMirrors::of::<ReplicaSet>([
                    "the ReplicaSets of releases",
                    "the ReplicaSets of profiles",
                    "the ReplicaSets of sources",
                ]),
                ScalableMirrors::of::<ReplicationController>([
                    "the ReplicationControllers of releases",
                    "the ReplicationControllers of profiles",
                    "the ReplicationControllers of sources",
                ]),
            ],
            helm_releases: Arc::default(),
            release_overrides: Arc::default(),
            freezes: Arc::default(),
            namespaces: Arc::default(),
        }
    }

    /// Starts the watches. Each opens its own gate after its first complete list. The watch of Namespaces opens `labels`, because
    /// nothing depends on Namespaces unless the policies have a selector.
    ///
    /// The client needs a longer read timeout than for reviews: on a quiet watch the API server sends a bookmark once a minute.
    pub(super) fn watch(&self, client: &IntakeClient, reach: &Reach, readiness: &Readiness, labels: Gate) -> Watches {
        let mut tasks = WatchTasks { client, reach, readiness, running: JoinSet::new() };
        let selector = read::RECORD_SELECTOR;
        tasks.start(&resource_of::<Secret>(), selector, &self.secrets, "the records in Secrets");
        tasks.start(&resource_of::<ConfigMap>(), selector, &self.config_maps, "the records in ConfigMaps");
        for ScalableMirrors { resource, of_releases, of_profiles, of_sources, gates } in &self.scalable {
            tasks.start(resource, HELM_SELECTOR, of_releases, gates[0]);
            // The label with any value.
            tasks.start(resource, PROFILE_LABEL, of_profiles, gates[1]);
            tasks.start(resource, APPLIED_LABELS[0], of_sources, gates[2]);
        }
        tasks.start_custom(&self.helm_releases, "the HelmReleases");
        tasks.start_custom(&self.release_overrides, "the ReleaseOverrides");
        tasks.start_custom(&self.freezes, "the Freezes");
        tasks.start_namespaces(&self.namespaces, labels);
        Watches { _tasks: tasks.running }
    }

    /// The possible records of a release, as far as the copies have them. The second value says whether the copies are in sync.
    pub(super) fn locate(&self, query: ReleaseQuery<'_>) -> (Vec<CandidateRecords>, bool) {
        let (mut record_sets, secrets) = self.secrets.read(|index| index.record_sets(query));
        let (more, config_maps) = self.config_maps.read(|index| index.record_sets(query));
        record_sets.extend(more);
        (query.candidates(record_sets), secrets && config_maps)
    }

    /// The possible records of a ClusterExtension; `None` if they are unknown.
    pub(super) fn extension(&self, name: &str) -> Option<Vec<CandidateRecords>> {
        let (record_sets, in_sync) = self.secrets.read(|index| index.record_sets_of(Storage::Index, name));
        in_sync.then(|| locate::candidates_for_extension(record_sets))
    }

    /// The releases with records elsewhere that are stamped for objects in a namespace; `None` if they are unknown.
    pub(super) fn stamped_for(&self, target_namespace: &str) -> Option<Vec<(String, CandidateRecords)>> {
        let (mut found, secrets) = self.secrets.read(|index| index.stamped_for(target_namespace));
        let (more, config_maps) = self.config_maps.read(|index| index.stamped_for(target_namespace));
        found.extend(more);
        let candidate = found.into_iter().map(|(release, record_set)| (release, record_set.into_candidate()));
        (secrets && config_maps).then(|| candidate.collect())
    }

    /// The newest record of a release by the namespace of its records, and whether the copies are in sync.
    pub(super) fn newest(&self, release: &ReleaseRef) -> (Option<NewestRecord>, bool) {
        let ReleaseRef { namespace, name } = release;
        let (mut record_sets, secrets) = self.secrets.read(|index| match namespace.as_str() {
            "" => index.record_sets_of(Storage::Index, name),
            namespace => index.record_sets_in(namespace, name),
        });
        let (more, config_maps) = self.config_maps.read(|index| index.record_sets_in(namespace, name));
        record_sets.extend(more);
        let records = record_sets.into_iter().flat_map(|record_set| {
            let locate::RecordSet { storage, namespace, entries } = record_set;
            entries.into_iter().map(move |entry| NewestRecord { storage, namespace: namespace.clone(), entry })
        });
        (records.max_by_key(|record| (record.entry.created, record.entry.revision)), secrets && config_maps)
    }

    /// The records of a release in one storage, as far as the copy has them; `None` if there are none. The second value says whether
    /// the copy is in sync.
    pub(super) fn history(
        &self,
        storage: Storage,
        ReleaseRef { namespace, name }: &ReleaseRef,
    ) -> (Option<History>, bool) {
        let copy = if storage == Storage::ConfigMap { &self.config_maps } else { &self.secrets };
        let (record_sets, in_sync) = copy.read(|index| index.record_sets_in(namespace, name));
        let found = record_sets.into_iter().find(|it| it.storage == storage);
        (found.map(|it| History::new(it.entries)), in_sync)
    }

    /// The releases with a stamp on a record; `None` if the copies are not in sync.
    pub(super) fn with_stamp(&self, key: &str) -> Option<Vec<(String, CandidateRecords)>> {
        let (mut found, secrets) = self.secrets.read(|index| index.with_stamp(key));
        let (more, config_maps) = self.config_maps.read(|index| index.with_stamp(key));
        found.extend(more);
        let candidate = found.into_iter().map(|(release, record_set)| (release, record_set.into_candidate()));
        (secrets && config_maps).then(|| candidate.collect())
    }

    /// The operations in flight, as in [`Known::in_flight`](crate::world::Known::in_flight).
    pub(super) fn in_flight(&self, limit: usize) -> (Vec<InFlight>, usize, bool) {
        let ((mut found, in_secrets), secrets) = self.secrets.read(|index| index.in_flight(limit));
        let ((more, in_config_maps), config_maps) = self.config_maps.read(|index| index.in_flight(limit));
        found.extend(more);
        (InFlight::oldest(found, limit), in_secrets + in_config_maps, secrets && config_maps)
    }

    pub(super) fn helm_releases(&self) -> &HelmReleases {
        &self.helm_releases
    }

    pub(super) fn release_overrides(&self) -> &ReleaseOverrides {
        &self.release_overrides
    }

    /// The Freezes, as last known.
    pub(super) fn freezes(&self) -> Arc<[Freeze]> {
        self.freezes.all()
    }

    /// The labels of Namespaces, as last known.
    pub(super) fn namespace_labels(&self) -> Arc<NamespaceLabels> {
        self.namespaces.read(NamespacesByName::all).0
    }

    /// The marks of a scaled object; `Some(None)` if the object has none.
    pub(super) fn marks(&self, object: &ScaledRef) -> Option<Option<Marks>> {
        let mut kinds = self.scalable.iter();
        let scaled = kinds.find(|it| it.resource.group == object.group && it.resource.plural == object.resource)?;
        let read = |scalable: &ScalableMarks| scalable.marks(&object.namespace, &object.name);
        let mirrors = [&scaled.of_releases, &scaled.of_profiles, &scaled.of_sources];
        let found = mirrors.map(|mirror| mirror.read(read));
        // Each copy has all marks of an object.
        found.iter().all(|(_, in_sync)| *in_sync).then(|| found.into_iter().find_map(|(marks, _)| marks))
    }
}

struct WatchTasks<'t> {
    client: &'t IntakeClient,
    reach: &'t Reach,
    readiness: &'t Readiness,
    running: JoinSet<()>,
}

impl WatchTasks<'_> {
    fn start<T: Feed>(
        &mut self,
        resource: &ApiResource,
        labels: &'static str,
        mirror: &Arc<Mirror<T>>,
        gate: &'static str,
    ) {
        let (apis, gate) = (self.reach.apis_with(self.client.kube(), resource), self.readiness.gate(gate));
        self.running.spawn(follow(resource.plural.clone(), apis, labels, Arc::clone(mirror), gate));
    }

    /// Follows the objects of a custom kind, and its definition.
    fn start_custom<T: CustomFeed>(&mut self, objects: &Arc<CustomObjects<T>>, gate: &'static str) {
        let (client, reach, gate) = (self.client.clone(), self.reach.clone(), self.readiness.gate(gate));
        self.running.spawn(Arc::clone(objects).follow_definition(client.clone()));
        self.running.spawn(Arc::clone(objects).follow(client, reach, gate));
    }

    /// Namespaces are not namespaced, so all of them are watched.
    fn start_namespaces(&mut self, mirror: &Arc<Mirror<NamespacesByName>>, gate: Gate) {
        let resource = resource_of::<Namespace>();
        let apis = vec![Api::all_with(self.client.kube().clone(), &resource)];
        self.running.spawn(follow(resource.plural, apis, "", Arc::clone(mirror), gate));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde_json::json;

    use super::*;

    fn index(kind: &'static str, pending_since: &[(&str, &str)]) -> Index {
        let mut index = Index::new(kind, Arc::default());
        for (release, created) in pending_since {
            let metadata = json!({
                "name": format!("sh.helm.release.v1.{release}.v1"), "namespace": "shop", "uid": "u", "resourceVersion": "1",
                "creationTimestamp": created,
                "labels": {"owner": "helm", "name": release, "version": "1", "status": "pending-install"},
            });
            let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap();
            index.apply(&metadata);
        }
        index
    }

    #[test]
    fn the_oldest_operations_of_both_kinds_are_kept_at_a_cut() {
        let caches = Caches::new(&Arc::default());
        let starts = |limit: usize| {
            let (found, total, in_sync) = caches.in_flight(limit);
            (found.into_iter().map(|it| it.release.name).collect::<Vec<_>>(), total, in_sync)
        };
        assert_eq!(starts(9), (vec![], 0, false));
        caches.secrets.replace(index("Secret", &[("b", "2026-11-21T09:02:00Z"), ("d", "2026-11-21T09:04:00Z")]));
        assert_eq!(starts(9), (vec!["b".to_owned(), "d".to_owned()], 2, false), "ConfigMaps are not in sync");
        caches.config_maps.replace(index("ConfigMap", &[("a", "2026-11-21T09:01:00Z"), ("c", "2026-11-21T09:03:00Z")]));
        assert_eq!(starts(3), (["a", "b", "c"].map(str::to_owned).to_vec(), 4, true));
    }
}
