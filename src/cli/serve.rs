//! `interlock serve`: the webhook, in a cluster or standalone.

mod arguments;
mod certificates;
mod clients;
mod in_cluster;
mod metrics;
mod policies;
mod reports;
mod running;
mod shared;
mod standalone;

use std::io::{IsTerminal, Write, stdout};
use std::path::Path;

use anyhow::Context;
use serde_json::json;

use super::exit_status::ExitStatus;
use super::telemetry;
use crate::serve::https::{Bound, Signals, Stopped};
pub(super) use arguments::Arguments;
use in_cluster::in_cluster;
use policies::PolicySource;
use shared::Shared;
use standalone::standalone;

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let sending = telemetry::init(&arguments.telemetry, arguments.cluster_name.as_ref(), runtime.handle())?;
    let policies = PolicySource::load(arguments.policies.as_deref())?;
    let ended = runtime.block_on(serve(arguments, policies));
    sending.finish();
    // A step of a review cannot be interrupted, but must not keep the process alive.
    runtime.shutdown_background();
    ended
}

async fn serve(arguments: &Arguments, policies: PolicySource) -> anyhow::Result<ExitStatus> {
    let signals = Signals::of_process().context("failed to listen for signals")?;
    let shared = Shared::new(arguments.cluster_name.clone());
    let cluster = arguments.cluster.in_cluster_or_named().await?;
    let is_standalone = cluster.is_none();
    let running = match cluster {
        Some(config) => in_cluster(arguments, config, policies, &shared)?,
        None => standalone(arguments, policies, &shared)?,
    };
    let (listen, admin_listen) = arguments.addresses(is_standalone);
    let bound = Bound::bind(listen, admin_listen).await?;
    announce(&bound, running.ca_file(), is_standalone)?;
    match running.serve(bound, shared, arguments.limits(is_standalone), signals).await? {
        Stopped::Drained => tracing::info!("stopped"),
        stopped => tracing::warn!(?stopped, "stopped before every request was answered"),
    }
    Ok(ExitStatus::Success)
}

/// Prints the addresses: a sentence on a terminal, otherwise a line of JSON for the parent process.
fn announce(bound: &Bound, ca: Option<&Path>, is_standalone: bool) -> std::io::Result<()> {
    let (listen, admin) = (bound.admission_address(), bound.admin_address());
    tracing::info!(%listen, %admin, standalone = is_standalone, "ready");
    if stdout().is_terminal() {
        let place = if is_standalone { "standalone, no cluster" } else { "in a cluster" };
        writeln!(
            stdout(),
            "Interlock is ready ({place}): reviews at https://{listen}, metrics at http://{admin}/metrics"
        )
    } else {
        writeln!(stdout(), "{}", json!({"ready": true, "listen": listen, "admin": admin, "ca": ca}))
    }
}
