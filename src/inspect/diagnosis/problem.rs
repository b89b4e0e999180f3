//! The problems of a release, in sentences.

use interlock_engine::release::{DecodeError, Entry, History, Status, Storage};
use interlock_engine::rules::wording::{MAX_ENUMERATED, enumerated, span, user};
use serde::Serialize;

use super::state::{ReleaseState, Stuck};
use crate::inspect::scan::FindingKind;

/// A problem of a release. It contains names, and nothing else from the content of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    #[serde(rename = "check")]
    pub kind: FindingKind,
    /// The object name of the record concerned.
    #[serde(skip)]
    pub record: String,
    /// One sentence.
    pub message: String,
}

/// The problems, the worst first.
pub(super) fn problems(state: &ReleaseState<'_>, newest: &Entry, stuck: Stuck) -> Vec<Problem> {
    let history = state.history;
    let at_rest = !newest.status.is_in_flight();
    let found = [
        stuck_operation(state, newest).filter(|_| !at_rest && stuck == Stuck::Yes),
        broken_records(state, newest).filter(|_| stuck == Stuck::Yes),
        several_deployed(state),
        interrupted(history).filter(|_| at_rest),
        failed(history, newest),
        not_deployed(state, newest),
    ];
    found.into_iter().flatten().collect()
}

fn problem(kind: FindingKind, entry: &Entry, message: String) -> Problem {
    Problem { kind, record: entry.name.clone(), message }
}

fn stuck_operation(state: &ReleaseState<'_>, newest: &Entry) -> Option<Problem> {
    let Entry { status, revision, stamps, .. } = newest;
    let (started, holder) = (newest.started()?, user(stamps.holder()));
    // The time, not the age, so that a repeated finding has the same text.
    let patience = state.patience(newest);
    let message = format!(
        "Revision {revision} has been {status} since {started:.0}, held by {holder}. It counts as stuck after {}.",
        span(patience)
    );
    Some(problem(FindingKind::StuckOperation, newest, message))
}

fn broken_records(state: &ReleaseState<'_>, newest: &Entry) -> Option<Problem> {
    let (name, _) = state.broken.iter().next()?;
    let sentences: Vec<_> =
        state.broken.iter().map(|(name, error)| format!("the record {name} {}", why(error))).collect();
    let broken = enumerated(sentences.into_iter(), MAX_ENUMERATED);
    let record = state.history.iter().find(|entry| entry.name == *name).unwrap_or(newest);
    let message = format!("{} can do nothing for the release: {broken}.", state.words().name());
    Some(problem(FindingKind::BrokenRecord, record, message))
}

fn why(error: &DecodeError) -> String {
    let DecodeError::MissingChunks(parts) = error else { return format!("cannot be decoded: {error}") };
    let verb = if parts.len() == 1 { "lacks its part" } else { "lacks its parts" };
    format!("{verb} {}", enumerated(parts.clone().into_iter(), MAX_ENUMERATED))
}

fn several_deployed(state: &ReleaseState<'_>) -> Option<Problem> {
    let deployed: Vec<_> = state.history.iter().filter(|entry| entry.status == Status::Deployed).collect();
    let [newest, _, ..] = deployed.as_slice() else {
        return None;
    };
    let mut revisions: Vec<_> = deployed.iter().map(|entry| entry.revision.to_string()).collect();
    revisions.reverse();
    let revisions = enumerated(revisions.into_iter(), MAX_ENUMERATED);
    let message = format!(
        "Several revisions are deployed: {revisions}. {} upgrades from {} and ignores the others.",
        state.words().client(),
        newest.revision
    );
    Some(problem(FindingKind::SeveralDeployed, newest, message))
}

fn interrupted(history: &History) -> Option<Problem> {
    let (entry, note) = history.interrupted()?;
    let message = format!(
        "The operation to {}, revision {}, was interrupted and has not been finished.",
        note.chart, note.revision
    );
    Some(problem(FindingKind::InterruptedOperation, entry, message))
}

fn failed(history: &History, newest: &Entry) -> Option<Problem> {
    if newest.status != Status::Failed {
        return None;
    }
    let below = deployed_below(history);
    Some(problem(FindingKind::FailedRelease, newest, format!("Revision {} failed; {below}.", newest.revision)))
}

/// Reports a status that no operation explains: the newer record was deleted, or somebody wrote the status by hand.
fn not_deployed(state: &ReleaseState<'_>, newest: &Entry) -> Option<Problem> {
    let is_left_behind = newest.status == Status::Uninstalled && state.storage == Storage::Index;
    if !matches!(newest.status, Status::Superseded | Status::Unknown) && !is_left_behind {
        return None;
    }
    let below = deployed_below(state.history);
    let message = format!("Revision {}, the newest, is {}; {below}.", newest.revision, newest.status);
    Some(problem(FindingKind::NotDeployed, newest, message))
}

fn deployed_below(history: &History) -> String {
    match history.newest_deployed() {
        Some(deployed) => format!("revision {} is still deployed", deployed.revision),
        None => "no revision is deployed".to_owned(),
    }
}
