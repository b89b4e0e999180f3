//! `interlock unstick`: the runbook for a stuck release.

mod carried;

use std::io::{BufRead, IsTerminal, Write, stderr, stdin};

use anyhow::Context;
use clap::builder::TypedValueParser;
use interlock_engine::release::{Entry, History, ReleaseRef, Storage};
use interlock_engine::rules::{RunbookCheck, RunbookResult};
use jiff::Timestamp;
use serde::Serialize;

use super::cluster::{ClusterArguments, server_time};
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::named_values::named_values;
use super::output::{self, Output};
use super::policies_in_force::PoliciesInForce;
use super::release_argument::{Named, ReleaseArgument, as_carrier};
use super::runbook_checks::checks;
use super::table::{colours, printable};
use crate::inspect::diagnosis::{Checks, Examiner, ReleaseRecords, Stuck, after_unstick};
use crate::inspect::runbook::StuckRecord;
use crate::inspect::status::{self, ReleaseSummary};
use crate::inspect::unstick::{RecordCopy, UnstickError};
use crate::inspect::view::View;

/// Delete the record that is in the way: of a dead operation, or one that nobody can read
///
/// Evaluates every check of the rule pending-recovery, and looks for hook Jobs that are still running. Refuses if a
/// check of the workloads fails, unless the operation is your own or a ReleaseOverride opens the rule to you. Copies the pending record to a Secret in the same
/// namespace, and deletes the record if it has not changed since the checks. In any case, prints the next step. The webhook, if installed, also judges the deletion. Requires the
/// rights to get, list and delete the records' Secrets or ConfigMaps, to create Secrets, and to get the workloads of
/// the release and the Jobs of its hooks. Exits with 1 if it refuses, and with 2 if a check cannot be run.
///
/// An Application of Argo CD carries its operation itself: with `-n NAMESPACE app/NAME` the command ends one that is stuck, and starts one
/// again that was interrupted. Requires the rights to get and patch the Application.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock unstick shop/web --dry-run", "interlock unstick -n shop web --yes", "interlock unstick -n argocd app/web"]))]
pub(super) struct Arguments {
    #[command(flatten)]
    release: ReleaseArgument,
    /// Restore the record from its copy, and delete the copy
    #[arg(long)]
    restore: bool,
    /// Run every check, let the API server check the writes, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Storage of the record; without it the first with a pending record: Secrets, OLM, ConfigMaps
    #[arg(long, value_parser = storages(), conflicts_with = "restore")]
    storage: Option<Storage>,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    #[command(flatten)]
    policies: PoliciesInForce,
}

/// The storages, as the command line names them.
fn storages() -> impl TypedValueParser<Value = Storage> {
    named_values(Storage::ALL.map(|storage| (storage.name(), Some(storage.description()), storage)))
}

/// The result of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum UnstickResult {
    /// A check failed, or a webhook refused.
    Refused,
    /// The record was deleted, or the operation of an object was ended or started again.
    Unstuck,
    /// A dry run would have done so.
    WouldUnstick,
    /// The record was restored.
    Restored,
    /// A dry run would have restored the record.
    WouldRestore,
    /// No operation is pending.
    NothingToDo,
}

/// The report for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UnstickReport {
    namespace: String,
    release: String,
    record: Option<String>,
    revision: Option<u64>,
    status: Option<&'static str>,
    checks: Vec<RunbookCheck>,
    outcome: UnstickResult,
    /// Why the command refused.
    why: Option<String>,
    /// The Secrets with the copy.
    copies: Vec<String>,
    next: Option<String>,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let client = arguments.cluster.client().await?;
    let named = arguments.release.stuck(client.default_namespace())?;
    let policies = arguments.policies.read(&client).await?.policies;
    let release = match &named {
        Named::Object(carrier, place) => return carried::run(arguments, (carrier, place), (&client, &policies)).await,
        Named::Release(release) => release,
    };
    let view = &View::open(&client, &policies).await;
    let report = if arguments.restore {
        restore(arguments, release, view).await?
    } else {
        free(arguments, release, view).await?
    };
    arguments.output.print(&report, || report.text())?;
    Ok(if report.outcome == UnstickResult::Refused { ExitStatus::Findings } else { ExitStatus::Success })
}

