//! The cluster that a command connects to.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::failure;
use super::helm::HelmFlags;
pub(super) use crate::world::kubernetes::clock::server_time;

/// The read timeout of a watch. On a quiet watch the API server sends a bookmark every minute.
pub(super) const WATCH_READ_TIMEOUT: Duration = Duration::from_secs(295);

/// The arguments that name a cluster.
#[derive(Debug, Default, clap::Args)]
pub(super) struct ClusterArguments {
    /// Kubeconfig of the cluster [default: the kubeconfig of kubectl, or the service account inside a pod; serve uses
    /// only the latter]
    #[arg(long, value_name = "FILE", env = "INTERLOCK_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// User to impersonate
    #[arg(long = "as", value_name = "USER")]
    as_user: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "as_user")]
    as_groups: Vec<String>,
}

impl ClusterArguments {
    /// Whether the command line names a cluster.
    pub(super) fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// The configuration of the named cluster. `None` if no cluster was named.
    async fn named(&self, context: Option<&str>) -> anyhow::Result<Option<Config>> {
        let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        let Some(path) = &self.kubeconfig else {
            let Some(context) = context else { return Ok(None) };
            let config = Config::from_kubeconfig(&options).await;
            return config.map(Some).with_context(|| format!("the context {context} is not usable"));
        };
        let read = Kubeconfig::read_from(path);
        let kubeconfig = read.with_context(|| format!("failed to read the kubeconfig {}", path.display()))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        config.map(Some).with_context(|| format!("the kubeconfig {} is not usable", path.display()))
    }

    /// The named cluster, or the cluster of the pod. `None` outside a cluster.
    pub(super) async fn in_cluster_or_named(&self) -> anyhow::Result<Option<Config>> {
        match self.named(self.context.as_deref()).await? {
            None if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => {
                let pods = Config::incluster();
                pods.map(Some).context("failed to read the mounted service account of the pod")
            }
            named => Ok(named),
        }
    }

    /// A client for the cluster that [`Self::infer`] finds.
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        client(self.infer().await?)
    }

    /// The named cluster, or the cluster of kubectl, or the cluster of the pod. A helm plugin also applies helm's flags.
    pub(super) async fn infer(&self) -> anyhow::Result<Config> {
        let helm = HelmFlags::of_plugin().unwrap_or_default();
        let context = self.context.clone().or_else(|| helm.context.clone());
        let mut config = match self.named(context.as_deref()).await? {
            Some(config) => config,
            None => {
                let found = Config::infer().await;
                found.context("no cluster found: set --kubeconfig or KUBECONFIG")?
            }
        };
        helm.apply(&mut config)?;
        self.impersonate(&mut config);
        let context = context.or_else(|| self.current_context());
        failure::talks_to(&config.cluster_url.to_string(), context.as_deref());
        Ok(config)
    }

    /// The current context of the kubeconfig, if there is one.
    fn current_context(&self) -> Option<String> {
        let read = self.kubeconfig.as_ref().map_or_else(Kubeconfig::read, Kubeconfig::read_from);
        read.ok()?.current_context
    }

    /// Acts as the user of `--as`.
    fn impersonate(&self, config: &mut Config) {
        if self.as_user.is_some() {
            config.auth_info.impersonate.clone_from(&self.as_user);
            config.auth_info.impersonate_groups = (!self.as_groups.is_empty()).then(|| self.as_groups.clone());
        }
    }
}

pub(super) fn client(config: Config) -> anyhow::Result<Client> {
    Client::try_from(config).context("failed to create a client for the cluster")
}
