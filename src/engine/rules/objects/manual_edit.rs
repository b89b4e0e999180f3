//! `manual-edit`: a field that a release declares changes through the release.
//!
//! Declared is what stands in the manifest of the newest deployed record, or of the one in flight, and the marks of
//! ownership. Lists are compared by the keys of their items, values by what they mean, and setting a field back to its
//! declared value is no change.
//!
//! Allowed: `kubectl rollout restart`; a label `team`; an injected sidecar.
//! Denied: `kubectl set image` of a container of the chart.

use super::case::{Disturbance, ObjectCase};
use crate::engine::rules::Refusal;
use crate::engine::rules::wording::{ENUMERATED, fields};

pub(crate) const WAY_OUT: &str = "Change it through the release, or ask for a ReleaseOverride.";

pub(crate) fn refusal(case: &ObjectCase<'_>, lost: &Disturbance) -> Refusal {
    let sentence = format!("{} is managed by {}: {}.", case.subject(), lost.owner, declared(lost));
    Refusal::new(sentence, WAY_OUT).at_all(lost)
}

/// `spec.replicas is declared by the chart`.
pub(crate) fn declared(lost: &Disturbance) -> String {
    let verb = if lost.fields.len() == 1 { "is" } else { "are" };
    format!("{} {verb} declared by {}", fields(&lost.fields, ENUMERATED), lost.declarer)
}
