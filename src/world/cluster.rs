//! The world as a Kubernetes API server tells it: live reads, each bounded by the review's deadline.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use http::Request;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams, PartialObjectMeta};
use kube::core::{NamespaceResourceScope, ObjectList};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use super::body::{self, Opened};
use super::read::{Rollout, entry};
use super::{Answer, Answering, Knowledge, Query, Workload, World};
use crate::budget::Budget;
use crate::release::manifest::{WorkloadKind, WorkloadRef};
use crate::release::record::{DecodeError, Payload};
use crate::release::{History, Storage};

/// Reads from an API server.
///
/// The client must neither retry nor wait without bound (`Config::default_retry`, a read timeout): a review has a few
/// seconds, and its answer is wanted before them or not at all.
pub struct Cluster {
    client: Client,
    decodes: Arc<Budget>,
}

/// Workloads read at a time, so that the hundreds of a large release fit into the time of a review.
const WORKLOAD_READS: usize = 16;

/// Why a query got no answer.
type Failed = String;

impl Cluster {
    /// A world behind a client; `decodes` bounds the memory of the record bodies that it reads.
    #[must_use]
    pub fn new(client: Client, decodes: Arc<Budget>) -> Self {
        Self { client, decodes }
    }

    async fn look_up(&self, query: &Query) -> Result<Option<Knowledge>, Failed> {
        match query {
            Query::History { storage, namespace, release } => {
                self.history(*storage, namespace, release).await.map(Knowledge::History).map(Some)
            }
            Query::Body { storage, namespace, object } => {
                Ok(self.body(*storage, namespace, object).await?.map(Knowledge::Body))
            }
            Query::Workloads(named) => {
                let reads: Vec<_> = named.iter().map(|reference| self.workload(reference)).collect();
                let found: Vec<_> = stream::iter(reads).buffered(WORKLOAD_READS).try_collect().await?;
                Ok(Some(Knowledge::Workloads(found)))
            }
            Query::Leases { namespace } => {
                let leases = self.get::<ConfigMap>(namespace, super::LEASES).await?;
                Ok(leases.map(|leases| Knowledge::Leases(leases.metadata.annotations.unwrap_or_default())))
            }
            Query::Namespace { name } => {
                let api: Api<Namespace> = Api::all(self.client.clone());
                let namespace = api.get_metadata_opt(checked(name)?).await.map_err(failed)?;
                Ok(namespace.map(|it| Knowledge::Terminating(it.metadata.deletion_timestamp.is_some())))
            }
        }
    }

    async fn workload(&self, reference: &WorkloadRef) -> Result<Option<Workload>, Failed> {
        let WorkloadRef { kind, namespace, name } = reference;
        if checked(namespace).is_err() || checked(name).is_err() {
            // No object can have such a name.
            return Ok(None);
        }
        Ok(match kind {
            WorkloadKind::Deployment => self.get::<Deployment>(namespace, name).await?.map(|it| it.rollout()),
            WorkloadKind::StatefulSet => self.get::<StatefulSet>(namespace, name).await?.map(|it| it.rollout()),
            WorkloadKind::DaemonSet => self.get::<DaemonSet>(namespace, name).await?.map(|it| it.rollout()),
        })
    }

    /// One LIST by label, metadata only: no release data in our memory. Without a resourceVersion it is consistent.
    async fn history(&self, storage: Storage, namespace: &str, release: &str) -> Result<History, Failed> {
        let selector = ListParams::default().labels(&storage.selector(checked(release)?));
        let metadata = match storage {
            Storage::Secret | Storage::OlmIndex => self.list::<Secret>(namespace, &selector).await?,
            Storage::ConfigMap => self.list::<ConfigMap>(namespace, &selector).await?,
        };
        Ok(History::new(metadata.iter().filter_map(entry).collect()))
    }

    async fn body(&self, storage: Storage, namespace: &str, object: &str) -> Result<Option<Vec<u8>>, Failed> {
        let Some(text) = self.text(storage, namespace, object).await? else {
            return Ok(None);
        };
        let broken = |error: DecodeError| format!("the record {namespace}/{object} does not decode: {error}");
        let payload = match body::open(storage, &text).map_err(broken)? {
            Opened::Whole(payload) => payload,
            Opened::Parts { first, others } => {
                let mut parts = vec![first];
                for other in &others {
                    let text = self.text(storage, namespace, other).await?;
                    let text = text.ok_or_else(|| format!("the part {namespace}/{other} of a record is missing"))?;
                    parts.push(body::part(&text).map_err(broken)?);
                }
                Payload::join(parts.iter().map(String::as_str)).map_err(broken)?
            }
        };
        let _granted = self.decodes.grant(payload.inflated_size()).await;
        payload.inflate().map(Some).map_err(broken)
    }

    /// The JSON text of the object of a record; `None` when there is no such object.
    async fn text(&self, storage: Storage, namespace: &str, object: &str) -> Result<Option<String>, Failed> {
        let resource = match storage {
            Storage::Secret | Storage::OlmIndex => "secrets",
            Storage::ConfigMap => "configmaps",
        };
        let path = format!("/api/v1/namespaces/{}/{resource}/{}", checked(namespace)?, checked(object)?);
        let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
        match self.client.request_text(request).await {
            Ok(text) => Ok(Some(text)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    async fn get<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, Failed>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), checked(namespace)?);
        api.get_opt(checked(name)?).await.map_err(failed)
    }

    async fn list<K>(&self, namespace: &str, selector: &ListParams) -> Result<Vec<ObjectMeta>, Failed>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), checked(namespace)?);
        let list: ObjectList<PartialObjectMeta<K>> = api.list_metadata(selector).await.map_err(failed)?;
        Ok(list.items.into_iter().map(|item| item.metadata).collect())
    }
}

impl World for Cluster {
    fn answer<'w>(&'w self, query: &'w Query) -> Answering<'w> {
        Box::pin(async move {
            match self.look_up(query).await {
                Ok(Some(knowledge)) => Answer::Known(knowledge),
                Ok(None) => Answer::Absent,
                Err(why) => Answer::Unavailable(why),
            }
        })
    }
}

/// Names become parts of paths and selectors. The API server sends only valid ones, but it is not the only one that can
/// reach this port.
fn checked(name: &str) -> Result<&str, Failed> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if !name.is_empty() && name.len() <= 253 && name.bytes().all(plain) {
        return Ok(name);
    }
    Err(format!("{:?} is not the name of an object", name.chars().take(80).collect::<String>()))
}

fn failed(error: kube::Error) -> Failed {
    match error {
        kube::Error::Api(status) => format!("the API server answered {}: {}", status.code, status.message),
        error => format!("the API server did not answer: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn a_name_cannot_leave_its_path_or_selector() {
        assert!(checked("sh.helm.release.v1.a.v1").is_ok());
        for bad in ["", "..%2f", "a/b", "a,owner=x", "a?b", "A", &"a".repeat(254)] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }
}
