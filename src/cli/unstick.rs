//! `interlock unstick`: the on-call's runbook for a stuck release.

use std::io::{BufRead, IsTerminal, Write, stderr, stdin, stdout};

use anyhow::Context;
use kube::Client;
use serde::Serialize;

use super::cluster::{ClusterArguments, server_time};
use super::policies_in_force::InForce;
use super::status::{StorageArgument, lines};
use super::table::printable;
use super::{Finding, Output, break_glass};
use crate::engine::release::{History, ReleaseRef, Status, Storage};
use crate::engine::rules::{RunbookCheck, RunbookResult};
use crate::inspect::status::{Row, View, forward, helm};
use crate::inspect::unstick::{Copied, Pending, UnstickError};

/// Take the record of a dead operation out of the way, after the checks of the runbook
///
/// Makes every check that the rule pending-recovery makes, and looks for Jobs of hooks that still run; refuses while one
/// fails. Keeps a copy of the pending record in a Secret beside it, deletes just that record, if nobody has touched it since
/// it was checked, and says how to roll forward. Where the webhook is on, it judges the deletion as well. Needs to get and
/// list the records' Secrets or ConfigMaps, to delete them, to create Secrets, and to get the workloads of the release and
/// the Jobs of its hooks. Exits with 1 where it refuses, and with 2 where it could not find out.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// NAMESPACE/NAME of the release, as `interlock status` names it
    #[arg(value_name = "NAMESPACE/RELEASE", value_parser = break_glass::release)]
    release: ReleaseRef,
    /// Put the copy that was kept back, and take the copy away
    #[arg(long)]
    restore: bool,
    /// RunbookCheck everything, let the API server check the writes, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Where the record is, if several storages have a pending one of this name
    #[arg(long, value_enum, conflicts_with = "restore")]
    storage: Option<StorageArgument>,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// How to print
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    #[command(flatten)]
    policies: InForce,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    /// A check does not hold, or a webhook said no.
    Refused,
    /// The record is gone.
    Unstuck,
    /// It would be.
    WouldUnstick,
    /// It is back.
    Restored,
    /// It would be.
    WouldRestore,
    /// No operation is pending.
    NothingToDo,
}

/// All of it, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Account {
    namespace: String,
    release: String,
    record: Option<String>,
    revision: Option<u64>,
    status: Option<&'static str>,
    checks: Vec<RunbookCheck>,
    outcome: Outcome,
    /// Why it was refused.
    why: Option<String>,
    /// The Secrets with the copy.
    copies: Vec<String>,
    /// What to do next.
    next: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let account = runtime.block_on(carry_out(arguments))?;
    match arguments.output {
        Output::Json => writeln!(stdout(), "{}", serde_json::to_string_pretty(&account)?)?,
        Output::Table => write!(stdout(), "{}", account.told())?,
    }
    Ok(if account.outcome == Outcome::Refused { Finding::Something } else { Finding::Nothing })
}

async fn carry_out(arguments: &Arguments) -> anyhow::Result<Account> {
    let config = arguments.cluster.found().await?;
    let client = Client::try_from(config).context("failed to make a client for the cluster")?;
    let now = server_time(&client).await?;
    let policies = arguments.policies.read(&client).await?;
    let view = View::open(&client, &policies).await;
    let release = &arguments.release;
    if arguments.restore {
        return restore(arguments, &view).await;
    }
    let found = view.releases(release).await?;
    let (storage, history) = chosen(arguments, &found)?;
    let row = view.row(release, storage, history, now).await;
    let row = row.with_context(|| format!("there is no release {release}"))?;
    let mut account = Account::of(&row);
    let Some(pending) = Pending::read(&view, release, storage, history).await.map_err(anyhow::Error::msg)? else {
        return Ok(account.at_rest(&row));
    };
    account.checks = pending.checks(&view, now).await.map_err(anyhow::Error::msg)?;
    if arguments.output == Output::Table {
        let Row { revision, status, .. } = row;
        let checks = lines::checks(&account.checks, lines::colours());
        write!(stdout(), "{release}: {status}, revision {revision}\n{checks}")?;
    }
    if account.checks.iter().any(|check| !check.passed()) {
        account.why = Some(failures(&account.checks));
        account.next = row.next.filter(|next| !next.starts_with("interlock unstick"));
        return Ok(account);
    }
    if !arguments.dry_run {
        let question = format!("Delete the record {} (a copy is kept)?", pending.record());
        if !arguments.agreed(&question)? {
            account.why = Some("nobody said yes".to_owned());
            return Ok(account);
        }
    }
    match pending.unstick(&view, arguments.dry_run).await {
        Ok(copies) => {
            account.outcome = if arguments.dry_run { Outcome::WouldUnstick } else { Outcome::Unstuck };
            account.copies = copies;
            account.next = Some(forward(&row));
        }
        Err(error) => account.why = Some(answer(error)?),
    }
    Ok(account)
}

