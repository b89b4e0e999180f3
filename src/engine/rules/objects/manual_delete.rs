//! `manual-delete`: an object that a release declares goes through the release.
//!
//! Allowed: `helm uninstall`; deleting what an uninstall kept, or what a newer revision has left behind.
//! Denied: `kubectl delete deployment` of a live release.

use super::case::{Disturbance, ObjectCase};
use crate::engine::rules::Refusal;

const WAY_OUT: &str = "Remove it through the release, or ask for a ReleaseOverride.";

pub(crate) fn refusal(case: &ObjectCase<'_>, lost: &Disturbance) -> Refusal {
    let sentence = format!("{} is managed by {}, and declared by {}.", case.subject(), lost.owner, lost.declarer);
    Refusal::new(sentence, WAY_OUT)
}
