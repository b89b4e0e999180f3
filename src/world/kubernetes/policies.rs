//! The policies that the replicas of an installation read, as the API has them.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::{Client, Error};

use crate::engine::policy::PolicyFiles;

/// The ConfigMap with the cluster's policy, and that with those of namespaces, which may be missing.
const CLUSTER: &str = "interlock-policies";
const NAMESPACES: &str = "interlock-namespace-policies";

/// Reads the policies of the installation in a namespace; `None` where it has none of its own.
///
/// # Errors
/// When the API server does not answer, or they may not be read.
pub(crate) async fn policies(client: &Client, namespace: &str) -> Result<Option<PolicyFiles>, Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let Some(own) = api.get_opt(CLUSTER).await? else {
        return Ok(None);
    };
    let namespaces = api.get_opt(NAMESPACES).await?.and_then(|it| it.data).unwrap_or_default();
    Ok(Some(PolicyFiles::mounted(own.data.unwrap_or_default(), namespaces)))
}
