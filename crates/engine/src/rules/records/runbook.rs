//! The checks of the on-call runbook before the record of a stuck operation may be deleted.
//!
//! Deleting the record changes Helm's view, not the workload: a deployed revision below it looks live again. So no operation may
//! be running, and the objects that the dead operation applied must be healthy. If they are not, the deletion does not fix the
//! cause. If no revision below is deployed, the operation was a first install, or died between its last two writes. Then no
//! revision would look live again, and Helm starts from nothing, or from a superseded or failed revision.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::case::RecordCase;
use super::lease;
use super::recovery::RecordCondition;
use super::standing::InFlight;
use super::workload_health::{describe_workload, failure_of};
use crate::evidence::{Evidence, Query, question};
use crate::facts::{Facts, RecordBody, RecordChange, RecordVersion, Subject};
use crate::object::ObjectKey;
use crate::policy::Policy;
use crate::release::manifest::{HookObject, WorkloadRef, workloads};
use crate::release::{DecodeError, Record, Status};
use crate::rules::undecided::{Undecided, ask};
use crate::rules::wording::{self, known_status};

/// The name of a check of the runbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunbookCheckName {
    /// The record is deleted on its own, not with others.
    Alone,
    /// The operation is old enough to count as stuck.
    Stale,
    /// Neither nelm nor werf holds a lease.
    NoLease,
    /// The body can be decoded, and its status is pending, like the label.
    PendingBody,
    /// A workload in the manifest is healthy.
    Healthy,
    /// No Job of a hook is running. Only `status` and `unstick` check this: the webhook reads no Jobs.
    NoHookRuns,
}

/// The result of a check of the runbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "holds", content = "why")]
pub enum RunbookResult {
    /// The check passed.
    #[serde(rename = "yes")]
    Passed,
    /// The check failed, for this reason, worded for a refusal.
    #[serde(rename = "no")]
    Failed(String),
    /// The check could not be run, for this reason.
    #[serde(rename = "unknown")]
    Unknown(String),
}

/// One check of the runbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunbookCheck {
    #[serde(rename = "check")]
    pub name: RunbookCheckName,
    /// What was found, with the numbers. Contains only the name of an object, never its content.
    pub evidence: String,
    #[serde(flatten)]
    pub result: RunbookResult,
}

impl RunbookCheck {
    fn of(name: RunbookCheckName, evidence: impl Into<String>, failure: Option<String>) -> Self {
        Self { name, evidence: evidence.into(), result: failure.map_or(RunbookResult::Passed, RunbookResult::Failed) }
    }

    /// Whether the check passed. An unknown result does not pass.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.result == RunbookResult::Passed
    }
}

impl RunbookCheckName {
    /// As `status` and `unstick` print it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Stale => "stale",
            Self::NoLease => "no-lease",
            Self::PendingBody => "pending-body",
            Self::Healthy => "healthy",
            Self::NoHookRuns => "no-hook-runs",
        }
    }
}

impl fmt::Display for RunbookCheckName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Runs one or several checks of the runbook.
type RunbookProbe = fn(&RecordCase<'_>, &RecordVersion<'_>) -> Result<Vec<RunbookCheck>, Undecided>;

/// The checks that the rule needs, cheapest first.
const RUNBOOK_PROBES: [(RunbookCheckName, RunbookProbe); 4] = [
    (RunbookCheckName::Alone, |case, _| Ok(vec![alone(case)])),
    (RunbookCheckName::Stale, |case, side| Ok(vec![stale(case, side)?])),
    (RunbookCheckName::NoLease, |case, _| Ok(vec![no_lease(case)?])),
    (RunbookCheckName::PendingBody, healthy),
];

/// The checks of the rule that fail.
pub(crate) struct FailedChecks {
    /// The reasons, with the numbers.
    pub(crate) sentences: Vec<String>,
    /// Whether the operation counts as stuck. True if that was not checked.
    pub(crate) is_stuck: bool,
    pub(crate) condition: RecordCondition,
}

