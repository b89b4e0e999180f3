//! `interlock serve`: the webhook, in front of a cluster or standalone.

mod certificates;
mod reports;

use std::io::{IsTerminal, Write, stdout};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use arc_swap::ArcSwap;
use jiff::Timestamp;
use kube::{Client, Config};
use serde_json::json;
use tokio::time::sleep;

use super::cluster::ClusterArguments;
use super::telemetry::{self, TelemetryArguments};
use super::{Finding, PolicyDir};
use crate::budget::Budget;
use crate::engine::policy::{LoadedPolicies, Policies, PolicyFiles, is_label};
use crate::judge::Judge;
use crate::readiness::Readiness;
use crate::serve::https::{self, Bound, Limits, Setup, Signals, Stopped};
use crate::serve::leader::Candidate;
use crate::serve::reload::Reload;
use crate::serve::report::metrics::Metrics;
use crate::serve::report::openreports::Reports;
use crate::serve::report::{Reporter, events};
use crate::serve::webhook::Webhook;
use crate::world::kubernetes::{Cluster, Reach, identity};
use crate::world::memory::{Memory, OverrideFile};
use certificates::{Around, CertificateArguments, Kept};
use reports::ReportArguments;

/// The memory that inflated record bodies may take at once. An ordinary one takes half a MiB, the largest legitimate ones
/// about 10; a review may hold two of 64 at most.
const DECODE_BYTES: usize = 256 << 20;

/// What a standalone server remembers of the cluster that it imagines.
const MEMORY_BYTES: usize = 64 << 20;

/// Longer than a review may take, so that the review's own deadline is what ends a read.
const API_TIMEOUT: Duration = Duration::from_secs(30);

/// An API server tells a quiet watch once a minute how far it is, so one that says nothing for longer has lost its
/// connection, and what it keeps grows old.
const WATCH_SILENCE: Duration = Duration::from_secs(150);

const ADMISSION_PORT: u16 = 8443;
const ADMIN_PORT: u16 = 8081;

/// Between two counts of the overrides in force.
const OVERRIDES: Duration = Duration::from_secs(15);

/// Where policies lie unless told otherwise.
const POLICIES: &str = "policies";

/// Run the webhook: inside a cluster or with --kubeconfig against Kubernetes, otherwise standalone
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Interlock's own namespace, where the replicas agree on a leader
    #[arg(long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = "interlock-system")]
    namespace: String,
    /// Look at these namespaces alone, so that rights in them are enough; what others say of their releases is not known then
    #[arg(long, value_name = "NAMESPACE,...", env = "INTERLOCK_NAMESPACES", value_delimiter = ',', value_parser = namespace)]
    namespaces: Vec<String>,
    /// Address for reviews [default: port 8443, on 127.0.0.1 when standalone, otherwise on every address]
    #[arg(long, value_name = "ADDRESS", env = "INTERLOCK_LISTEN")]
    listen: Option<SocketAddr>,
    /// Address for probes and metrics, plain HTTP [default: port 8081, likewise]
    #[arg(long, value_name = "ADDRESS", env = "INTERLOCK_ADMIN_LISTEN")]
    admin_listen: Option<SocketAddr>,
    #[command(flatten)]
    certificates: CertificateArguments,
    /// Seconds to go on accepting connections after SIGTERM, while the cluster stops sending them [default: 5, or 0
    /// when standalone]
    #[arg(long, value_name = "SECONDS", env = "INTERLOCK_DRAIN_DELAY")]
    drain_delay: Option<u64>,
    /// File of ReleaseOverrides, YAML, read again when it changes; only standalone, for a cluster has its own
    #[arg(long, value_name = "FILE", env = "INTERLOCK_OVERRIDES")]
    overrides: Option<PathBuf>,
    #[command(flatten)]
    policies: PolicyDir,
    #[command(flatten)]
    reports: ReportArguments,
    #[command(flatten)]
    telemetry: TelemetryArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Finding> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let sending = telemetry::init(&arguments.telemetry, runtime.handle())?;
    let found = found(arguments.policies.policies.as_deref());
    let files = found.map_or_else(PolicyFiles::shipped, PolicyFiles::read);
    let policies = LoadedPolicies::of(&files).into_policies()?;
    let followed = found.map(|directory| (directory, files));
    let ended = runtime.block_on(serve(arguments, policies, followed));
    sending.finish();
    ended
}

