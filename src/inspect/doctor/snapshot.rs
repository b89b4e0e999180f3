//! The objects of an installation, fetched once.

use interlock_engine::policy_files::PolicyFiles;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use super::fetch::{self, Fetched};
use super::records::{self, RecordCounts};
use super::registration::RECORD_ENTRY;
use super::selector::each;
use crate::inspect::arrival::CONFIGURATION;

/// Why checks of what is guarded are skipped.
pub(super) const NOT_REGISTERED: &str = "the registration is missing, so nothing is guarded";

/// The objects of an installation at one moment.
pub(super) struct Snapshot {
    pub(super) namespace: String,
    pub(super) validating: Fetched,
    pub(super) mutating: Fetched,
    pub(super) deployment: Fetched,
    pub(super) pods: Fetched,
    pub(super) budgets: Fetched,
    pub(super) network_policies: Fetched,
    pub(super) lease: Fetched,
    pub(super) overrides_definition: Fetched,
    pub(super) freezes_definition: Fetched,
    /// `None` without a ConfigMap of policies.
    pub(super) policies: Result<Option<PolicyFiles>, String>,
    pub(super) namespaces: Fetched,
    /// The metadata of the objects whose annotation can protect a release, by their kind.
    pub(super) declarations: Vec<(&'static str, Fetched)>,
    pub(super) nodes: Fetched,
    pub(super) daemon_sets: Fetched,
    pub(super) records: Result<RecordCounts, String>,
    pub(super) version: Fetched,
    pub(super) roles: Fetched,
    pub(super) bindings: Fetched,
    pub(super) local_roles: Fetched,
    pub(super) local_bindings: Fetched,
    /// The users of the service accounts with the name of a controller that writes statuses, in all namespaces.
    pub(super) controllers: Result<Vec<String>, String>,
    /// The API server's clock and this machine's clock, at one moment.
    pub(super) clocks: (Timestamp, Timestamp),
}

impl Snapshot {
    pub(super) async fn fetch(client: &Client, namespace: &str, clocks: (Timestamp, Timestamp)) -> Self {
        let get = |path: String| fetch::get(client, path);
        let admission = "/apis/admissionregistration.k8s.io/v1";
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let core = format!("/api/v1/namespaces/{namespace}");
        let local = format!("{rbac}/namespaces/{namespace}");
        let (validating, mutating, deployment, pods, budgets, network_policies, lease) = tokio::join!(
            get(format!("{admission}/validatingwebhookconfigurations?limit=500")),
            get(format!("{admission}/mutatingwebhookconfigurations?limit=500")),
            get(format!("/apis/apps/v1/namespaces/{namespace}/deployments/interlock")),
            get(format!("{core}/pods?labelSelector=app.kubernetes.io%2Fname%3Dinterlock&limit=100")),
            get(format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets?limit=100")),
            get(format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies?limit=100")),
            get(format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/interlock-leader")),
        );
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (overrides_definition, freezes_definition, policies, namespaces, nodes, daemon_sets, records, version) = tokio::join!(
            get(format!("{definitions}/releaseoverrides.interlock.dev")),
            get(format!("{definitions}/freezes.interlock.dev")),
            fetch::policies(client, namespace),
            fetch::metadata(client, "/api/v1/namespaces?limit=5000"),
            fetch::metadata(client, "/api/v1/nodes?limit=2"),
            get("/apis/apps/v1/daemonsets?limit=1000".to_owned()),
            records::count(client),
            get("/version".to_owned()),
        );
        let (roles, bindings, local_roles, local_bindings, controllers, declarations) = tokio::join!(
            get(format!("{rbac}/clusterroles?limit=2000")),
            get(format!("{rbac}/clusterrolebindings?limit=2000")),
            get(format!("{local}/roles?limit=500")),
            get(format!("{local}/rolebindings?limit=500")),
            fetch::controllers(client),
            fetch::declarations(client),
        );
        Self {
            namespace: namespace.to_owned(),
            validating,
            mutating,
            deployment,
            pods,
            budgets,
            network_policies,
            lease,
            overrides_definition,
            freezes_definition,
            policies,
            namespaces,
            declarations,
            nodes,
            daemon_sets,
            records,
            version,
            roles,
            bindings,
            local_roles,
            local_bindings,
            controllers,
            clocks,
        }
    }

    /// The entry that receives the creation and the deletion of records; `None` if it is not known.
    pub(super) fn record_entry(&self) -> Option<&Value> {
        self.entry(RECORD_ENTRY)
    }

    /// An entry of the validating configuration; `None` if it is not known.
    pub(super) fn entry(&self, name: &str) -> Option<&Value> {
        each(&self.validating.named(CONFIGURATION).ok()??["webhooks"]).find(|entry| entry["name"] == name)
    }
}

#[cfg(test)]
impl Snapshot {
    /// A snapshot in which only the time is known: 2026-11-21T10:00:00Z.
    pub(super) fn unread() -> Self {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let unknown = || Fetched::Unknown("not asked".to_owned());
        Self {
            namespace: "guard".to_owned(),
            validating: unknown(),
            mutating: unknown(),
            deployment: unknown(),
            pods: unknown(),
            budgets: unknown(),
            network_policies: unknown(),
            lease: unknown(),
            overrides_definition: unknown(),
            freezes_definition: unknown(),
            policies: Err("not asked".to_owned()),
            namespaces: unknown(),
            declarations: Vec::new(),
            nodes: unknown(),
            daemon_sets: unknown(),
            records: Err("not asked".to_owned()),
            version: unknown(),
            roles: unknown(),
            bindings: unknown(),
            local_roles: unknown(),
            local_bindings: unknown(),
            controllers: Err("not asked".to_owned()),
            clocks: (now, now),
        }
    }
}
