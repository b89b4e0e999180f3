//! `interlock wait` for an object that carries its operation itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use interlock_engine::owners::Carrier;
use interlock_engine::policy::Policies;
use interlock_engine::release::ReleaseRef;
use interlock_engine::rules::wording::span;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::report::Outcome;
use super::{Arguments, OBSERVATION_TIMEOUT};
use crate::budget::Budget;
use crate::cli::exit_status::ExitStatus;
use crate::cli::progress::WaitLine;
use crate::cli::table::printable;
use crate::inspect::diagnosis::Stuck;
use crate::inspect::scan::DECODE_BYTES;
use crate::inspect::status::OperationSummary;
use crate::inspect::unstick::CarryingObject;
use crate::inspect::wait::Goal;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::clock::ServerClock;

/// The time between two looks. A sync takes seconds.
const PAUSE: Duration = Duration::from_secs(2);

/// The result of the wait.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CarriedWait {
    time: Timestamp,
    kind: &'static str,
    namespace: String,
    name: String,
    outcome: Outcome,
    /// One sentence.
    why: String,
    next: Option<String>,
    waited_seconds: u64,
    /// As in the output of `interlock status`.
    operation: Option<OperationSummary>,
}

pub(super) async fn run(
    arguments: &Arguments,
    (carrier, place): (&'static Carrier, &ReleaseRef),
    (client, clock, policies): (&Client, &ServerClock, &Policies),
) -> anyhow::Result<ExitStatus> {
    if arguments.until != Goal::Free {
        bail!(
            "--until {} is for releases: {} {place} can be waited for until it is free",
            arguments.until,
            carrier.kind
        );
    }
    let cluster = Cluster::new(client.clone(), Arc::new(Budget::new(DECODE_BYTES)));
    let (started, allowed) = (Instant::now(), arguments.timeout.unsigned_abs());
    let mut line = WaitLine::default();
    loop {
        let read = tokio::time::timeout(OBSERVATION_TIMEOUT, CarryingObject::read(&cluster, carrier, place)).await;
        let object = read.context("the API server did not answer in time")??;
        let object = object.with_context(|| format!("there is no {} {place}", carrier.kind))?;
        let now = clock.now();
        let operation = object.operation.map(|it| OperationSummary::of(carrier, place, it, policies, now));
        let outcome = match &operation {
            None => Some(Outcome::Reached),
            Some(operation) if operation.stuck == Stuck::Yes => Some(Outcome::Stuck),
            Some(_) => (started.elapsed() >= allowed).then_some(Outcome::TimedOut),
        };
        let why = why(carrier, place, operation.as_ref(), outcome, now);
        if let Some(outcome) = outcome {
            let next = operation.as_ref().and_then(|operation| operation.next.clone());
            let ReleaseRef { namespace, name } = place.clone();
            let waited_seconds = started.elapsed().as_secs();
            let kind = carrier.kind;
            let wait = CarriedWait { time: now, kind, namespace, name, outcome, why, next, waited_seconds, operation };
            arguments.output.print(&wait, || wait.text())?;
            return Ok(outcome.exit_status());
        }
        line.says(printable(&why));
        sleep(PAUSE.min(allowed.saturating_sub(started.elapsed()))).await;
    }
}

/// `Application argocd/web is not free: running, held by bob for 20 s`
fn why(
    carrier: &Carrier,
    place: &ReleaseRef,
    operation: Option<&OperationSummary>,
    outcome: Option<Outcome>,
    now: Timestamp,
) -> String {
    let object = format!("{} {place}", carrier.kind);
    let Some(operation) = operation else { return format!("{object} is free: no operation is running") };
    let held = operation.holder.as_deref().map(|holder| format!(", held by {holder}")).unwrap_or_default();
    let age = |since: Timestamp| span(now.duration_since(since).max(SignedDuration::ZERO));
    let since = operation.since.map(|since| format!(" for {}", age(since))).unwrap_or_default();
    let state = format!("{}{held}{since}", operation.stage);
    match outcome {
        Some(Outcome::Stuck) => format!("{object} is stuck: {state}"),
        Some(Outcome::TimedOut) => format!("timed out: {object} is not free: {state}"),
        _ => format!("{object} is not free: {state}"),
    }
}

impl CarriedWait {
    fn text(&self) -> String {
        let next = self.next.as_deref().map(|next| format!("Next: {}\n", printable(next))).unwrap_or_default();
        format!("{}\n{next}", printable(&self.why))
    }
}