async fn serve(
    arguments: &Arguments,
    policies: Policies,
    followed: Option<(&Path, PolicyFiles)>,
) -> anyhow::Result<Finding> {
    let signals = Signals::of_process().context("failed to listen for signals")?;
    let decodes = Arc::new(Budget::new(DECODE_BYTES));
    let metrics = Arc::new(Metrics::new());
    let reporter = Reporter::new(metrics.clone());
    let readiness = Readiness::new();
    let cluster = arguments.cluster.around().await?;
    let standalone = cluster.is_none();
    let follow = |judge: &Judge| {
        if let Some((directory, files)) = followed {
            let reload = Reload::new(directory, files, judge.policies(), metrics.clone());
            let state = reload.state();
            readiness.note("policies", move || state.borrow().to_string());
            tokio::spawn(reload.follow());
        } else {
            metrics.policies().loaded(Timestamp::now());
        }
    };
    // The watches end when this function does.
    let (webhook, _watches, background, kept) = match cluster {
        Some(_) if arguments.overrides.is_some() => {
            anyhow::bail!("--overrides is for a server without a cluster; in a cluster use `interlock override`")
        }
        Some(config) => {
            let client = |config| Client::try_from(config).context("failed to make a client for the cluster");
            let for_reviews = client(for_calls(config.clone()))?;
            let reach = Reach::only(arguments.namespaces.iter().cloned());
            let world = Arc::new(Cluster::new(for_reviews.clone(), decodes.clone()).within(reach.clone()));
            let for_watches = client(for_watches(config.clone()))?;
            let watches = world.watch(&for_watches, &readiness);
            let certificates = client(for_calls(config.clone()))?;
            let around = Around { client: certificates, watches: &for_watches, namespace: &arguments.namespace };
            let kept = arguments.certificates.keep(Some(around), &metrics, &readiness)?;
            // Whoever reports or scans waits for no review, and no review for a report or a scan.
            let for_reports = client(for_calls(config))?;
            let identity = identity();
            let for_scans = for_reports.clone();
            let (events, writing) =
                events::start(for_reports.clone(), identity.clone(), world.clone(), metrics.clone());
            let reports = arguments.reports.settings(&arguments.namespace, &reach).map(|settings| {
                Arc::new(Reports::new(for_reports, for_watches, world.clone(), metrics.clone(), settings))
            });
            let ourselves = Arc::default();
            let known = readiness.gate("the API server to tell who we are");
            tokio::spawn(identity::learn(for_reviews.clone(), Arc::clone(&ourselves), known));
            let judge = Judge::new(policies, world.clone(), decodes).with_own_user(ourselves);
            follow(&judge);
            tokio::spawn(count_overrides(world.clone(), judge.policies(), metrics.clone()));
            let candidate = Candidate {
                client: for_reviews,
                for_scans,
                namespace: arguments.namespace.clone(),
                identity,
                world: world.clone(),
                losses: world.losses(),
                reports,
                reach,
                rotator: kept.rotator.clone(),
                policies: judge.policies(),
                metrics: metrics.clone(),
            };
            let webhook = Webhook::new(judge, reporter.with_events(events));
            (webhook, Some(watches), Some((candidate.stand(), writing)), kept)
        }
        None => {
            let memory = Arc::new(Memory::new(MEMORY_BYTES));
            let judge = Judge::new(policies, memory.clone(), decodes);
            follow(&judge);
            if let Some(path) = &arguments.overrides {
                tokio::spawn(OverrideFile::open(path.clone(), memory.clone())?.follow());
            }
            let kept = arguments.certificates.keep(None, &metrics, &readiness)?;
            (Webhook::standalone(judge, reporter, memory), None, None, kept)
        }
    };
    let Kept { certificates, clients, ca, .. } = kept;
    let default = |port| {
        let address = if standalone { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        SocketAddr::new(IpAddr::V4(address), port)
    };
    let bound = Bound::bind(
        arguments.listen.unwrap_or(default(ADMISSION_PORT)),
        arguments.admin_listen.unwrap_or(default(ADMIN_PORT)),
    )
    .await?;
    let mut limits = Limits::default();
    if let Some(seconds) = arguments.drain_delay.or(standalone.then_some(0)) {
        limits.drain_delay = Duration::from_secs(seconds);
    }
    let setup = Setup { certificates, clients, metrics, readiness, limits };
    announce(&bound, ca.as_deref(), standalone)?;
    let stopped = https::run(bound, Arc::new(webhook), setup, signals).await;
    if let Some((candidacy, writing)) = background {
        tokio::join!(candidacy.resign(), writing.finish());
    }
    match stopped {
        Stopped::Drained => tracing::info!("stopped"),
        stopped => tracing::warn!(?stopped, "stopped before every request was answered"),
    }
    Ok(Finding::Nothing)
}

fn namespace(text: &str) -> Result<String, String> {
    if is_label(text) { Ok(text.to_owned()) } else { Err("is not the name of a namespace".to_owned()) }
}

/// Keeps the count of overrides in force, which changes as they expire.
async fn count_overrides(world: Arc<Cluster>, policies: Arc<ArcSwap<Policies>>, metrics: Arc<Metrics>) {
    loop {
        metrics.overrides_in_force(world.overrides_in_force(&policies.load(), Timestamp::now()));
        sleep(OVERRIDES).await;
    }
}

/// Says where the server is: a sentence for people, a line of JSON for whoever started it as a child.
fn announce(bound: &Bound, ca: Option<&Path>, standalone: bool) -> std::io::Result<()> {
    let (listen, admin) = (bound.admission_address(), bound.admin_address());
    tracing::info!(%listen, %admin, standalone, "ready");
    if stdout().is_terminal() {
        let world = if standalone { "standalone, no cluster" } else { "in front of a cluster" };
        writeln!(
            stdout(),
            "Interlock is ready ({world}): reviews at https://{listen}, metrics at http://{admin}/metrics"
        )
    } else {
        writeln!(stdout(), "{}", json!({"ready": true, "listen": listen, "admin": admin, "ca": ca}))
    }
}

/// The directory that was named, or `policies/` where there is one; without it the shipped policy is in force.
fn found(directory: Option<&Path>) -> Option<&Path> {
    let found = directory.or_else(|| Some(Path::new(POLICIES)).filter(|directory| directory.exists()));
    if found.is_none() {
        tracing::info!("there is no directory {POLICIES}, so the shipped policy is in force");
    }
    found
}

/// Tells this replica from the others: a pod's name is its own, and beside it for processes on one machine.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "interlock".to_owned());
    format!("{host}-{}", std::process::id())
}

/// A retry would outlive the review that it is for; undecided in time is better than decided too late. What else fails is
/// tried again by whoever asked for it, when its turn comes.
fn for_calls(config: Config) -> Config {
    without_retries(config, API_TIMEOUT)
}

/// A failed watch starts again as a whole, when it decides to.
fn for_watches(config: Config) -> Config {
    without_retries(config, WATCH_SILENCE)
}

fn without_retries(mut config: Config, read_timeout: Duration) -> Config {
    config.default_retry = false;
    config.read_timeout = Some(read_timeout);
    config.reset_reader_on_write = true;
    config
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