/// The failing checks of the rule. Workloads are checked only if all other checks pass: a manifest may name thousands, and they
/// could not change the result.
pub(crate) fn failed_checks(case: &RecordCase<'_>, side: &RecordVersion<'_>) -> Result<FailedChecks, Undecided> {
    let mut failed = FailedChecks { sentences: Vec::new(), is_stuck: true, condition: RecordCondition::Unknown };
    for (name, probe) in RUNBOOK_PROBES {
        if name == RunbookCheckName::PendingBody && !failed.sentences.is_empty() {
            break;
        }
        match probe(case, side) {
            Ok(checks) => checks.into_iter().for_each(|check| failed.add(check)),
            // One failed check is enough for a refusal. Missing data must not undo it.
            Err(Undecided::Unavailable(why)) if !failed.sentences.is_empty() => {
                failed.sentences.push(format!("the other checks could not be run ({why})"));
                break;
            }
            Err(need) => return Err(need),
        }
    }
    Ok(failed)
}

impl FailedChecks {
    fn add(&mut self, check: RunbookCheck) {
        let RunbookResult::Failed(why) = check.result else { return };
        match check.name {
            RunbookCheckName::Stale => self.is_stuck = false,
            RunbookCheckName::Healthy => self.condition = RecordCondition::Unhealthy,
            RunbookCheckName::PendingBody => self.condition = RecordCondition::Unreadable,
            RunbookCheckName::Alone | RunbookCheckName::NoLease | RunbookCheckName::NoHookRuns => {}
        }
        self.sentences.push(why);
    }
}

/// Runs every check if the request deletes a record, and none for other requests. Pure, like [`decide`](crate::decide::decide).
///
/// # Errors
/// The query that a check needs answered.
pub fn inspect(
    facts: &Facts<'_>,
    policy: &Policy,
    evidence: &Evidence,
    now: Timestamp,
) -> Result<Vec<RunbookCheck>, Query> {
    let Subject::Record(id, change) = &facts.subject else {
        return Ok(Vec::new());
    };
    let RecordChange::Deleted(side) = change.as_ref() else {
        return Ok(Vec::new());
    };
    let case = RecordCase { facts, id, change, policy, evidence, now };
    let mut checks = Vec::new();
    for (name, probe) in
        RUNBOOK_PROBES.into_iter().chain([(RunbookCheckName::NoHookRuns, no_hook_runs as RunbookProbe)])
    {
        match probe(&case, side) {
            Ok(found) => checks.extend(found),
            Err(need) => {
                let (_, why, _) = need.into_query_or_violation()?;
                checks.push(RunbookCheck {
                    name,
                    evidence: "could not be checked".to_owned(),
                    result: RunbookResult::Unknown(why),
                });
            }
        }
    }
    Ok(checks)
}

fn alone(case: &RecordCase<'_>) -> RunbookCheck {
    let failure =
        case.facts.collection.then(|| "it is deleted together with other records, not alone by its name".to_owned());
    RunbookCheck::of(RunbookCheckName::Alone, "only this record is deleted", failure)
}

/// Whether an earlier revision would look live again without this record.
fn is_deployed_below(case: &RecordCase<'_>) -> Result<bool, Undecided> {
    let history = case.history()?;
    let Some(revision) = case.id.revision else {
        return Ok(false);
    };
    Ok(history.below(revision).any(|entry| entry.status == Status::Deployed))
}