async fn restore(arguments: &Arguments, view: &View<'_>) -> anyhow::Result<Account> {
    let release = &arguments.release;
    let mut account = Account::new(release);
    let found = match Copied::find(view, release).await {
        Ok(found) => found,
        Err(error) => {
            account.why = Some(answer(error)?);
            return Ok(account);
        }
    };
    let found = found.with_context(|| format!("no copy of a record of release {release} is kept in its namespace"))?;
    account.record = Some(found.record().to_owned());
    if !arguments.dry_run && !arguments.agreed(&format!("Put the record {} back?", found.record()))? {
        account.why = Some("nobody said yes".to_owned());
        return Ok(account);
    }
    match found.restore(view, arguments.dry_run).await {
        Ok(restored) => {
            account.outcome = if arguments.dry_run { Outcome::WouldRestore } else { Outcome::Restored };
            account.revision = Some(restored.revision);
            account.copies = restored.copies;
            account.next = Some(format!("interlock status {release}"));
        }
        Err(error) => account.why = Some(answer(error)?),
    }
    Ok(account)
}

/// What the API server, or the state of the release, said; another error is that the command could not run.
fn answer(error: UnstickError) -> anyhow::Result<String> {
    if error.is_answer() { Ok(error.to_string()) } else { Err(error.into()) }
}

/// The storage that has a pending record, or the only one that has records.
fn chosen<'f>(arguments: &Arguments, found: &'f [(Storage, History)]) -> anyhow::Result<(Storage, &'f History)> {
    let release = &arguments.release;
    let wanted = arguments.storage.map(Storage::from);
    let found: Vec<_> = found.iter().filter(|(storage, _)| wanted.is_none_or(|wanted| wanted == *storage)).collect();
    let is_pending = |history: &History| history.newest().is_some_and(|newest| newest.status.is_pending());
    let pending: Vec<_> = found.iter().filter(|(_, history)| is_pending(history)).collect();
    match (pending.as_slice(), found.first()) {
        ([(storage, history)], _) | ([], Some((storage, history))) => Ok((*storage, history)),
        ([], None) => {
            let namespace = &release.namespace;
            anyhow::bail!(
                "there is no release {release}: no Secret or ConfigMap in namespace {namespace} is a record of it"
            )
        }
        _ => anyhow::bail!("several storages have a pending record of release {release}: choose one with --storage"),
    }
}

impl Arguments {
    /// Asks, where that was not answered beforehand.
    fn agreed(&self, question: &str) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        if !stdin().is_terminal() {
            anyhow::bail!("nobody can be asked here, and nothing was written: say --yes, or run it on a terminal");
        }
        write!(stderr(), "{question} [y/N] ")?;
        stderr().flush()?;
        let mut line = String::new();
        stdin().lock().read_line(&mut line)?;
        Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
    }
}

/// The checks that fail, as the webhook would say them.
fn failures(checks: &[RunbookCheck]) -> String {
    let failed = checks.iter().filter_map(|check| match &check.result {
        RunbookResult::Passed => None,
        RunbookResult::Failed(why) => Some(why.clone()),
        RunbookResult::Unknown(why) => Some(format!("{} could not be checked ({why})", check.name)),
    });
    failed.collect::<Vec<_>>().join("; ")
}

impl Account {
    fn new(release: &ReleaseRef) -> Self {
        Self {
            namespace: release.namespace.clone(),
            release: release.name.clone(),
            record: None,
            revision: None,
            status: None,
            checks: Vec::new(),
            outcome: Outcome::Refused,
            why: None,
            copies: Vec::new(),
            next: None,
        }
    }

    fn of(row: &Row) -> Self {
        Self {
            record: Some(row.record.clone()),
            revision: Some(row.revision),
            status: Some(row.status),
            ..Self::new(&row.release_ref())
        }
    }

    /// No operation is pending: an uninstall that died has another way out, and everything else is no finding.
    fn at_rest(mut self, row: &Row) -> Self {
        self.next = row.next.clone();
        if row.status == Status::Uninstalling.as_str() {
            let uninstall = helm(row, &format!("uninstall {}", row.release));
            self.why = Some(format!("it is being uninstalled, and {uninstall} goes on where that ended"));
        } else {
            self.outcome = Outcome::NothingToDo;
        }
        self
    }

    fn told(&self) -> String {
        let Self { namespace, release, copies, .. } = self;
        let record = self.record.as_deref().unwrap_or_default();
        let next = self.next.as_deref().map(|next| format!("Next: {}\n", printable(next))).unwrap_or_default();
        match self.outcome {
            Outcome::Refused => {
                let why = printable(self.why.as_deref().unwrap_or_default());
                format!("Nothing was changed: {why}.\n{next}")
            }
            Outcome::Unstuck => format!(
                "Deleted the record {record}. A copy is kept in Secret {}; `interlock unstick {namespace}/{release} \
                 --restore` puts it back.\nRoll forward: {}\n",
                copies.join(", "),
                printable(self.next.as_deref().unwrap_or_default()),
            ),
            Outcome::WouldUnstick => {
                format!("Every check holds. Without --dry-run the record {record} would be deleted.\n")
            }
            Outcome::Restored => format!("The record {record} is back.\n{next}"),
            Outcome::WouldRestore => format!("Without --dry-run the record {record} would be put back.\n"),
            Outcome::NothingToDo => {
                let (revision, status) = (self.revision.unwrap_or_default(), self.status.unwrap_or_default());
                format!("Nothing to do: revision {revision} of {namespace}/{release} is {status}.\n{next}")
            }
        }
    }
}
