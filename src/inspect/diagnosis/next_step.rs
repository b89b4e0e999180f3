//! The next step for a release: a command to paste, or a time to wait for.

use std::fmt;

use interlock_engine::owners::{Driver, Finish, GoesOn, ReleaseOwner, UNLOCKS};
use interlock_engine::release::stamps::INTERRUPTED;
use interlock_engine::release::{DecodeError, Entry, ReleaseRef, Status};
use interlock_engine::rules::RunbookCheckName;
use interlock_engine::rules::records::recovery::{RecordCondition, StuckOperation, WayOn, unstick_command};
use interlock_engine::rules::wording::command;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::problem::Problem;
use super::state::{ReleaseState, Stuck, VALUES};
use crate::inspect::scan::FindingKind;
use crate::inspect::wait::FreezeInForce;

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// A command in shell syntax. `CHART` stands for a chart that the reader must name.
    Run { command: String, why: String },
    /// A wait until a time by the API server's clock; `None` if the time is unknown.
    Wait { until: Option<Timestamp>, why: String, now: Timestamp },
}

impl fmt::Display for NextStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run { command, .. } => out.write_str(command),
            Self::Wait { until: None, .. } => out.write_str("wait"),
            Self::Wait { until: Some(until), now, .. } => {
                let [until, now] = [until, now].map(|time| time.to_zoned(TimeZone::UTC));
                let format = if until.date() == now.date() { "%H:%M UTC" } else { "%Y-%m-%d %H:%M UTC" };
                write!(out, "wait until {}", until.strftime(format))
            }
        }
    }
}

impl NextStep {
    /// A sentence with the command.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Run { command, why } => format!("{why}: `{command}`"),
            Self::Wait { why, .. } => format!("{why}: {self}"),
        }
    }

    /// The reason for this step.
    #[must_use]
    pub fn why(&self) -> &str {
        let (Self::Run { why, .. } | Self::Wait { why, .. }) = self;
        why
    }

    /// The end of the wait.
    #[must_use]
    pub fn wait_until(&self) -> Option<Timestamp> {
        match self {
            Self::Run { .. } => None,
            Self::Wait { until, .. } => *until,
        }
    }

    /// Puts another reason before the reason of the step.
    pub(super) fn after(mut self, reason: &str) -> Self {
        let (Self::Run { why, .. } | Self::Wait { why, .. }) = &mut self;
        *why = format!("{reason}. {why}");
        self
    }

    fn run(command: String, why: impl Into<String>) -> Self {
        Self::Run { command, why: why.into() }
    }
}

/// The next step for a release with these problems; `None` if there is nothing to do.
pub(super) fn next_step(
    state: &ReleaseState<'_>,
    newest: &Entry,
    owner: &ReleaseOwner,
    (stuck, stuck_from): (Stuck, Option<Timestamp>),
    problems: &[Problem],
) -> Option<NextStep> {
    let wait = |why: &str| Some(NextStep::Wait { until: stuck_from, why: why.to_owned(), now: state.now });
    if newest.status.is_in_flight() {
        return match stuck {
            Stuck::Yes => Some(out_of_stuck(state, newest)),
            Stuck::Unknown => wait("The HelmReleases cannot be read, and their controller may be at work until then"),
            Stuck::No if state.failed(RunbookCheckName::NoLease).is_some() => Some(NextStep::run(
                wait_command(state, "free"),
                "nelm or werf holds a live lease of the release: wait for it",
            )),
            Stuck::No if stuck_from.is_none() => wait("The start of the operation is unknown"),
            Stuck::No => wait("The operation may still be running"),
        };
    }
    if !state.broken.is_empty() && stuck == Stuck::No {
        return wait(&format!("{} may still be writing the record", state.words().client()));
    }
    let step = match problems.first()?.kind {
        _ if state.is_live_in_sibling => delete_remains(state),
        FindingKind::BrokenRecord => delete_broken(state),
        FindingKind::SeveralDeployed => one_deployed(state)?,
        FindingKind::InterruptedOperation => finish(state, newest, owner),
        FindingKind::FailedRelease => after_failure(state, newest, owner),
        FindingKind::NotDeployed => deploy(state, newest, owner),
        _ => return None,
    };
    Some(in_a_freeze(state, step))
}

/// Replaces a step that starts an operation, if a freeze stops the reader. A freeze stops nothing else.
fn in_a_freeze(state: &ReleaseState<'_>, step: NextStep) -> NextStep {
    match state.freeze.filter(|_| starts_an_operation(&step)) {
        Some(freeze) => out_of_freeze(state.release, freeze, state.now),
        None => step,
    }
}

/// The next step for a user whom a freeze stops.
pub(crate) fn out_of_freeze(release: &ReleaseRef, freeze: &FreezeInForce, now: Timestamp) -> NextStep {
    let FreezeInForce { name, until, .. } = freeze;
    if until.is_some() {
        let why = format!("The freeze {name} stops you from starting an operation");
        return NextStep::Wait { until: *until, why, now };
    }
    let (release, reason) = (release.to_string(), format!("the release cannot wait for the end of the freeze {name}"));
    let words = ["interlock", "override", &release, "--rule", "freeze", "--for", "15m", "--reason", &reason];
    NextStep::run(command(&words), format!("The freeze {name} has no end, and an override opens it"))
}

