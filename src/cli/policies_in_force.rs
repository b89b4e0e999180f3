//! The policies that a running Interlock judges by, for commands that must not have another opinion.

use anyhow::Context;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;

use super::PolicyDir;
use super::table::printable;
use crate::policy::{Files, Policies};

/// Where Interlock is installed.
const NAMESPACE: &str = "interlock-system";
/// The ConfigMaps with the cluster's policy, and with those of namespaces.
const CONFIG_MAPS: [&str; 2] = ["interlock-policies", "interlock-namespace-policies"];

impl PolicyDir {
    /// Those of the directory that was named; otherwise those that the cluster's Interlock goes by; where none is installed,
    /// or it may not be read, the shipped ones, which the latter says.
    pub(super) async fn in_force(&self, client: &Client) -> anyhow::Result<Policies> {
        if self.policies.is_some() {
            return self.load();
        }
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let mut texts = Vec::new();
        for name in CONFIG_MAPS {
            match api.get_opt(name).await {
                Ok(found) => texts.push(found.and_then(|found| found.data).unwrap_or_default()),
                Err(error) => {
                    let why = printable(&error.to_string());
                    eprintln!(
                        "interlock: the policy in force cannot be read, so the shipped one counts: {NAMESPACE}/{name}: {why}"
                    );
                    return self.load();
                }
            }
        }
        let namespaces = texts.pop().unwrap_or_default();
        let own = texts.pop().unwrap_or_default();
        if own.is_empty() {
            return self.load();
        }
        let policies = Policies::of_files(&Files::mounted(own, namespaces));
        policies.with_context(|| format!("the policies in {NAMESPACE} cannot be used; name others with --policies"))
    }
}
