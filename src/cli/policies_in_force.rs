//! The policies that a running Interlock judges by, for commands that must not have another opinion.

use kube::Client;

use super::PolicyDir;
use super::table::printable;
use crate::engine::policy::{Policies, PolicyFiles};
use crate::inspect::scan::listing::why;
use crate::world::kubernetes::policies::policies;

/// Which policy to judge by, where a cluster has one.
#[derive(Debug, clap::Args)]
pub(super) struct InForce {
    /// Interlock's own namespace, whose policy counts unless --policies names another
    #[arg(long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = "interlock-system")]
    interlock_namespace: String,
    #[command(flatten)]
    directory: PolicyDir,
}

impl InForce {
    /// Those of the directory that was named; otherwise those that the cluster's Interlock goes by. Where it has none, or they
    /// may not be read, as by most people, or are wrong, the shipped ones, which the error output says once.
    pub(super) async fn read(&self, client: &Client) -> anyhow::Result<Policies> {
        if self.directory.policies.is_some() {
            return self.directory.load();
        }
        let why = match policies(client, &self.interlock_namespace).await {
            Ok(found) => match of(found) {
                Ok(policies) => return Ok(policies),
                Err(why) => why,
            },
            Err(error) => why(&error),
        };
        eprintln!("{}", self.instead(&why));
        self.directory.load()
    }

    fn instead(&self, why: &str) -> String {
        format!(
            "interlock: goes by the shipped policy, which may differ in when an operation counts as stuck: that of \
             namespace {} cannot be used: {}. Name its directory with --policies, or another installation with \
             --interlock-namespace",
            self.interlock_namespace,
            printable(why)
        )
    }
}

/// Those of an installation, or why there are none.
fn of(found: Option<PolicyFiles>) -> Result<Policies, String> {
    let files = found.ok_or("there is no ConfigMap interlock-policies")?;
    Policies::of_files(&files).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        in_force: InForce,
    }

    #[test]
    fn what_cannot_be_used_is_told_in_a_line_and_another_installation_can_be_named() {
        let shipped = || ("cluster.yaml".to_owned(), include_str!("../../policies/cluster.yaml").to_owned());
        assert!(of(Some(PolicyFiles::mounted([shipped()], []))).is_ok());
        assert!(of(None).unwrap_err().contains("no ConfigMap interlock-policies"));
        let wrong = [("cluster.yaml".to_owned(), "kind: Nonsense\n".to_owned())];
        assert!(of(Some(PolicyFiles::mounted(wrong, []))).unwrap_err().contains("cluster.yaml"));
        let without = of(Some(PolicyFiles::mounted([], []))).unwrap_err();
        assert!(without.contains("has no key cluster.yaml"), "{without}");
        let line = Line::try_parse_from(["status", "--interlock-namespace", "guard"]).unwrap();
        let told = line.in_force.instead("forbidden:\n\x1b[2J");
        assert!(told.contains("namespace guard cannot be used: forbidden:") && told.lines().count() == 1, "{told}");
        assert!(told.contains("goes by the shipped policy") && !told.contains('\x1b'), "{told}");
    }
}
