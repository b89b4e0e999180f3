//! Checks from outside whether an installation of Interlock works: with reads, access reviews, and dry runs that write nothing.
//!
//! [`examine`] fetches everything once. Each check is a small pure function of the snapshot.

mod arrival;
mod certificates;
mod clients;
mod definitions;
mod diagnosis;
mod fetch;
mod network;
mod other_webhooks;
mod platform;
mod plugins;
mod preflight;
mod probe;
mod records;
mod registration;
mod replicas;
mod rights;
mod selector;
mod server;
mod settings;
mod snapshot;
mod way;
mod writers;

use kube::Client;
use serde_json::Value;

use crate::inspect::arrival::{Half, Passage, probe as send_probe};
pub(crate) use diagnosis::{DiagnosisState, DoctorReport};
use probe::DryRuns;
use snapshot::Snapshot;
use way::Ways;

/// Examines the installation in a namespace. If nothing is installed, or `before` an installation, examines the requirements
/// instead.
///
/// # Errors
/// When the API server cannot be reached at all. A check whose objects cannot be read is reported as skipped.
pub(crate) async fn examine(client: &Client, namespace: &str, before: bool) -> Result<DoctorReport, kube::Error> {
    let clocks = fetch::clocks(client).await?;
    let snapshot = Snapshot::fetch(client, namespace, clocks).await;
    let report = |installed, checks| DoctorReport {
        version: env!("CARGO_PKG_VERSION"),
        namespace: namespace.to_owned(),
        installed,
        checks,
    };
    let installed = !preflight::is_absent(&snapshot);
    if before || !installed {
        return Ok(report(installed, preflight::diagnose(client, &snapshot, before).await));
    }
    let mut checks = Vec::new();
    checks.extend(server::diagnose(&snapshot));
    checks.extend(registration::diagnose(&snapshot));
    checks.extend(certificates::diagnose(&snapshot, clocks.0));
    let ways = Ways::probed(client, &snapshot).await;
    checks.extend(way::diagnose(&ways, &snapshot));
    let runs = DryRuns::run(client, &snapshot).await;
    checks.extend(probe::diagnose(&runs, &snapshot));
    checks.extend(clients::diagnose(&snapshot, ways.explain(runs.arrival())));
    checks.extend(replicas::diagnose(&snapshot));
    checks.extend(definitions::diagnose(&snapshot));
    checks.extend(rights::diagnose(client, &snapshot).await);
    checks.extend(writers::diagnose(&snapshot));
    checks.extend(other_webhooks::diagnose(&snapshot));
    checks.push(plugins::diagnose(&snapshot));
    checks.push(platform::diagnose(&snapshot));
    Ok(report(installed, checks))
}

/// The complete registration for `kubectl apply`: every shipped entry, with the client configuration of the existing entries.
/// Entries fail closed only if a replica answers now.
///
/// # Errors
/// When the API server does not answer.
pub(crate) async fn registration(client: &Client, namespace: &str) -> Result<Value, kube::Error> {
    let [validating, mutating] = fetch::registrations(client).await?;
    let answers = send_probe(client, namespace, Half::Validating).await == Passage::Arrived;
    Ok(registration::repair(namespace, &validating, &mutating, answers))
}
