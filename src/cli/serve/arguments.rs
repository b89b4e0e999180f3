//! The arguments of `interlock serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use interlock_engine::object::is_dns_label;
use interlock_engine::policy::DEFAULT_NAMESPACE;

use super::certificates::CertificateArguments;
use super::reports::ReportArguments;
use crate::cli::cluster::ClusterArguments;
use crate::cli::duration::seconds;
use crate::cli::examples::examples;
use crate::cli::telemetry::TelemetryArguments;
use crate::cluster_name::ClusterName;
use crate::serve::https::Limits;

const ADMISSION_PORT: u16 = 8443;
const ADMIN_PORT: u16 = 8081;

/// Run the webhook: in a cluster, against a cluster with --kubeconfig, or standalone
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock serve", "interlock serve --policies policies --page"]))]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) cluster: ClusterArguments,
    /// Interlock's own namespace, where the replicas elect a leader
    #[arg(long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    pub(super) namespace: String,
    /// Watch only these namespaces; rights in them are then enough, and objects in other namespaces that refer to their
    /// releases are not known
    #[arg(long, value_name = "NAMESPACE,...", env = "INTERLOCK_NAMESPACES", value_delimiter = ',', value_parser = namespace)]
    pub(super) namespaces: Vec<String>,
    /// Name of the cluster in the log, metrics, Events, reports and the page
    #[arg(long, value_name = "NAME", env = "INTERLOCK_CLUSTER_NAME")]
    pub(super) cluster_name: Option<ClusterName>,
    /// Address for admission reviews [default: port 8443, on 127.0.0.1 when standalone, otherwise on all addresses]
    #[arg(long, value_name = "ADDRESS", env = "INTERLOCK_LISTEN")]
    pub(super) listen: Option<SocketAddr>,
    /// Address for probes and metrics, plain HTTP [default: port 8081, on 127.0.0.1 when standalone, otherwise on all
    /// addresses]
    #[arg(long, value_name = "ADDRESS", env = "INTERLOCK_ADMIN_LISTEN")]
    pub(super) admin_listen: Option<SocketAddr>,
    /// Show operations in flight, freezes, overrides in force and the last refusals at / of the admin address, only over the
    /// loopback interface: open it by kubectl port-forward
    #[arg(long, env = "INTERLOCK_PAGE")]
    pub(super) page: bool,
    #[command(flatten)]
    pub(super) certificates: CertificateArguments,
    /// How long to keep accepting connections after SIGTERM, while the cluster stops sending them [default: 5s, or 0s
    /// when standalone]
    #[arg(long, value_name = "DURATION", env = "INTERLOCK_DRAIN_DELAY", value_parser = seconds)]
    pub(super) drain_delay: Option<Duration>,
    /// YAML file of ReleaseOverrides, read again when it changes; standalone only, a cluster stores its own
    #[arg(long, value_name = "FILE", env = "INTERLOCK_OVERRIDES")]
    pub(super) overrides: Option<PathBuf>,
    /// Directory with cluster.yaml, read again when it changes [default: policies/ in the working directory, or the policy
    /// shipped with this binary if there is none]
    #[arg(long, value_name = "DIR", env = "INTERLOCK_POLICIES")]
    pub(super) policies: Option<PathBuf>,
    #[command(flatten)]
    pub(super) reports: ReportArguments,
    #[command(flatten)]
    pub(super) telemetry: TelemetryArguments,
}

impl Arguments {
    /// The addresses for reviews, and for probes and metrics.
    pub(super) fn addresses(&self, is_standalone: bool) -> (SocketAddr, SocketAddr) {
        let host = IpAddr::V4(if is_standalone { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED });
        (
            self.listen.unwrap_or(SocketAddr::new(host, ADMISSION_PORT)),
            self.admin_listen.unwrap_or(SocketAddr::new(host, ADMIN_PORT)),
        )
    }

    pub(super) fn limits(&self, is_standalone: bool) -> Limits {
        let mut limits = Limits::default();
        if let Some(delay) = self.drain_delay.or(is_standalone.then_some(Duration::ZERO)) {
            limits.drain_delay = delay;
        }
        if is_standalone {
            limits.farewell = Duration::ZERO;
        }
        limits
    }
}

fn namespace(text: &str) -> Result<String, String> {
    if is_dns_label(text) { Ok(text.to_owned()) } else { Err("is not the name of a namespace".to_owned()) }
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
