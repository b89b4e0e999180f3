//! `foreign-edit-in-transition`: while an operation is in flight, only its holder changes what the release declares.
//!
//! Allowed: what helm writes for alice during alice's upgrade; a manager's drift correction.
//! Denied: bob's `kubectl set image`, `scale` or `delete` meanwhile.

use super::case::{Disturbance, ObjectCase};
use super::manual_edit::declared;
use crate::engine::rules::Refusal;

const WAY_OUT: &str =
    "Wait until the operation ends; then change it through the release, or ask for a ReleaseOverride.";

pub(crate) fn refusal(case: &ObjectCase<'_>, lost: &Disturbance) -> Refusal {
    let what = if lost.fields.is_empty() { format!("it is declared by {}", lost.declarer) } else { declared(lost) };
    let sentence = format!("{} is managed by {}: {what}.", case.subject(), lost.owner);
    Refusal::new(sentence, WAY_OUT).at_all(lost)
}
