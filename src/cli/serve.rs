//! `interlock serve`: the webhook, in a cluster or standalone.

mod certificates;
mod clients;
mod in_cluster;
mod policies;
mod reports;
mod running;
mod shared;
mod standalone;

use std::io::{IsTerminal, Write, stdout};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::cluster::ClusterArguments;
use super::exit_status::ExitStatus;
use super::policy_dir::PolicyDir;
use super::telemetry::{self, TelemetryArguments};
use crate::engine::policy::{DEFAULT_NAMESPACE, is_label};
use crate::serve::https::{Bound, Limits, Signals, Stopped};
use certificates::CertificateArguments;
use in_cluster::in_cluster;
use policies::PolicySource;
use reports::ReportArguments;
use shared::Shared;
use standalone::standalone;

const ADMISSION_PORT: u16 = 8443;
const ADMIN_PORT: u16 = 8081;

/// Run the webhook: in a cluster, against a cluster with --kubeconfig, or standalone
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Interlock's own namespace, where the replicas elect a leader
    #[arg(long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// Watch only these namespaces; rights in them are then enough, and objects in other namespaces that refer to their
    /// releases are not known
    #[arg(long, value_name = "NAMESPACE,...", env = "INTERLOCK_NAMESPACES", value_delimiter = ',', value_parser = namespace)]
    namespaces: Vec<String>,
    /// Address for admission reviews [default: port 8443, on 127.0.0.1 when standalone, otherwise on all addresses]
    #[arg(long, value_name = "ADDRESS", env = "INTERLOCK_LISTEN")]
    listen: Option<SocketAddr>,
    /// Address for probes and metrics, plain HTTP [default: port 8081, on 127.0.0.1 when standalone, otherwise on all
    /// addresses]
    #[arg(long, value_name = "ADDRESS", env = "INTERLOCK_ADMIN_LISTEN")]
    admin_listen: Option<SocketAddr>,
    #[command(flatten)]
    certificates: CertificateArguments,
    /// Seconds to keep accepting connections after SIGTERM, while the cluster stops sending them [default: 5, or 0
    /// when standalone]
    #[arg(long, value_name = "SECONDS", env = "INTERLOCK_DRAIN_DELAY")]
    drain_delay: Option<u64>,
    /// YAML file of ReleaseOverrides, read again when it changes; standalone only, a cluster stores its own
    #[arg(long, value_name = "FILE", env = "INTERLOCK_OVERRIDES")]
    overrides: Option<PathBuf>,
    #[command(flatten)]
    policies: PolicyDir,
    #[command(flatten)]
    reports: ReportArguments,
    #[command(flatten)]
    telemetry: TelemetryArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let sending = telemetry::init(&arguments.telemetry, runtime.handle())?;
    let policies = PolicySource::load(arguments.policies.policies.as_deref())?;
    let ended = runtime.block_on(serve(arguments, policies));
    sending.finish();
    ended
}

async fn serve(arguments: &Arguments, policies: PolicySource) -> anyhow::Result<ExitStatus> {
    let signals = Signals::of_process().context("failed to listen for signals")?;
    let shared = Shared::new();
    let cluster = arguments.cluster.in_cluster_or_named().await?;
    let is_standalone = cluster.is_none();
    let running = match cluster {
        Some(config) => in_cluster(arguments, config, policies, &shared)?,
        None => standalone(arguments, policies, &shared)?,
    };
    let (listen, admin_listen) = arguments.addresses(is_standalone);
    let bound = Bound::bind(listen, admin_listen).await?;
    announce(&bound, running.ca_file(), is_standalone)?;
    match running.serve(bound, shared, arguments.limits(is_standalone), signals).await {
        Stopped::Drained => tracing::info!("stopped"),
        stopped => tracing::warn!(?stopped, "stopped before every request was answered"),
    }
    Ok(ExitStatus::Success)
}

impl Arguments {
    /// The addresses for reviews, and for probes and metrics.
    fn addresses(&self, is_standalone: bool) -> (SocketAddr, SocketAddr) {
        let host = IpAddr::V4(if is_standalone { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED });
        (
            self.listen.unwrap_or(SocketAddr::new(host, ADMISSION_PORT)),
            self.admin_listen.unwrap_or(SocketAddr::new(host, ADMIN_PORT)),
        )
    }

    fn limits(&self, is_standalone: bool) -> Limits {
        let mut limits = Limits::default();
        if let Some(seconds) = self.drain_delay.or(is_standalone.then_some(0)) {
            limits.drain_delay = Duration::from_secs(seconds);
        }
        limits
    }
}

fn namespace(text: &str) -> Result<String, String> {
    if is_label(text) { Ok(text.to_owned()) } else { Err("is not the name of a namespace".to_owned()) }
}

/// Prints the addresses: a sentence on a terminal, otherwise a line of JSON for the parent process.
fn announce(bound: &Bound, ca: Option<&Path>, is_standalone: bool) -> std::io::Result<()> {
    let (listen, admin) = (bound.admission_address(), bound.admin_address());
    tracing::info!(%listen, %admin, standalone = is_standalone, "ready");
    if stdout().is_terminal() {
        let place = if is_standalone { "standalone, without a cluster" } else { "with a cluster" };
        writeln!(
            stdout(),
            "Interlock is ready ({place}): reviews at https://{listen}, metrics at http://{admin}/metrics"
        )
    } else {
        writeln!(stdout(), "{}", json!({"ready": true, "listen": listen, "admin": admin, "ca": ca}))
    }
}

#[cfg(test)]
mod tests {
    use clap::{ArgAction, Args, Command};

    use super::*;

    #[test]
    fn the_variable_of_a_flag_that_may_be_repeated_holds_a_list() {
        let command = Arguments::augment_args(Command::new("serve"));
        let lists: Vec<_> = command
            .get_arguments()
            .filter(|it| it.get_env().is_some() && matches!(it.get_action(), ArgAction::Append))
            .collect();
        let undivided: Vec<_> = lists.iter().filter(|it| it.get_value_delimiter() != Some(',')).collect();
        assert!(lists.len() >= 3 && undivided.is_empty(), "{undivided:?}");
        let given = command.get_matches_from(["serve", "--client-ca-file=ca.crt", "--client-name=one,two"]);
        assert_eq!(given.get_many::<String>("client_names").unwrap().collect::<Vec<_>>(), ["one", "two"]);
    }
}
