//! Whether an installation of Interlock works, seen from outside by whoever runs it: by reads, by questions about rights,
//! and by dry runs that write nothing.
//!
//! [`examine`] fetches everything once; each check is a small pure function over what was fetched.

mod certificates;
mod check;
mod definitions;
mod fetch;
mod neighbours;
mod probe;
mod registration;
mod replicas;
mod rights;
mod selector;
mod server;
mod writers;

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

pub use check::{Check, Report, State};
use fetch::Seen;

use crate::engine::policy::PolicyFiles;

/// An answer that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the cluster says, fetched once.
struct Cluster {
    /// Interlock's own namespace.
    namespace: String,
    validating: Seen,
    mutating: Seen,
    deployment: Seen,
    pods: Seen,
    budgets: Seen,
    lease: Seen,
    definition: Seen,
    /// `None` where there are none.
    policies: Result<Option<PolicyFiles>, String>,
    namespaces: Seen,
    nodes: Seen,
    records: Result<neighbours::Records, String>,
    version: Seen,
    roles: Seen,
    bindings: Seen,
    local_roles: Seen,
    local_bindings: Seen,
    /// The API server's clock and ours, at one moment.
    clocks: (Timestamp, Timestamp),
}

/// Examines the installation in a namespace.
///
/// # Errors
/// When the API server cannot be reached at all. What may not be read is told as a check that was skipped.
pub async fn examine(client: &Client, namespace: &str) -> Result<Report, kube::Error> {
    let clocks = fetch::clocks(client).await?;
    let cluster = Cluster::fetch(client, namespace, clocks).await;
    let mut checks = Vec::new();
    checks.extend(server::checks(&cluster));
    checks.extend(registration::checks(&cluster));
    checks.extend(certificates::checks(&cluster, clocks.0));
    checks.extend(probe::checks(client, &cluster).await);
    checks.extend(replicas::checks(&cluster));
    checks.extend(definitions::checks(&cluster));
    checks.extend(rights::checks(client, &cluster).await);
    checks.extend(writers::checks(&cluster));
    checks.extend(neighbours::checks(&cluster));
    Ok(Report { version: env!("CARGO_PKG_VERSION"), namespace: namespace.to_owned(), checks })
}

/// The registration as it should be: every shipped entry, reached as the entries that are there are reached. For
/// `kubectl apply`.
///
/// # Errors
/// When the API server does not answer.
pub async fn registration(client: &Client, namespace: &str) -> Result<Value, kube::Error> {
    let [validating, mutating] = fetch::registrations(client).await?;
    Ok(registration::repaired(namespace, &validating, &mutating))
}

impl Cluster {
    async fn fetch(client: &Client, namespace: &str, clocks: (Timestamp, Timestamp)) -> Self {
        let get = |path: String| fetch::get(client, path);
        let admission = "/apis/admissionregistration.k8s.io/v1";
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let core = format!("/api/v1/namespaces/{namespace}");
        let local = format!("{rbac}/namespaces/{namespace}");
        let (validating, mutating, deployment, pods, budgets, lease) = tokio::join!(
            get(format!("{admission}/validatingwebhookconfigurations?limit=500")),
            get(format!("{admission}/mutatingwebhookconfigurations?limit=500")),
            get(format!("/apis/apps/v1/namespaces/{namespace}/deployments/interlock")),
            get(format!("{core}/pods?labelSelector=app.kubernetes.io%2Fname%3Dinterlock&limit=100")),
            get(format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets?limit=100")),
            get(format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/interlock-leader")),
        );
        let (definition, policies, namespaces, nodes, records, version) = tokio::join!(
            get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/releaseoverrides.interlock.dev".to_owned()),
            fetch::policies(client, namespace),
            fetch::metadata(client, "/api/v1/namespaces?limit=5000"),
            fetch::metadata(client, "/api/v1/nodes?limit=2"),
            neighbours::records(client),
            get("/version".to_owned()),
        );
        let (roles, bindings, local_roles, local_bindings) = tokio::join!(
            get(format!("{rbac}/clusterroles?limit=2000")),
            get(format!("{rbac}/clusterrolebindings?limit=2000")),
            get(format!("{local}/roles?limit=500")),
            get(format!("{local}/rolebindings?limit=500")),
        );
        Self {
            namespace: namespace.to_owned(),
            validating,
            mutating,
            deployment,
            pods,
            budgets,
            lease,
            definition,
            policies,
            namespaces,
            nodes,
            records,
            version,
            roles,
            bindings,
            local_roles,
            local_bindings,
            clocks,
        }
    }
}

#[cfg(test)]
mod tests;