fn stale(case: &RecordCase<'_>, side: &RecordVersion<'_>) -> Result<RunbookCheck, Undecided> {
    let operation = InFlight::of_side(side);
    let is_stale = case.is_stuck(&operation)?;
    let age = operation.started().map_or("of unknown age".to_owned(), |started| {
        format!("{} old", wording::span(case.now.duration_since(started)))
    });
    let stale = wording::span(case.stale_after(operation.started(), operation.stamps())?);
    let holder = wording::user(operation.holder());
    let evidence = format!("held by {holder}, {age}; counts as stuck after {stale}");
    let failure = (!is_stale).then(|| {
        format!("the operation of {holder} may still be running: it is {age} and counts as stuck after {stale}")
    });
    Ok(RunbookCheck::of(RunbookCheckName::Stale, evidence, failure))
}

fn no_lease(case: &RecordCase<'_>) -> Result<RunbookCheck, Undecided> {
    let is_held = lease::is_held(case)?;
    let evidence = if is_held { "nelm or werf holds a lease" } else { "neither nelm nor werf holds a lease" };
    let failure = is_held.then(|| "nelm or werf holds a live lease of the release".to_owned());
    Ok(RunbookCheck::of(RunbookCheckName::NoLease, evidence, failure))
}

/// How many workloads are read at a time. Reading stops after the first batch with an unhealthy workload.
const WORKLOADS_AT_A_TIME: usize = 64;

/// Checks that the body is pending, like the label, and that the workloads in its manifest are healthy.
fn healthy(case: &RecordCase<'_>, side: &RecordVersion<'_>) -> Result<Vec<RunbookCheck>, Undecided> {
    // Its writer died, or the object was damaged. Its workloads are unknown, and it blocks the release. Waiting does not help.
    if let Some(error) = why_unreadable(case, side)? {
        let evidence = format!("{error}, so nobody can read the record any more");
        return Ok(vec![RunbookCheck::of(RunbookCheckName::PendingBody, evidence, None)]);
    }
    let named = match pending_workloads(case, side)? {
        Ok(named) => named,
        Err(why) => {
            return Ok(vec![RunbookCheck::of(
                RunbookCheckName::PendingBody,
                "its body is not pending, or cannot be parsed",
                Some(why.clone()),
            )]);
        }
    };
    let mut checks =
        vec![RunbookCheck::of(RunbookCheckName::PendingBody, "its label and its body say that it is pending", None)];
    if !case.words().has_commands() {
        // The next attempt of its controller is the only way on, and this record is what keeps it from that.
        let evidence =
            format!("{} has no rollback, so unhealthy workloads do not keep the record", case.words().name());
        checks.push(RunbookCheck::of(RunbookCheckName::Healthy, evidence, None));
        return Ok(checks);
    }
    if !is_deployed_below(case)? {
        let evidence = "no earlier revision is deployed, so none would look live again";
        checks.push(RunbookCheck::of(RunbookCheckName::Healthy, evidence, None));
        return Ok(checks);
    }
    if named.is_empty() {
        let evidence = "its manifest has no Deployment, StatefulSet or DaemonSet";
        checks.push(RunbookCheck::of(RunbookCheckName::Healthy, evidence, None));
        return Ok(checks);
    }
    for named in named.chunks(WORKLOADS_AT_A_TIME) {
        let found = case.workloads(named)?.iter().map(Option::as_ref);
        checks.extend(named.iter().zip(found).map(|(reference, found)| {
            let evidence = describe_workload(reference, found);
            RunbookCheck::of(RunbookCheckName::Healthy, evidence, failure_of(reference, found))
        }));
        if !checks.iter().all(RunbookCheck::passed) {
            break;
        }
    }
    Ok(checks)
}

/// The workloads of a pending record, or why they are unknown.
fn pending_workloads<'s>(
    case: &RecordCase<'_>,
    side: &'s RecordVersion<'_>,
) -> Result<&'s Result<Vec<WorkloadRef>, String>, Undecided> {
    if let Some(known) = side.workloads.get() {
        return Ok(known);
    }
    let effort = case.facts.effort;
    let named = with_record(case, side, |record| match record {
        Err(error) => Err(format!("its body cannot be decoded ({error}), so its workloads are unknown")),
        Ok(record) if !record.info.status.parse::<Status>().is_ok_and(Status::is_pending) => {
            Err(format!("its body says {}, which is not pending", known_status(&record.info.status)))
        }
        Ok(record) => workloads(&record.manifest(), &record.namespace, effort)
            .map_err(|error| format!("its manifest cannot be read ({error}), so its workloads are unknown")),
    })?;
    Ok(side.workloads.get_or_init(|| named))
}

