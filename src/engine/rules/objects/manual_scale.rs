//! `manual-scale`: a number of replicas that a release declares changes through the release.
//!
//! Allowed: scaling where the chart leaves the number to others; an autoscaler's scaling.
//! Denied: `kubectl scale` of a Deployment whose chart says how many.

use super::case::{Disturbance, ObjectCase};
use super::manual_edit;
use crate::engine::rules::Refusal;

pub(crate) fn refusal(case: &ObjectCase<'_>, lost: &Disturbance) -> Refusal {
    manual_edit::refusal(case, lost)
}
