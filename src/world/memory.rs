//! A world in memory: for the standalone server, which learns from what it admits, for replay, and for tests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::body::{self, Opened};
use super::read::{Rollout, entry};
use super::{Answer, Answering, Knowledge, Query, Workload, World};
use crate::release::manifest::{WorkloadKind, WorkloadRef};
use crate::release::record::{DecodeError, Payload};
use crate::release::{History, Storage};

/// How an object is known: group, kind, namespace, name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Empty for the core group.
    pub group: String,
    /// For example `Secret`.
    pub kind: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

/// Objects as JSON text, the oldest forgotten first when they grow over a limit.
#[derive(Debug)]
pub struct Memory {
    objects: Mutex<Objects>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Objects {
    by_key: HashMap<Key, String>,
    /// In the order in which they were first seen.
    order: VecDeque<Key>,
    bytes: usize,
}

#[derive(Deserialize)]
struct MetadataOnly {
    metadata: ObjectMeta,
}

impl Memory {
    /// An empty world that holds at most `limit` bytes of objects.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { objects: Mutex::default(), limit }
    }

    /// Puts an object in, as JSON text, in place of the one of the same key.
    pub fn put(&self, key: Key, object: String) {
        let mut objects = self.lock();
        objects.bytes += object.len();
        match objects.by_key.insert(key.clone(), object) {
            Some(old) => objects.bytes -= old.len(),
            None => objects.order.push_back(key),
        }
        while objects.bytes > self.limit {
            let Some(oldest) = objects.order.pop_front() else {
                break;
            };
            if let Some(forgotten) = objects.by_key.remove(&oldest) {
                objects.bytes -= forgotten.len();
            }
        }
    }

    /// Takes an object out.
    pub fn remove(&self, key: &Key) {
        let mut objects = self.lock();
        if let Some(gone) = objects.by_key.remove(key) {
            objects.bytes -= gone.len();
            objects.order.retain(|kept| kept != key);
        }
    }

    /// The JSON text of an object.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<String> {
        self.lock().by_key.get(key).cloned()
    }

    fn look_up(&self, query: &Query) -> Answer {
        match query {
            Query::History { storage, namespace, release } => {
                Answer::Known(Knowledge::History(self.history(*storage, namespace, release)))
            }
            Query::Body { storage, namespace, object } => self.body(*storage, namespace, object),
            Query::Workloads(named) => {
                Answer::Known(Knowledge::Workloads(named.iter().map(|reference| self.workload(reference)).collect()))
            }
            Query::Leases { namespace } => {
                let leases: Option<ConfigMap> = self.read(&Key::new("", "ConfigMap", namespace, super::LEASES));
                known(leases.map(|leases| Knowledge::Leases(leases.metadata.annotations.unwrap_or_default())))
            }
            Query::Namespace { name } => {
                let namespace: Option<Namespace> = self.read(&Key::new("", "Namespace", "", name));
                let terminating = namespace.map(|namespace| namespace.metadata.deletion_timestamp.is_some());
                known(terminating.map(Knowledge::Terminating))
            }
        }
    }

    fn workload(&self, WorkloadRef { kind, namespace, name }: &WorkloadRef) -> Option<Workload> {
        let key = Key::new("apps", kind.as_str(), namespace, name);
        match kind {
            WorkloadKind::Deployment => self.read(&key).map(|object: Deployment| object.rollout()),
            WorkloadKind::StatefulSet => self.read(&key).map(|object: StatefulSet| object.rollout()),
            WorkloadKind::DaemonSet => self.read(&key).map(|object: DaemonSet| object.rollout()),
        }
    }

    fn history(&self, storage: Storage, namespace: &str, release: &str) -> History {
        let objects = self.lock();
        let in_namespace = objects
            .by_key
            .iter()
            .filter(|(key, _)| key.group.is_empty() && key.kind == storage.kind() && key.namespace == namespace);
        let entries = in_namespace.filter_map(|(_, text)| {
            let metadata = serde_json::from_str::<MetadataOnly>(text).ok()?.metadata;
            let label = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
            let listed = label("owner") == Some(storage.owner()) && label("name") == Some(release);
            entry(&metadata).filter(|_| listed)
        });
        History::new(entries.collect())
    }

    fn body(&self, storage: Storage, namespace: &str, object: &str) -> Answer {
        let secret = |name: &str| self.get(&Key::new("", storage.kind(), namespace, name));
        let Some(text) = secret(object) else {
            return Answer::Absent;
        };
        let payload = body::open(storage, &text).and_then(|opened| match opened {
            Opened::Whole(payload) => Ok(payload),
            Opened::Parts { first, others } => {
                let other = |name: &String| body::part(&secret(name).ok_or(DecodeError::Missing)?);
                let others: Vec<_> = others.iter().map(other).collect::<Result<_, _>>()?;
                Payload::join(std::iter::once(&first).chain(&others).map(String::as_str))
            }
        });
        match payload.and_then(Payload::inflate) {
            Ok(json) => Answer::Known(Knowledge::Body(json)),
            Err(error) => Answer::Unavailable(format!("the record {namespace}/{object} does not decode: {error}")),
        }
    }

    fn read<T: DeserializeOwned>(&self, key: &Key) -> Option<T> {
        serde_json::from_str(&self.get(key)?).ok()
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        // A panic elsewhere cannot leave the map half-changed in a way that matters here.
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    /// A key from its parts.
    #[must_use]
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }
}

impl World for Memory {
    fn answer<'w>(&'w self, query: &'w Query) -> Answering<'w> {
        Box::pin(std::future::ready(self.look_up(query)))
    }
}

fn known(knowledge: Option<Knowledge>) -> Answer {
    knowledge.map_or(Answer::Absent, Answer::Known)
}