async fn free(arguments: &Arguments, release: &ReleaseRef, view: &View<'_>) -> anyhow::Result<UnstickReport> {
    let now = server_time(&view.client).await?;
    let found = view.releases(release).await?;
    let (storage, history) = choose_storage(arguments, release, &found)?;
    let broken = &view.broken(release, storage, history).await;
    let records = ReleaseRecords { release, storage, history, broken };
    let stuck = StuckRecord::read(&view.world, records).await.map_err(anyhow::Error::msg)?;
    let found = match &stuck {
        Some(stuck) => {
            let policy = view.policies.of(&release.namespace);
            Checks::Given(stuck.checks(&view.world, policy, now).await.map_err(anyhow::Error::msg)?)
        }
        None => Checks::IfStuck,
    };
    let examined = status::examined(view, records, (found, now)).await;
    let (row, (checked, _)) = examined.with_context(|| format!("there is no release {release}"))?;
    let mut report = UnstickReport::of(&row);
    let Some(stuck) = stuck else {
        return Ok(report.without_stuck_record(&row));
    };
    report.checks = checked;
    (report.record, report.revision) = (Some(stuck.record().to_owned()), Some(stuck.entry().revision.0));
    if arguments.output == Output::Table {
        let ReleaseSummary { revision, status, .. } = row;
        let checks = checks(&report.checks, colours());
        output::print(&format!("{release}: {status}, revision {revision}\n{checks}"))?;
    }
    // The holder of the operation may delete the record even if checks fail, and so may any user with an override.
    let is_next = row.next.as_deref().is_some_and(|next| next.starts_with("interlock unstick"));
    if !is_next && report.checks.iter().any(|check| !check.passed()) {
        report.why = Some(failures(&report.checks));
        report.next = row.next;
        return Ok(report);
    }
    if !arguments.confirm(&format!("Delete the record {} (a copy is kept)?", stuck.record()))? {
        return Ok(report.not_confirmed());
    }
    if let Some(copies) = report.accept(stuck.unstick(view, arguments.dry_run).await)? {
        report.outcome = if arguments.dry_run { UnstickResult::WouldUnstick } else { UnstickResult::Unstuck };
        report.copies = copies;
        let copy = stuck.copy_with_values(&report.copies);
        report.next = next_after(view, records, (stuck.entry(), copy), &row, now).await;
    }
    Ok(report)
}

/// The next step after the record is deleted.
async fn next_after(
    view: &View<'_>,
    ReleaseRecords { release, storage, history, .. }: ReleaseRecords<'_>,
    (lost, copy): (&Entry, Option<&str>),
    row: &ReleaseSummary,
    now: Timestamp,
) -> Option<String> {
    let history = &after_unstick(history, lost, row.chart.as_deref());
    let broken = &view.broken(release, storage, history).await;
    let records = ReleaseRecords { release, storage, history, broken };
    let examiner = Examiner { copy, ..view.examiner(now) };
    let examined = examiner.examine(records, Checks::IfStuck).await?;
    examined.diagnosis.next.map(|next| next.to_string())
}

async fn restore(arguments: &Arguments, release: &ReleaseRef, view: &View<'_>) -> anyhow::Result<UnstickReport> {
    let mut report = UnstickReport::new(release);
    let Some(found) = report.accept(RecordCopy::find(view, release).await)? else { return Ok(report) };
    let found = found.with_context(|| format!("there is no copy of a record of release {release} in its namespace"))?;
    report.record = Some(found.record().to_owned());
    if !arguments.confirm(&format!("Restore the record {}?", found.record()))? {
        return Ok(report.not_confirmed());
    }
    if let Some(restored) = report.accept(found.restore(view, arguments.dry_run).await)? {
        report.outcome = if arguments.dry_run { UnstickResult::WouldRestore } else { UnstickResult::Restored };
        report.revision = Some(restored.revision);
        report.copies = restored.copies;
        report.next = Some(format!("interlock status {release}"));
    }
    Ok(report)
}

/// The first storage with a pending record, otherwise the first storage with records. Secrets come first, as in helm.
fn choose_storage<'f>(
    arguments: &Arguments,
    release: &ReleaseRef,
    found: &'f [(Storage, History)],
) -> anyhow::Result<(Storage, &'f History)> {
    let wanted = arguments.storage;
    let found: Vec<_> = found.iter().filter(|(storage, _)| wanted.is_none_or(|wanted| wanted == *storage)).collect();
    let pending = found.iter().find(|(_, history)| history.newest().is_some_and(|newest| newest.status.is_pending()));
    let chosen = pending.or(found.first());
    let (storage, history) = chosen.with_context(|| {
        let namespace = &release.namespace;
        let sentence = format!(
            "there is no release {release}: namespace {namespace} has no record of it in a Secret or ConfigMap"
        );
        match as_carrier(release) {
            Some((carrier, words)) => format!("{sentence}. For the {} {}: {words}", carrier.kind, release.name),
            None => sentence,
        }
    })?;
    Ok((*storage, history))
}

