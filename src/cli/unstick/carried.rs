//! `interlock unstick` of an object that carries its operation itself.

use std::sync::Arc;

use anyhow::Context;
use interlock_engine::owners::{CarriedOperation, Carrier, Stage};
use interlock_engine::policy::{Policies, Policy};
use interlock_engine::release::ReleaseRef;
use interlock_engine::rules::wording::span;
use jiff::Timestamp;
use kube::Client;
use serde::Serialize;
use serde_json::Value;

use super::{Arguments, UnstickResult, answer, next_line};
use crate::budget::Budget;
use crate::cli::cluster::server_time;
use crate::cli::exit_status::ExitStatus;
use crate::cli::table::printable;
use crate::inspect::diagnosis::NextStep;
use crate::inspect::scan::DECODE_BYTES;
use crate::inspect::unstick::CarryingObject;
use crate::world::kubernetes::Cluster;

/// The report for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CarriedReport {
    kind: &'static str,
    namespace: String,
    name: String,
    /// When the operation began.
    started: Option<Timestamp>,
    outcome: UnstickResult,
    /// What was done, or would be done.
    what: Option<String>,
    /// Why the command refused.
    why: Option<String>,
    next: Option<String>,
}

/// What the command does about an operation.
enum Remedy {
    Patch {
        patch: Value,
        /// As a request, and as a report.
        words: [String; 2],
        /// What the person does after it.
        next: Option<String>,
    },
    /// Nothing, yet.
    None { why: String, next: Option<NextStep> },
}

pub(super) async fn run(
    arguments: &Arguments,
    (carrier, place): (&'static Carrier, &ReleaseRef),
    (client, policies): (&Client, &Policies),
) -> anyhow::Result<ExitStatus> {
    if arguments.restore || arguments.storage.is_some() {
        anyhow::bail!("{} {place} has no records: --restore and --storage are for releases", carrier.kind);
    }
    let mut report = CarriedReport::new(carrier, place);
    let cluster = Cluster::new(client.clone(), Arc::new(Budget::new(DECODE_BYTES)));
    let object = CarryingObject::read(&cluster, carrier, place).await?;
    let object = object.with_context(|| format!("there is no {} {place}", carrier.kind))?;
    if let Some(operation) = &object.operation {
        report.started = operation.started;
        let now = server_time(client).await?;
        let remedy = remedy(carrier, place, operation, policies.of(&place.namespace), now);
        report.apply(remedy, arguments, (&object, client)).await?;
    }
    arguments.output.print(&report, || report.text())?;
    Ok(if report.outcome == UnstickResult::Refused { ExitStatus::Findings } else { ExitStatus::Success })
}

fn remedy(
    carrier: &Carrier,
    place: &ReleaseRef,
    CarriedOperation { started, stage, .. }: &CarriedOperation,
    policy: &Policy,
    now: Timestamp,
) -> Remedy {
    let Carrier { kind, program, controller, .. } = carrier;
    let recovery = &policy.recovery;
    let waits = |why| Remedy::None { why: format!("{why}: is {controller} running?"), next: None };
    match stage {
        Stage::Requested => waits(format!("{program} has not begun the operation of {kind} {place}")),
        Stage::Ending => waits(format!("{program} has not yet ended the operation of {kind} {place}")),
        Stage::Running { .. } if !recovery.is_stale(*started, now) => {
            let age = started.map_or("of unknown age".to_owned(), |it| format!("{} old", span(now.duration_since(it))));
            let stale = span(recovery.stale_after);
            let why = format!("the operation is {age} and counts as stuck after {stale}");
            let until = started.and_then(|it| it.checked_add(recovery.stale_after).ok());
            Remedy::None { next: Some(NextStep::Wait { until, why: why.clone(), now }), why }
        }
        Stage::Running { end } => Remedy::Patch {
            patch: end.clone(),
            words: [
                format!("End the operation of {kind} {place}"),
                format!("{program} ends the operation of {kind} {place}, and cleans up after it"),
            ],
            next: Some(carrier.start(&place.namespace, &place.name)),
        },
        Stage::Interrupted { again } => Remedy::Patch {
            patch: again.clone(),
            words: [
                format!("Start the interrupted operation of {kind} {place} again"),
                format!("{program} carries out the operation of {kind} {place} again"),
            ],
            next: None,
        },
    }
}

impl CarriedReport {
    fn new(carrier: &Carrier, place: &ReleaseRef) -> Self {
        Self {
            kind: carrier.kind,
            namespace: place.namespace.clone(),
            name: place.name.clone(),
            started: None,
            outcome: UnstickResult::NothingToDo,
            what: None,
            why: None,
            next: None,
        }
    }

    async fn apply(
        &mut self,
        remedy: Remedy,
        arguments: &Arguments,
        (object, client): (&CarryingObject, &Client),
    ) -> anyhow::Result<()> {
        self.outcome = UnstickResult::Refused;
        let (patch, [request, done], next) = match remedy {
            Remedy::Patch { patch, words, next } => (patch, words, next),
            Remedy::None { why, next } => {
                (self.why, self.next) = (Some(why), next.map(|next| next.to_string()));
                return Ok(());
            }
        };
        if !arguments.confirm(&format!("{request}?"))? {
            self.why = Some("the command was not confirmed".to_owned());
            return Ok(());
        }
        match answer(object.patch(client, &patch, arguments.dry_run).await)? {
            Ok(()) if arguments.dry_run => (self.outcome, self.what) = (UnstickResult::WouldUnstick, Some(request)),
            Ok(()) => (self.outcome, self.what, self.next) = (UnstickResult::Unstuck, Some(done), next),
            Err(why) => self.why = Some(why),
        }
        Ok(())
    }

    fn text(&self) -> String {
        let Self { kind, namespace, name, .. } = self;
        let what = self.what.as_deref().unwrap_or_default();
        let next = next_line(self.next.as_deref());
        match self.outcome {
            UnstickResult::Refused => {
                let why = printable(self.why.as_deref().unwrap_or_default());
                format!("Nothing was changed: {}.\n{next}", why.trim_end_matches('.'))
            }
            UnstickResult::WouldUnstick => format!("Without --dry-run: {what}.\n"),
            UnstickResult::Unstuck => format!("{what}.\n{next}"),
            _ => format!("Nothing to do: {kind} {namespace}/{name} has no operation that is running.\n"),
        }
    }
}