/// Whether the reader starts an operation with this step.
pub(super) fn starts_an_operation(step: &NextStep) -> bool {
    let NextStep::Run { command, .. } = step else { return false };
    let last = command.rsplit(" | ").next().unwrap_or(command);
    last.strip_prefix("HELM_DRIVER=configmap ").unwrap_or(last).starts_with("helm ")
}

fn out_of_stuck(state: &ReleaseState<'_>, newest: &Entry) -> NextStep {
    if let Some(why) =
        state.failed(RunbookCheckName::NoHookRuns).filter(|_| state.condition() == RecordCondition::Unknown)
    {
        let command = wait_for_hook(state, why);
        return NextStep::run(command, "A hook of the operation may still be at work: wait for it");
    }
    let stuck = StuckOperation {
        words: state.words(),
        history: state.history,
        newest,
        settings: &state.policy.recovery,
        condition: state.condition(),
        is_opened: state.is_opened,
        is_live_in_sibling: state.is_live_in_sibling,
        driver: state.driver(newest).filter(|driver| !driver.suspended),
    };
    let way_on = stuck.way_on();
    NextStep::run(way_on.command(&stuck), why(state, way_on, stuck.condition))
}

fn why(state: &ReleaseState<'_>, way_on: WayOn<'_>, condition: RecordCondition) -> String {
    let failed = |name| state.failed(name).unwrap_or_default();
    let unfit = match condition {
        RecordCondition::Unhealthy => failed(RunbookCheckName::Healthy),
        RecordCondition::Unreadable => failed(RunbookCheckName::PendingBody),
        RecordCondition::Sound | RecordCondition::Unknown => "",
    };
    match way_on {
        WayOn::Reconcile(_) => UNLOCKS.to_owned(),
        WayOn::Unstick if !unfit.is_empty() => format!("You may delete the record, although {unfit}"),
        WayOn::Unstick if condition == RecordCondition::Sound => {
            "Every check passes: delete the record of the dead operation, of which a copy is kept".to_owned()
        }
        WayOn::Unstick => {
            "Check the workloads, and delete the record of the dead operation if they are healthy".to_owned()
        }
        WayOn::RollBack(revision) if !unfit.is_empty() => {
            format!("{unfit}, so the record must stay: go back to revision {revision}")
        }
        WayOn::RollBack(revision) => format!("No revision is deployed: go back to revision {revision}"),
        WayOn::Uninstall if state.history.newest().is_some_and(|newest| newest.status == Status::Uninstalling) => {
            "The uninstall continues where it stopped".to_owned()
        }
        WayOn::Uninstall => "No revision was ever deployed: take away what there is, then install again".to_owned(),
        WayOn::Delete => never_uninstalls(state),
        WayOn::Override => format!("{unfit}, so only an override opens the deletion of the record"),
    }
}

fn wait_command(state: &ReleaseState<'_>, until: &str) -> String {
    let release = state.release.to_string();
    command(&["interlock", "wait", &release, "--until", until, "--timeout", "15m"])
}

/// `why` names the Job: `Job shop/web-migrate of a hook is still running ...`.
fn wait_for_hook(state: &ReleaseState<'_>, why: &str) -> String {
    let job = why.strip_prefix("Job ").and_then(|rest| rest.split(' ').next()).and_then(|job| job.split_once('/'));
    let (namespace, name) = job.unwrap_or((&state.release.namespace, &state.release.name));
    let job = format!("job/{name}");
    command(&["kubectl", "wait", &job, "-n", namespace, "--for=condition=Complete", "--timeout=15m"])
}

/// Deletes broken records. Their owner continues from the remaining records.
fn delete_broken(state: &ReleaseState<'_>) -> NextStep {
    let lacks_parts = |error: &DecodeError| matches!(error, DecodeError::MissingChunks(_));
    if !state.broken.values().all(lacks_parts) {
        let why = "Nobody can read the record: delete it, of which a copy is kept";
        return NextStep::run(unstick_command(state.words()), why);
    }
    let names: Vec<&str> = state.broken.keys().map(String::as_str).collect();
    let record = if names.len() == 1 { "the record" } else { "the records" };
    NextStep::run(
        state.words().delete_command(&names),
        format!("Nobody can read {record} any more, and {} goes on without", state.words().name()),
    )
}

/// Deletes the records of an installation over a release that has its live records in Helm's other storage. The objects belong to
/// that release. The newest record is deleted last, because Interlock refuses the deletion of a record that the next upgrade would
/// start from.
fn delete_remains(state: &ReleaseState<'_>) -> NextStep {
    let mut names: Vec<&str> = state.history.iter().map(|entry| entry.name.as_str()).collect();
    names.reverse();
    let other = state.storage.sibling().unwrap_or(state.storage).kind();
    let why = format!("The release has its live records in {other}s, and these are in the way: delete them");
    NextStep::run(state.words().delete_command(&names), why)
}