impl Arguments {
    /// Asks for confirmation, unless --yes is set or nothing is written.
    fn confirm(&self, question: &str) -> anyhow::Result<bool> {
        if self.yes || self.dry_run {
            return Ok(true);
        }
        if !stdin().is_terminal() {
            anyhow::bail!(
                "confirmation is required and standard input is not a terminal, so nothing was written. \
                Use --yes"
            );
        }
        write!(stderr(), "{question} [y/N] ")?;
        stderr().flush()?;
        let mut line = String::new();
        stdin().lock().read_line(&mut line)?;
        Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
    }
}

/// The result, or the reason of a definite refusal.
///
/// # Errors
/// When the command could not run.
fn answer<T>(result: Result<T, UnstickError>) -> anyhow::Result<Result<T, String>> {
    match result {
        Ok(done) => Ok(Ok(done)),
        Err(error) if error.is_answer() => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// The next step as a line; empty if there is none.
fn next_line(next: Option<&str>) -> String {
    next.map(|next| format!("Next: {}\n", printable(next))).unwrap_or_default()
}

/// The failed checks, with the wording of the webhook.
fn failures(checks: &[RunbookCheck]) -> String {
    let failed = checks.iter().filter_map(|check| match &check.result {
        RunbookResult::Passed => None,
        RunbookResult::Failed(why) => Some(why.clone()),
        RunbookResult::Unknown(why) => Some(format!("{} could not be checked ({why})", check.name)),
    });
    failed.collect::<Vec<_>>().join("; ")
}

impl UnstickReport {
    fn new(release: &ReleaseRef) -> Self {
        Self {
            namespace: release.namespace.clone(),
            release: release.name.clone(),
            record: None,
            revision: None,
            status: None,
            checks: Vec::new(),
            outcome: UnstickResult::Refused,
            why: None,
            copies: Vec::new(),
            next: None,
        }
    }

    fn of(row: &ReleaseSummary) -> Self {
        Self {
            record: Some(row.record.clone()),
            revision: Some(row.revision),
            status: Some(row.status),
            ..Self::new(&row.release_ref())
        }
    }

    /// The result, or `None` after a definite refusal, whose reason is kept. Any other error means that the command could not run.
    fn accept<T>(&mut self, result: Result<T, UnstickError>) -> anyhow::Result<Option<T>> {
        Ok(answer(result)?.map_err(|why| self.why = Some(why)).ok())
    }

    fn not_confirmed(self) -> Self {
        Self { why: Some("the command was not confirmed".to_owned()), ..self }
    }

    /// No operation is pending. If the release is stuck for another reason, the next step is in its status. Otherwise there is no finding.
    fn without_stuck_record(mut self, row: &ReleaseSummary) -> Self {
        self.next = row.next.clone();
        if row.is_in_flight() {
            self.why = Some("the release is being uninstalled".to_owned());
        } else if row.stuck == Stuck::Yes {
            let wrong = row.problems.iter().map(|problem| problem.message.trim_end_matches('.'));
            self.why = Some(wrong.collect::<Vec<_>>().join("; "));
        } else {
            self.outcome = UnstickResult::NothingToDo;
        }
        self
    }

    fn text(&self) -> String {
        let Self { namespace, release, copies, .. } = self;
        let record = self.record.as_deref().unwrap_or_default();
        let next = next_line(self.next.as_deref());
        match self.outcome {
            UnstickResult::Refused => {
                let why = printable(self.why.as_deref().unwrap_or_default());
                format!("Nothing was changed: {why}.\n{next}")
            }
            UnstickResult::Unstuck => format!(
                "Deleted the record {record}. A copy is kept in Secret {}. To restore it: interlock unstick \
                 {namespace}/{release} --restore\n{next}",
                copies.join(", "),
            ),
            UnstickResult::WouldUnstick => {
                format!("All checks passed. Without --dry-run the record {record} would be deleted.\n")
            }
            UnstickResult::Restored => format!("Restored the record {record}.\n{next}"),
            UnstickResult::WouldRestore => format!("Without --dry-run the record {record} would be restored.\n"),
            UnstickResult::NothingToDo => {
                let (revision, status) = (self.revision.unwrap_or_default(), self.status.unwrap_or_default());
                format!("Nothing to do: revision {revision} of {namespace}/{release} is {status}.\n{next}")
            }
        }
    }
}
