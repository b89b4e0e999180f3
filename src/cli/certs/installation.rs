//! The installation of a `certs` command.

use anyhow::Context;
use interlock_engine::policy::DEFAULT_NAMESPACE;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::cli::cluster::ClusterArguments;
use crate::serve::pki::ca_secret::SECRET_NAME;

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

    /// The Secret of the CA, if there is one.
    pub(super) async fn ca_secret(&self, client: &Client) -> anyhow::Result<Option<Secret>> {
        let found = self.secrets(client).get_opt(SECRET_NAME).await;
        found.with_context(|| format!("failed to read the Secret {SECRET_NAME} in namespace {}", self.namespace))
    }
}
