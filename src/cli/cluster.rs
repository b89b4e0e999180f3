//! Which cluster a command talks to.

use std::path::PathBuf;

use anyhow::Context;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

pub(super) use crate::world::kubernetes::clock::server_time;

/// The cluster that was named on the command line.
#[derive(Debug, Default, clap::Args)]
pub(super) struct ClusterArguments {
    /// Kubeconfig of the cluster [default: the one that kubectl would use, or inside a cluster the pod's own account; for
    /// serve the latter alone]
    #[arg(long, value_name = "FILE", env = "INTERLOCK_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl ClusterArguments {
    /// How to reach it; `None` where none was named.
    async fn named(&self) -> anyhow::Result<Option<Config>> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let Some(path) = &self.kubeconfig else {
            let Some(context) = &self.context else { return Ok(None) };
            let config = Config::from_kubeconfig(&options).await;
            return config.map(Some).with_context(|| format!("the context {context} is not usable"));
        };
        let read = Kubeconfig::read_from(path);
        let kubeconfig = read.with_context(|| format!("failed to read the kubeconfig {}", path.display()))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        config.map(Some).with_context(|| format!("the kubeconfig {} is not usable", path.display()))
    }

    /// The same, or that of the pod; `None` outside of a cluster.
    pub(super) async fn around(&self) -> anyhow::Result<Option<Config>> {
        match self.named().await? {
            None if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => {
                let pods = Config::incluster();
                pods.map(Some).context("failed to read the pod's own account, which Kubernetes mounts")
            }
            named => Ok(named),
        }
    }

    /// The one that was named, or that kubectl would talk to, or that of the pod.
    pub(super) async fn found(&self) -> anyhow::Result<Config> {
        match self.named().await? {
            Some(config) => Ok(config),
            None => {
                let found = Config::infer().await;
                found.context("failed to find a cluster: name a kubeconfig with --kubeconfig or in KUBECONFIG")
            }
        }
    }
}