/// Checks that no Job of a hook is running.
fn no_hook_runs(case: &RecordCase<'_>, side: &RecordVersion<'_>) -> Result<Vec<RunbookCheck>, Undecided> {
    // `healthy` reports a body that cannot be parsed.
    let jobs = with_record(case, side, |record| {
        record.map_or_else(|_| Ok(Vec::new()), |record| record.hooks_of_kind("Job", case.facts.effort))
    })?;
    let check = |evidence: String, failure| RunbookCheck::of(RunbookCheckName::NoHookRuns, evidence, failure);
    let jobs = match jobs {
        Ok(jobs) => jobs,
        Err(error) => {
            let failure = format!("its hooks cannot be parsed ({error}), so their Jobs are unknown");
            return Ok(vec![check("its hooks cannot be parsed".to_owned(), Some(failure))]);
        }
    };
    if jobs.is_empty() {
        return Ok(vec![check("none of its hooks is a Job".to_owned(), None)]);
    }
    let mut checks = Vec::new();
    for HookObject { namespace, name } in jobs {
        let found = ask(case.evidence, question::Object(ObjectKey::new("batch", "Job", &namespace, &name)))?;
        let job = format!("Job {namespace}/{name}");
        let active =
            found.map(|text| serde_json::from_str::<Job>(text).map(|job| job.status.unwrap_or_default().active));
        checks.push(match active {
            None => check(format!("{job} does not exist"), None),
            Some(Ok(0)) => check(format!("{job} is not running"), None),
            Some(Ok(active)) => {
                let evidence = format!("{job} has {active} active pods");
                check(evidence, Some(format!("{job} of a hook is still running with {active} active pods")))
            }
            Some(Err(_)) => check(format!("{job} cannot be parsed"), Some(format!("{job} of a hook cannot be parsed"))),
        });
    }
    Ok(checks)
}

#[derive(Deserialize)]
struct Job {
    #[serde(default)]
    status: Option<JobStatus>,
}

#[derive(Default, Deserialize)]
struct JobStatus {
    #[serde(default)]
    active: i64,
}

/// Why no client can read the record that is deleted; `None` if one can, or if that is unknown.
fn why_unreadable(case: &RecordCase<'_>, side: &RecordVersion<'_>) -> Result<Option<DecodeError>, Undecided> {
    match &side.body {
        RecordBody::Read(_) => Ok(None),
        RecordBody::Broken(DecodeError::Chunked) | RecordBody::Unread => case.why_unreadable(&case.id.object),
        RecordBody::Broken(error) => Ok(Some(error.clone()).filter(DecodeError::stops_every_client)),
    }
}

/// Parses the record that is deleted: from the request, or from the cluster if OLM stores it in several Secrets.
fn with_record<T>(
    case: &RecordCase<'_>,
    side: &RecordVersion<'_>,
    read: impl FnOnce(Result<&Record<'_>, DecodeError>) -> T,
) -> Result<T, Undecided> {
    match &side.body {
        RecordBody::Read(record) => Ok(read(Ok(record))),
        RecordBody::Broken(DecodeError::Chunked) | RecordBody::Unread => {
            let body = case.body(&case.id.object)?.unwrap_or(Err(DecodeError::Missing));
            match body.and_then(|json| Record::read(json, case.facts.effort)) {
                Ok(record) => Ok(read(Ok(&record))),
                Err(error) => Ok(read(Err(error))),
            }
        }
        RecordBody::Broken(error) => Ok(read(Err(error.clone()))),
    }
}
