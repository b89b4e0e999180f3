//! The policies of the running installation, so that commands and the webhook agree.

use kube::Client;

use super::output;
use super::policy_dir::PolicyDir;
use super::table::printable;
use crate::engine::policy::{DEFAULT_NAMESPACE, Policies};
use crate::engine::policy_files::PolicyFiles;
use crate::world::kubernetes::api_error::reason;
use crate::world::kubernetes::policies::policies;

/// The arguments that select the policies of a cluster.
#[derive(Debug, clap::Args)]
pub(super) struct PoliciesInForce {
    /// Interlock's own namespace, which has the policies unless --policies is set
    #[arg(long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    interlock_namespace: String,
    #[command(flatten)]
    directory: PolicyDir,
}

impl PoliciesInForce {
    /// The policies of the named directory, otherwise of the installation in the cluster. If these are missing, not
    /// readable or not valid, the shipped policies, with a notice on standard error.
    pub(super) async fn read(&self, client: &Client) -> anyhow::Result<Policies> {
        if self.directory.policies.is_some() {
            return self.directory.load();
        }
        match self.of_installation(client).await {
            Ok(policies) => Ok(policies),
            Err(why) => {
                output::complain(&self.fallback_notice(&why));
                self.directory.load()
            }
        }
    }

    /// The files of the named directory, otherwise of the installation in the cluster. If these are missing or not readable, the
    /// shipped policy, with a notice on standard error.
    pub(super) async fn files(&self, client: &Client) -> PolicyFiles {
        if self.directory.policies.is_some() {
            return self.directory.files();
        }
        let found = policies(client, &self.interlock_namespace).await.map_err(|error| reason(&error));
        found.and_then(|found| found.ok_or_else(missing)).unwrap_or_else(|why| {
            output::complain(&self.fallback_notice(&why));
            PolicyFiles::shipped()
        })
    }

    /// The policies of the named directory, otherwise of the installation in the cluster, and no others: nothing is frozen by the
    /// shipped policy.
    ///
    /// # Errors
    /// When they are missing, not readable or not valid.
    pub(super) async fn require(&self, client: &Client) -> anyhow::Result<Policies> {
        if self.directory.policies.is_some() {
            return self.directory.load();
        }
        self.of_installation(client).await.map_err(|why| anyhow::anyhow!(self.refusal(&why)))
    }

    async fn of_installation(&self, client: &Client) -> Result<Policies, String> {
        let found = policies(client, &self.interlock_namespace).await;
        found.map_err(|error| reason(&error)).and_then(usable)
    }

    fn refusal(&self, why: &str) -> String {
        format!(
            "it is unknown what is frozen, because the policy in namespace {} cannot be used: {}. Set --policies to its directory, or \
             --interlock-namespace to another installation",
            self.interlock_namespace,
            printable(why)
        )
    }

    fn fallback_notice(&self, why: &str) -> String {
        format!(
            "interlock: using the shipped policy, which may define differently when an operation is stuck, because \
             the policy in namespace {} cannot be used: {}. Set --policies to its directory, or \
             --interlock-namespace to another installation",
            self.interlock_namespace,
            printable(why)
        )
    }
}

/// The policies of an installation, or why they cannot be used.
fn usable(found: Option<PolicyFiles>) -> Result<Policies, String> {
    let files = found.ok_or_else(missing)?;
    Policies::of_files(&files).map_err(|error| error.to_string())
}

fn missing() -> String {
    "there is no ConfigMap interlock-policies".to_owned()
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
    fn the_notice_has_one_line_and_another_installation_can_be_named() {
        let shipped = || ("cluster.yaml".to_owned(), include_str!("../../policies/cluster.yaml").to_owned());
        assert!(usable(Some(PolicyFiles::mounted([shipped()], []))).is_ok());
        assert!(usable(None).unwrap_err().contains("no ConfigMap interlock-policies"));
        let wrong = [("cluster.yaml".to_owned(), "kind: Nonsense\n".to_owned())];
        assert!(usable(Some(PolicyFiles::mounted(wrong, []))).unwrap_err().contains("cluster.yaml"));
        let without = usable(Some(PolicyFiles::mounted([], []))).unwrap_err();
        assert!(without.contains("has no key cluster.yaml"), "{without}");
        let line = Line::try_parse_from(["status", "--interlock-namespace", "guard"]).unwrap();
        let told = line.in_force.fallback_notice("forbidden:\n\x1b[2J");
        assert!(told.contains("namespace guard cannot be used: forbidden:") && told.lines().count() == 1, "{told}");
        assert!(told.contains("using the shipped policy") && !told.contains('\x1b'), "{told}");
        let refused = line.in_force.refusal("forbidden:\n\x1b[2J");
        assert!(refused.contains("unknown what is frozen, because the policy in namespace guard"), "{refused}");
        assert!(refused.lines().count() == 1 && !refused.contains('\x1b'), "{refused}");
    }
}