fn one_deployed(state: &ReleaseState<'_>) -> Option<NextStep> {
    let words = state.words();
    let mut deployed = state.history.iter().filter(|entry| entry.status == Status::Deployed);
    let newest = deployed.next()?;
    Some(if !words.has_commands() {
        let older: Vec<&str> = deployed.map(|entry| entry.name.as_str()).collect();
        let (name, revision) = (words.name(), newest.revision);
        let why = format!("{name} keeps the objects of revision {revision} up to date: delete the older records");
        NextStep::run(words.delete_command(&older), why)
    } else {
        let why = "A rollback to the newest of them applies its objects and supersedes the others";
        NextStep::run(words.rollback_command(newest.revision), why)
    })
}

/// Finishes an operation whose record was deleted or unlocked, before any other version.
fn finish(state: &ReleaseState<'_>, newest: &Entry, owner: &ReleaseOwner) -> NextStep {
    let (record, chart) =
        state.history.interrupted().map(|(entry, note)| (entry.name.clone(), note.chart)).unwrap_or_default();
    if !state.words().has_commands() && newest.status == Status::Deployed && state.chart == Some(&chart) {
        let words = state.words();
        let why = format!("{chart} is deployed, so {} has nothing to finish: remove the note", words.name());
        return NextStep::run(words.remove_annotation_command(&record, INTERRUPTED), why);
    }
    let why = format!("{chart} was interrupted: finish it before any other version");
    match owner.finish(&chart, &state.release.name, driver_at_work(state, newest)) {
        Finish::Alone => NextStep::run(wait_command(state, "deployed"), why),
        Finish::Command(command) => NextStep::run(command, why),
        Finish::Upgrade(version) => match values_of_interrupted(state) {
            Some(values) => NextStep::run(
                state.words().upgrade_command_with(version.as_deref(), &values),
                format!("{why}, with its own values"),
            ),
            None => NextStep::run(
                state.words().upgrade_command(version.as_deref()),
                format!("{why}. Give it its values: helm takes those of the deployed revision"),
            ),
        },
    }
}

/// The command that prints the values of the interrupted operation: from its record, or from the copy of its record.
fn values_of_interrupted(state: &ReleaseState<'_>) -> Option<String> {
    let (_, note) = state.history.interrupted()?;
    if state.history.iter().any(|entry| entry.revision == note.revision) {
        return Some(state.words().values_command(note.revision));
    }
    let ReleaseRef { namespace, .. } = state.release;
    let template = format!("go-template={{{{.data.{VALUES} | base64decode}}}}");
    Some(command(&["kubectl", "get", "secret", state.copy?, "-n", namespace, "-o", &template]))
}

fn never_uninstalls(state: &ReleaseState<'_>) -> String {
    format!("{} never uninstalls, and goes on once the record is deleted", state.words().name())
}

fn after_failure(state: &ReleaseState<'_>, newest: &Entry, owner: &ReleaseOwner) -> NextStep {
    if let Some(step) = by_its_owner(state, newest, owner) {
        return step;
    }
    let words = state.words();
    match state.good().filter(|_| !state.policy.recovery.roll_forward_only) {
        Some(good) => {
            let why = format!("Revision {} failed: go back to revision {}", newest.revision, good.revision);
            NextStep::run(words.rollback_command(good.revision), why)
        }
        None => {
            let why = format!("Revision {} failed: upgrade to a chart that fixes it", newest.revision);
            NextStep::run(words.upgrade_command(None), why)
        }
    }
}

fn deploy(state: &ReleaseState<'_>, newest: &Entry, owner: &ReleaseOwner) -> NextStep {
    let words = state.words();
    if !words.has_commands() && newest.status == Status::Uninstalled {
        return NextStep::run(words.delete_command(&[&newest.name]), never_uninstalls(state));
    }
    if let Some(step) = by_its_owner(state, newest, owner) {
        return step;
    }
    match state.good() {
        Some(good) => {
            let why = format!("Deploy revision {} again", good.revision);
            NextStep::run(words.rollback_command(good.revision), why)
        }
        None => NextStep::run(words.remove_command(), "No revision was ever deployed: take away what there is"),
    }
}

/// The step if the owner of the release retries by itself.
fn by_its_owner(state: &ReleaseState<'_>, newest: &Entry, owner: &ReleaseOwner) -> Option<NextStep> {
    Some(match owner.goes_on(driver_at_work(state, newest))? {
        GoesOn::Alone(why) => NextStep::run(wait_command(state, "deployed"), why),
        GoesOn::After(command, why) => NextStep::run(command, why),
    })
}

fn driver_at_work<'a>(state: &ReleaseState<'a>, newest: &Entry) -> Option<&'a Driver> {
    state.driver(newest).filter(|driver| !driver.suspended)
}
