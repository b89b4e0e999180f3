//! The policies of an installation, from its ConfigMaps.

use interlock_engine::policy_files::PolicyFiles;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::{Client, Error};

/// The ConfigMap with the policy of the cluster, and the optional one with policies of namespaces.
pub(crate) const CLUSTER_POLICY: &str = "interlock-policies";
const NAMESPACE_POLICIES: &str = "interlock-namespace-policies";

/// Reads the policies of the installation in a namespace; `None` if the installation has no policies of its own.
///
/// # Errors
/// When the API server does not answer, or denies the read.
pub(crate) async fn policies(client: &Client, namespace: &str) -> Result<Option<PolicyFiles>, Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let Some(own) = api.get_opt(CLUSTER_POLICY).await? else {
        return Ok(None);
    };
    let namespaces = api.get_opt(NAMESPACE_POLICIES).await?.and_then(|it| it.data).unwrap_or_default();
    Ok(Some(PolicyFiles::mounted(own.data.unwrap_or_default(), namespaces)))
}
