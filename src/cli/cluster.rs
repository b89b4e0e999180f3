//! The cluster that a command connects to.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use http::HeaderValue;
use http::header::USER_AGENT;
use interlock_engine::rules::wording::command;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::failure;
use super::helm::HelmFlags;
use crate::inspect::scan::Gap;
pub(super) use crate::world::kubernetes::clock::server_time;

/// The user agent of every request, like `kubectl/v1.36.3`.
const PROGRAM: &str = concat!("interlock/v", env!("CARGO_PKG_VERSION"));

/// The read timeout of a watch. On a quiet watch the API server sends a bookmark every minute.
pub(super) const WATCH_READ_TIMEOUT: Duration = Duration::from_secs(295);

/// How to reach clusters.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Access {
    /// Kubeconfig of the cluster [default: the kubeconfig of kubectl, or the service account inside a pod; serve uses
    /// only the latter]
    #[arg(long, value_name = "FILE", env = "INTERLOCK_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// User to impersonate
    #[arg(long = "as", value_name = "USER")]
    as_user: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "as_user")]
    as_groups: Vec<String>,
}

/// The arguments that name a cluster.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ClusterArguments {
    #[command(flatten)]
    access: Access,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// The arguments that name one or several clusters.
#[derive(Debug, Default, clap::Args)]
pub(super) struct ClustersArguments {
    #[command(flatten)]
    access: Access,
    /// Context of the kubeconfig; may be repeated, for one table of several clusters [default: the current context]
    #[arg(id = "context", long = "context", value_name = "NAME")]
    contexts: Vec<String>,
}

/// One cluster of a command that reads several.
#[derive(Debug)]
pub(super) struct NamedCluster {
    cluster: ClusterArguments,
    /// The context, if there are several clusters.
    pub(super) name: Option<String>,
}

impl Access {
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

impl ClusterArguments {
    /// Whether the command line names a cluster.
    pub(super) fn is_named(&self) -> bool {
        self.access.kubeconfig.is_some() || self.context.is_some()
    }

    /// The named cluster, or the cluster of the pod. `None` outside a cluster.
    pub(super) async fn in_cluster_or_named(&self) -> anyhow::Result<Option<Config>> {
        match self.access.named(self.context.as_deref()).await? {
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
        let (config, context) = self.config().await?;
        let context = context.or_else(|| self.access.current_context());
        failure::talks_to(&config.cluster_url.to_string(), context.as_deref());
        Ok(config)
    }

    /// The cluster of [`Self::infer`], and the named context.
    async fn config(&self) -> anyhow::Result<(Config, Option<String>)> {
        let helm = HelmFlags::of_plugin().unwrap_or_default();
        let context = self.context.clone().or_else(|| helm.context.clone());
        let mut config = match self.access.named(context.as_deref()).await? {
            Some(config) => config,
            None => {
                let found = Config::infer().await;
                found.context("no cluster found: set --kubeconfig or KUBECONFIG")?
            }
        };
        helm.apply(&mut config)?;
        self.access.impersonate(&mut config);
        Ok((config, context))
    }
}

impl ClustersArguments {
    /// Every cluster, at least one.
    pub(super) fn each(&self) -> Vec<NamedCluster> {
        match &*self.contexts {
            [] | [_] => vec![NamedCluster { cluster: self.in_context(self.contexts.first()), name: None }],
            several => several
                .iter()
                .map(|name| NamedCluster { cluster: self.in_context(Some(name)), name: Some(name.clone()) })
                .collect(),
        }
    }

    fn in_context(&self, context: Option<&String>) -> ClusterArguments {
        ClusterArguments { access: self.access.clone(), context: context.cloned() }
    }
}

impl NamedCluster {
    /// The configuration. If there are several clusters, the message about a failed connection names none: [`Self::complete`] does.
    pub(super) async fn config(&self) -> anyhow::Result<Config> {
        match self.name {
            Some(_) => Ok(self.cluster.config().await?.0),
            None => self.cluster.infer().await,
        }
    }

    /// The error with the name of the cluster.
    pub(super) fn complete(&self, error: anyhow::Error) -> anyhow::Error {
        match &self.name {
            Some(name) => error.context(format!("context {name}")),
            None => error,
        }
    }

    /// A command for this cluster, if it is one of the programs whose flag for the context is known here.
    pub(super) fn command(&self, line: String) -> String {
        let flag = match line.split_once(' ') {
            Some(("interlock" | "kubectl", _)) => "--context",
            Some(("helm", _)) => "--kube-context",
            _ => return line,
        };
        self.name.as_ref().map_or_else(|| line.clone(), |name| format!("{line} {}", command(&[flag, name])))
    }

    /// The gap with the name of the cluster.
    pub(super) fn named(&self, gap: Gap) -> Gap {
        match &self.name {
            Some(name) => Gap { what: format!("{} (context {name})", gap.what), ..gap },
            None => gap,
        }
    }
}

/// A client that names this program in the audit log of the API server.
pub(super) fn client(mut config: Config) -> anyhow::Result<Client> {
    config.headers.push((USER_AGENT, HeaderValue::from_static(PROGRAM)));
    Client::try_from(config).context("failed to create a client for the cluster")
}
