//! The policies of the running installation, so that commands and the webhook agree.

use std::path::PathBuf;
use std::sync::Arc;

use interlock_engine::policy::{DEFAULT_NAMESPACE, Policies};
use interlock_engine::policy_files::{LoadedPolicies, PolicyError, PolicyFiles};
use kube::Client;

use super::output;
use super::table::printable;
use crate::serve::leader::reported_policies;
use crate::world::kubernetes::api_error::reason;
use crate::world::kubernetes::namespaces;
use crate::world::kubernetes::policies::{CLUSTER_POLICY, policies};
use crate::world::policy_directory;

/// What follows if the policy of the installation cannot be used.
const FALLBACK: &str = "interlock: using the shipped policy, which may define differently when an operation is stuck";
const REFUSAL: &str = "it is unknown what is frozen";

/// The arguments that select the policies of a cluster.
#[derive(Debug, clap::Args)]
pub(super) struct PoliciesInForce {
    /// Interlock's own namespace, which has the policies unless --policies is set
    #[arg(long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    interlock_namespace: String,
    /// Directory with cluster.yaml [default: the policy in force in the cluster]
    #[arg(long, value_name = "DIR", env = "INTERLOCK_POLICIES")]
    policies: Option<PathBuf>,
}

/// The policies that a command uses.
pub(super) struct FoundPolicies {
    pub(super) files: PolicyFiles,
    pub(super) policies: Policies,
    /// The origin of the policies, for messages.
    pub(super) origin: String,
}

impl PoliciesInForce {
    /// Interlock's own namespace.
    pub(super) fn namespace(&self) -> &str {
        &self.interlock_namespace
    }

    /// Whether a directory is named. Then no cluster is needed.
    pub(super) fn is_directory(&self) -> bool {
        self.policies.is_some()
    }

    /// The policies of the named directory, or of the installation in the cluster. If these are missing, not readable or invalid, returns the
    /// shipped policies and prints a notice to standard error.
    pub(super) async fn read(&self, client: &Client) -> anyhow::Result<FoundPolicies> {
        self.found(client).await?.or_else(|why| {
            output::complain(&self.unusable(FALLBACK, &why));
            self.without_cluster()
        })
    }

    /// The policies of the named directory, or of the installation in the cluster. Never the shipped policy, because it has no freezes.
    ///
    /// # Errors
    /// If the policies are missing, not readable or invalid.
    pub(super) async fn require(&self, client: &Client) -> anyhow::Result<FoundPolicies> {
        self.found(client).await?.map_err(|why| anyhow::anyhow!(self.unusable(REFUSAL, &why)))
    }

    /// The policies of the named directory, or of the installation. The inner error says why those of the installation cannot be used.
    async fn found(&self, client: &Client) -> anyhow::Result<Result<FoundPolicies, String>> {
        let found = if self.is_directory() { Ok(self.without_cluster()?) } else { self.of_installation(client).await };
        match found {
            Ok(found) => Ok(Ok(found.knowing_labels(client).await)),
            Err(why) => Ok(Err(why)),
        }
    }

    /// The policies of the named directory, or the shipped policies.
    pub(super) fn without_cluster(&self) -> anyhow::Result<FoundPolicies> {
        let (files, origin) = match &self.policies {
            Some(directory) => (policy_directory::read(directory), format!("the directory {}", directory.display())),
            None => (PolicyFiles::shipped(), "the policy shipped with this binary".to_owned()),
        };
        Ok(FoundPolicies { policies: Policies::of_files(&files)?, files, origin })
    }

    async fn of_installation(&self, client: &Client) -> Result<FoundPolicies, String> {
        let namespace = &self.interlock_namespace;
        let files = policies(client, namespace).await.map_err(|error| reason(&error)).and_then(existing)?;
        let found = of_cluster(files, namespace)?;
        // Users who may not read the Lease almost always still get the right policy.
        let reported = reported_policies(client, namespace).await.ok().flatten();
        if let Some(reported) = reported.filter(|reported| *reported != found.policies.digest()) {
            output::complain(&format!(
                "interlock: the replicas have not taken over {} yet, or it is invalid: they report the policy {}, and it has {}",
                found.origin,
                printable(&reported),
                found.policies.digest()
            ));
        }
        Ok(found)
    }

