//! Checks from outside whether an installation of Interlock works: with reads, access reviews, and dry runs that write nothing.
//!
//! [`examine`] fetches everything once. Each check is a small pure function of the snapshot. A check that needs an object that cannot
//! be read returns the reason, and is reported as skipped.

mod access;
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
mod statuses;
mod way;
mod writers;

use kube::Client;
use serde_json::Value;

use crate::inspect::arrival::{Half, Passage, probe as send_probe};
use arrival::Arrival;
pub(crate) use diagnosis::{Diagnosis, DiagnosisState, DoctorReport};
pub(crate) use platform::platform;
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
    let snapshot = &Snapshot::fetch(client, namespace, clocks).await;
    let mut report = DoctorReport::new(namespace, !preflight::is_absent(snapshot));
    if before || !report.installed {
        preflight::examine(client, snapshot, before, &mut report).await;
        return Ok(report);
    }
    let ways = Ways::probed(client, snapshot).await;
    let runs = DryRuns::run(client, snapshot).await;
    report.add("api-server", server::version(snapshot));
    report.add("api-server", Ok(server::clocks(snapshot)));
    report.add("registration", Ok(registration::diagnose(snapshot, matches!(runs.arrival(), Arrival::Answered))));
    report.add("caBundle", Ok(certificates::diagnose(snapshot)));
    report.add("way", Ok(way::diagnose(&ways, snapshot)));
    report.add("stamps", Ok(probe::stamp(&runs, snapshot)));
    report.add("judges", probe::verdict(&runs, snapshot));
    report.add("clients", clients::diagnose(snapshot, ways.explain(runs.arrival())));
    report.add("replicas", replicas::diagnose(snapshot));
    report.add("leader", replicas::leader(snapshot));
    report.add("overrides", definitions::overrides(snapshot));
    report.add("freezes", definitions::freezes(snapshot));
    report.add("policies", definitions::policies(snapshot));
    report.add("rights", rights::diagnose(client, snapshot).await);
    report.add("statuses", statuses::diagnose(snapshot));
    report.add("writers", writers::diagnose(snapshot));
    report.add("other-webhooks", Ok(other_webhooks::diagnose(snapshot)));
    report.add("unguarded", other_webhooks::unguarded(snapshot));
    report.add("plugins", plugins::diagnose(snapshot));
    report.add("platform", platform::diagnose(snapshot));
    Ok(report)
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
