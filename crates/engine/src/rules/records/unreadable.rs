//! A record that no client can read. Helm passes over it, acts on the one below, and then fails because the revision exists. OLM does
//! nothing for the release any more. Only its deletion helps.

use jiff::SignedDuration;

use super::case::RecordCase;
use super::recovery::unstick_command;
use super::standing::InFlight;
use crate::facts::RecordVersion;
use crate::release::{DecodeError, Entry, History};
use crate::rules::check::{Checked, Refusal, Step, Way, WaysOut};
use crate::rules::undecided::Undecided;
use crate::rules::wording;

/// The maximum time between the index of a record and its parts. OLM takes tenths of a second.
pub const PARTS_FOLLOW_WITHIN: SignedDuration = SignedDuration::from_secs(30);

/// The refusal of a write that starts from an older record because no client can read the newest one; `None` if one can.
/// `refused` says what is refused.
pub(super) fn passed_over(case: &RecordCase<'_>, newest: &Entry, refused: &str) -> Result<Option<Refusal>, Undecided> {
    let Some(error) = case.why_unreadable(&newest.name)? else { return Ok(None) };
    let (name, revision) = (case.words().client(), newest.revision);
    let sentence = format!(
        "Cannot {refused} of {}: nobody can read the record of revision {revision}, the newest ({error}), and {name} passes \
         over it.",
        case.subject()
    );
    let ways_out = Way::from(delete(case, &newest.name, &error)).then(Step::retry("try again"));
    Ok(Some(Refusal::new(sentence, ways_out)))
}

/// The refusal of its deletion, because it may be about to be written again: it is fresh, or an operation is in flight. Its holder
/// may delete it, and everybody once it is stale.
pub(super) fn deletion(
    case: &RecordCase<'_>,
    side: &RecordVersion<'_>,
    history: &History,
    error: &DecodeError,
) -> Checked {
    let newest = history.newest().filter(|newest| newest.status.is_in_flight());
    if newest.is_none() && matches!(error, DecodeError::MissingChunks(_)) {
        let written = side.stamps().ended();
        if written.is_none_or(|written| case.now.duration_since(written) >= PARTS_FOLLOW_WITHIN) {
            return Ok(None);
        }
    }
    let writing = newest.map_or_else(|| InFlight::of_side(side), InFlight::of_entry);
    if case.may_end(&writing)? {
        return Ok(None);
    }
    let state = match newest {
        Some(newest) => format!("the release is {}", case.state(newest)),
        None => format!("{} may still be writing it", wording::user(writing.holder())),
    };
    let sentence = format!("Cannot delete the record of {}: {error}, and {state}.", case.subject());
    let wait = WaysOut::from(Step::wait("wait until the operation ends"));
    // Unsticking deletes the record of the operation in flight first.
    let delete = match newest {
        Some(_) => by_hand(case, &case.id.object),
        None => delete(case, &case.id.object, error),
    };
    Ok(Some(Refusal::new(sentence, wait.when("if nobody can read it then, or the operation is stuck", delete))))
}

/// A record that lacks parts is not worth a copy.
fn delete(case: &RecordCase<'_>, object: &str, error: &DecodeError) -> Step {
    if matches!(error, DecodeError::MissingChunks(_)) {
        return by_hand(case, object);
    }
    Step::run("run {}, which keeps a copy of that record and deletes it", unstick_command(case.words()))
}

fn by_hand(case: &RecordCase<'_>, object: &str) -> Step {
    Step::run("run {}", case.words().delete_command(&[object]))
}