    /// That the policy of the installation cannot be used, and what follows from this.
    fn unusable(&self, consequence: &str, why: &str) -> String {
        format!(
            "{consequence}, because the policy in namespace {} cannot be used: {}. Set --policies to its directory, or \
             --interlock-namespace to another installation",
            self.interlock_namespace,
            printable(why)
        )
    }
}

impl FoundPolicies {
    /// Adds the labels of the cluster's Namespaces, for the selectors of the policies.
    async fn knowing_labels(self, client: &Client) -> Self {
        if !self.policies.uses_labels() {
            return self;
        }
        match namespaces::list(client).await {
            Ok(labels) => Self { policies: self.policies.knowing(Arc::new(labels)), ..self },
            Err(error) => {
                let why = printable(&reason(&error));
                output::complain(&format!(
                    "interlock: no selector of the policy selects a namespace here, because the Namespaces cannot be listed: {why}"
                ));
                self
            }
        }
    }
}

fn existing(found: Option<PolicyFiles>) -> Result<PolicyFiles, String> {
    found.ok_or_else(|| format!("there is no ConfigMap {CLUSTER_POLICY}"))
}

/// The policies that replicas put in force: an invalid file of one namespace does not affect the others.
fn of_cluster(files: PolicyFiles, namespace: &str) -> Result<FoundPolicies, String> {
    let LoadedPolicies { policies, problems, .. } = LoadedPolicies::of(&files);
    let policies = policies.ok_or_else(|| PolicyError { problems }.to_string())?;
    Ok(FoundPolicies { files, policies, origin: format!("ConfigMap {namespace}/{CLUSTER_POLICY}") })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        in_force: PoliciesInForce,
    }

    #[test]
    fn notices_have_one_line_and_name_the_installation() {
        let shipped = || ("cluster.yaml".to_owned(), include_str!("../../policies/cluster.yaml").to_owned());
        let used = |files| existing(files).and_then(|files| of_cluster(files, "guard")).map(|found| found.origin);
        let mounted =
            |cluster, namespaces: &[(String, String)]| Some(PolicyFiles::mounted([cluster], namespaces.to_vec()));
        assert_eq!(used(mounted(shipped(), &[])).as_deref(), Ok("ConfigMap guard/interlock-policies"));
        assert!(used(None).unwrap_err().contains("no ConfigMap interlock-policies"));
        let wrong = |key: &str| (key.to_owned(), "kind: Nonsense\n".to_owned());
        assert!(used(mounted(wrong("cluster.yaml"), &[])).unwrap_err().contains("cluster.yaml"));
        assert!(used(mounted(shipped(), &[wrong("shop.yaml")])).is_ok(), "replicas keep the policy of the cluster");
        let without = used(Some(PolicyFiles::mounted([], []))).unwrap_err();
        assert!(without.contains("has no key cluster.yaml"), "{without}");
        let line = Line::try_parse_from(["status", "--interlock-namespace", "guard"]).unwrap();
        let notice = line.in_force.unusable(FALLBACK, "forbidden:\n\x1b[2J");
        assert!(
            notice.contains("namespace guard cannot be used: forbidden:") && notice.lines().count() == 1,
            "{notice}"
        );
        assert!(notice.contains("using the shipped policy") && !notice.contains('\x1b'), "{notice}");
        let refused = line.in_force.unusable(REFUSAL, "forbidden:\n\x1b[2J");
        assert!(refused.contains("unknown what is frozen, because the policy in namespace guard"), "{refused}");
        assert!(refused.lines().count() == 1 && !refused.contains('\x1b'), "{refused}");
    }
}
