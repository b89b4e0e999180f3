//! The installation of a `certs` command.

use interlock_engine::policy::DEFAULT_NAMESPACE;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::cli::cluster::ClusterArguments;

/// The installation.
#[derive(Debug, clap::Args)]
pub(super) struct Installation {
    /// Interlock's own namespace
    #[arg(short, long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    pub(super) namespace: String,
    #[command(flatten)]
    cluster: ClusterArguments,
}

impl Installation {
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        self.cluster.client().await
    }

    pub(super) fn secrets(&self, client: &Client) -> Api<Secret> {
        Api::namespaced(client.clone(), &self.namespace)
    }
}
