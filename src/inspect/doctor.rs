//! Whether an installation of Interlock works, seen from outside by whoever runs it: by reads, by questions about rights,
//! and by dry runs that write nothing.
//!
//! [`examine`] fetches everything once; each check is a small pure function over what was fetched.

mod certificates;
mod check;
mod definitions;
mod fetch;
mod neighbours;
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

pub use check::{Check, Report, State};
use snapshot::Cluster;

/// Examines the installation in a namespace.
///
/// # Errors
/// When the API server cannot be reached at all. What may not be read is told as a check that was skipped.
pub async fn examine(client: &Client, namespace: &str) -> Result<Report, kube::Error> {
    let clocks = fetch::clocks(client).await?;
    let cluster = Cluster::fetch(client, namespace, clocks).await;
    let mut checks = Vec::new();
    checks.extend(server::checks(&cluster));
    checks.extend(registration::checks(&cluster));
    checks.extend(certificates::checks(&cluster, clocks.0));
    checks.extend(probe::checks(client, &cluster).await);
    checks.extend(replicas::checks(&cluster));
    checks.extend(definitions::checks(&cluster));
    checks.extend(rights::checks(client, &cluster).await);
    checks.extend(writers::checks(&cluster));
    checks.extend(neighbours::checks(&cluster));
    Ok(Report { version: env!("CARGO_PKG_VERSION"), namespace: namespace.to_owned(), checks })
}

/// The registration as it should be: every shipped entry, reached as the entries that are there are reached. For
/// `kubectl apply`.
///
/// # Errors
/// When the API server does not answer.
pub async fn registration(client: &Client, namespace: &str) -> Result<Value, kube::Error> {
    let [validating, mutating] = fetch::registrations(client).await?;
    Ok(registration::repaired(namespace, &validating, &mutating))
}
