//! The replicas of the Service, and which of them leads.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::api::{Api, ListParams};
use kube::{Client, Error};

use super::cached::{Cached, in_time};
use crate::serve::leader::LEASE;
use crate::world::kubernetes::api_error::reason;

/// The EndpointSlices of the Service to which the API server sends reviews.
const OF_THE_SERVICE: &str = "kubernetes.io/service-name=interlock";

/// A pod behind the Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replica {
    pub(super) pod: String,
    pub(super) node: String,
    pub(super) state: ReplicaState,
    pub(super) leads: bool,
    /// Whether it is the one that shows the page.
    pub(super) is_this: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplicaState {
    Ready,
    NotReady,
    Terminating,
}

/// The replicas by name, or why they cannot be read.
pub(super) type Replicas = Result<Vec<Replica>, String>;

pub(crate) struct ReplicaList {
    client: Client,
    namespace: String,
    /// The identity of this replica.
    identity: String,
    last: Cached<Replicas>,
}

impl ReplicaList {
    pub(crate) fn new(client: Client, namespace: String, identity: String) -> Self {
        Self { client, namespace, identity, last: Cached::default() }
    }

    pub(super) async fn current(&self) -> Replicas {
        self.last.or_read(self.read()).await
    }

    async fn read(&self) -> Replicas {
        in_time("answer", self.listed()).await?.map_err(|error| reason(&error))
    }

    async fn listed(&self) -> Result<Vec<Replica>, Error> {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), &self.namespace);
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let listed = slices.list(&ListParams::default().labels(OF_THE_SERVICE)).await?;
        let lease = leases.get_opt(LEASE).await?.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default();
        let endpoints = listed.items.into_iter().flat_map(|slice| slice.endpoints);
        let mut replicas: Vec<_> = endpoints.filter_map(|it| replica(it, &lease, &self.identity)).collect();
        replicas.sort_by(|a, b| a.pod.cmp(&b.pod));
        // A Service with two families of addresses has each pod twice.
        replicas.dedup_by(|a, b| a.pod == b.pod);
        Ok(replicas)
    }
}

fn replica(endpoint: Endpoint, leader: &str, this: &str) -> Option<Replica> {
    let pod = endpoint.target_ref?.name?;
    let conditions = endpoint.conditions.unwrap_or_default();
    let state = match (conditions.terminating, conditions.ready) {
        (Some(true), _) => ReplicaState::Terminating,
        (_, Some(false)) => ReplicaState::NotReady,
        _ => ReplicaState::Ready,
    };
    let node = endpoint.node_name.unwrap_or_default();
    let (leads, is_this) = (is_of(leader, &pod, &node), is_of(this, &pod, &node));
    Some(Replica { pod, node, state, leads, is_this })
}

/// Whether an identity is that of the pod: the name of its host and the process id. On the host network, the host is the node.
fn is_of(identity: &str, pod: &str, node: &str) -> bool {
    identity.rsplit_once('-').is_some_and(|(host, _)| host == pod || host == node)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::world::kubernetes::fake;

    fn endpoint(pod: &str, conditions: Value) -> Value {
        json!({"addresses": ["10.0.0.1"], "conditions": conditions, "nodeName": "n1",
            "targetRef": {"kind": "Pod", "name": pod}})
    }

    fn list(slices: Value) -> ReplicaList {
        let client = fake::client(move |head, _| match head.uri.path() {
            "/apis/discovery.k8s.io/v1/namespaces/interlock-system/endpointslices" if slices.is_null() => {
                (403, json!({"kind": "Status", "apiVersion": "v1", "code": 403, "reason": "Forbidden"}))
            }
            "/apis/discovery.k8s.io/v1/namespaces/interlock-system/endpointslices" => {
                (200, json!({"metadata": {}, "items": slices}))
            }
            "/apis/coordination.k8s.io/v1/namespaces/interlock-system/leases/interlock-leader" => {
                (200, json!({"metadata": {"name": "interlock-leader"}, "spec": {"holderIdentity": "interlock-b-1"}}))
            }
            path => panic!("{path}"),
        });
        ReplicaList::new(client, "interlock-system".to_owned(), "interlock-a-1".to_owned())
    }

    #[tokio::test]
    async fn the_replicas_are_those_of_the_service_with_the_leader() {
        let slices = json!([
            {"metadata": {}, "addressType": "IPv4", "endpoints": [
                endpoint("interlock-b", json!({"ready": true})),
                endpoint("interlock-c", json!({"ready": true, "terminating": true})),
                endpoint("interlock-a", json!({"ready": false})),
            ]},
            {"metadata": {}, "addressType": "IPv6", "endpoints": [endpoint("interlock-b", json!({"ready": true}))]},
        ]);
        let found = list(slices).current().await.unwrap();
        let found: Vec<_> = found.iter().map(|it| (&*it.pod, it.state, it.leads, it.is_this)).collect();
        assert_eq!(
            found,
            [
                ("interlock-a", ReplicaState::NotReady, false, true),
                ("interlock-b", ReplicaState::Ready, true, false),
                ("interlock-c", ReplicaState::Terminating, false, false),
            ]
        );
        assert!(list(Value::Null).current().await.is_err());
    }

    #[test]
    fn on_the_host_network_a_replica_is_known_by_its_node() {
        assert!(is_of("n1-7", "interlock-a", "n1") && !is_of("n2-7", "interlock-a", "n1") && !is_of("", "", ""));
    }
}
