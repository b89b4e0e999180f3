//! Whether an installation of Interlock works, seen from outside by whoever runs it: by reads, by questions about rights,
//! and by dry runs that write nothing.
//!
//! [`examine`] fetches everything once; each check is a small pure function over what was fetched.

mod certificates;
mod definitions;
mod diagnosis;
mod fetch;
mod other_webhooks;
mod probe;
mod records;
mod registration;
mod replicas;
mod rights;
mod selector;
mod server;
mod snapshot;
mod writers;

use kube::Client;
use serde_json::Value;

pub use diagnosis::{Diagnosis, DiagnosisState, DoctorReport};
use snapshot::Snapshot;

/// Examines the installation in a namespace.
///
/// # Errors
/// When the API server cannot be reached at all. What may not be read is told as a check that was skipped.
pub async fn examine(client: &Client, namespace: &str) -> Result<DoctorReport, kube::Error> {
    let clocks = fetch::clocks(client).await?;
    let snapshot = Snapshot::fetch(client, namespace, clocks).await;
    let mut checks = Vec::new();
    checks.extend(server::diagnose(&snapshot));
    checks.extend(registration::diagnose(&snapshot));
    checks.extend(certificates::diagnose(&snapshot, clocks.0));
    checks.extend(probe::diagnose(client, &snapshot).await);
    checks.extend(replicas::diagnose(&snapshot));
    checks.extend(definitions::diagnose(&snapshot));
    checks.extend(rights::diagnose(client, &snapshot).await);
    checks.extend(writers::diagnose(&snapshot));
    checks.extend(other_webhooks::diagnose(&snapshot));
    Ok(DoctorReport { version: env!("CARGO_PKG_VERSION"), namespace: namespace.to_owned(), checks })
}

/// The registration as it should be: every shipped entry, reached as the entries that are there are reached. For
/// `kubectl apply`.
///
/// # Errors
/// When the API server does not answer.
pub async fn registration(client: &Client, namespace: &str) -> Result<Value, kube::Error> {
    let [validating, mutating] = fetch::registrations(client).await?;
    Ok(registration::repair(namespace, &validating, &mutating))
}
