//! `interlock version`: the version of this program, and the versions in the cluster.

use anyhow::Context;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, ListParams};
use serde::Serialize;

use super::cluster::ClusterArguments;
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output::Output;
use super::policies_in_force::PoliciesInForce;
use super::table::printable;

/// Print the version of this program and, of the cluster, those of Kubernetes and of Interlock, and the policy in force
///
/// Requires no rights without a cluster. In a cluster it reads the Deployments and the ConfigMaps of Interlock's own namespace, and says
/// what it may not read. Exits with 2 if the cluster does not answer.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock version", "interlock version --client"]))]
pub(super) struct Arguments {
    /// Print only the version of this program, and ask no cluster
    #[arg(long)]
    client: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    #[command(flatten)]
    policies: PoliciesInForce,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    version: &'static str,
    /// The commit of the build. `None` in debug builds, and if the source was no clone.
    commit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<OfCluster>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfCluster {
    server: String,
    kubernetes: String,
    /// The images of Interlock's Deployments, or why they are unknown.
    replicas: Result<Vec<String>, String>,
    policy: String,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    // `build.rs` sets the variable. A builder without a clone may set it, and an empty value is none.
    let commit = option_env!("INTERLOCK_COMMIT").filter(|commit| !commit.is_empty());
    // The version of the program is known even if the cluster does not answer.
    let of_cluster = if arguments.client { Ok(None) } else { arguments.of_cluster().await.map(Some) };
    let (cluster, status) = match of_cluster {
        Ok(cluster) => (cluster, Ok(ExitStatus::Success)),
        Err(error) => (None, Err(error)),
    };
    let versions = Versions { version: env!("CARGO_PKG_VERSION"), commit, cluster };
    arguments.output.print(&versions, || text_of(&versions))?;
    status
}

impl Arguments {
    async fn of_cluster(&self) -> anyhow::Result<OfCluster> {
        let config = self.cluster.infer().await?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = super::cluster::client(config)?;
        let version = client.apiserver_version().await.context("the version of the cluster is unknown")?;
        let namespace = self.policies.namespace();
        let found = self.policies.read(&client).await?;
        let policy = format!("{} ({})", found.origin, found.policies.digest());
        Ok(OfCluster { server, kubernetes: version.git_version, replicas: replicas(&client, namespace).await, policy })
    }
}

/// The images of the Deployments with Interlock's label.
async fn replicas(client: &Client, namespace: &str) -> Result<Vec<String>, String> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let named = ListParams::default().labels("app.kubernetes.io/name=interlock");
    let found = api.list(&named).await.map_err(|error| crate::world::kubernetes::api_error::reason(&error))?;
    let containers = found.items.into_iter().filter_map(|it| it.spec?.template.spec).flat_map(|pod| pod.containers);
    Ok(containers.filter_map(|container| container.image).collect())
}

fn text_of(Versions { version, commit, cluster }: &Versions) -> String {
    let mut text = format!("interlock    {version}\n");
    text.extend(commit.iter().map(|commit| format!("commit       {commit}\n")));
    let Some(OfCluster { server, kubernetes, replicas, policy }) = cluster else { return text };
    let replicas = match replicas {
        Ok(images) if images.is_empty() => "none".to_owned(),
        Ok(images) => images.join(", "),
        Err(why) => format!("unknown: {why}"),
    };
    for (what, value) in [("server", server), ("kubernetes", kubernetes), ("replicas", &replicas), ("policy", policy)] {
        text.push_str(&format!("{what:<13}{}\n", printable(value)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_is_shown_only_if_read_and_gaps_are_named() {
        let mut versions = Versions { version: "1.2.3", commit: None, cluster: None };
        assert_eq!(text_of(&versions), "interlock    1.2.3\n");
        let cluster = |replicas| OfCluster {
            server: "https://10.0.0.1:6443".to_owned(),
            kubernetes: "v1.36.3".to_owned(),
            replicas,
            policy: "shipped".to_owned(),
        };
        versions.commit = Some("abc");
        versions.cluster = Some(cluster(Err("forbidden\x1b".to_owned())));
        let text = text_of(&versions);
        assert!(text.contains("commit       abc\nserver       https://10.0.0.1:6443\n"), "{text}");
        assert!(text.contains("replicas     unknown: forbidden\u{fffd}\n") && text.ends_with("shipped\n"), "{text}");
        versions.cluster = Some(cluster(Ok(vec!["interlock:1.2.3".to_owned()])));
        assert!(text_of(&versions).contains("replicas     interlock:1.2.3\n"));
    }
}
