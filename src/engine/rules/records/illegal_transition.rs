//! `illegal-transition`: the status of a record changes only along edges that some client makes.
//!
//! Allowed: `pending-upgrade` to `deployed` on the newest record, `failed` to `superseded`, any status to itself.
//! Denied: `superseded` to `deployed` (the failure path of an upgrade that was overtaken by a rollback; refusing it is
//! harmless to helm and keeps one record deployed), `pending-upgrade` to `deployed` under a higher revision.

use super::case::Case;
use crate::engine::facts::RecordChange;
use crate::engine::release::Status;
use crate::engine::release::status::{Guard, transition};
use crate::engine::rules::{Finding, Refusal};

pub(crate) fn check(case: &Case<'_>) -> Finding {
    let RecordChange::Updated { before, after, .. } = case.change else {
        return Ok(None);
    };
    let (Some(from), Some(to)) = (before.status(), after.status()) else {
        return Ok(None);
    };
    let why = match transition(Some(from), Some(to)) {
        Guard::NewestRecord => {
            let Some(revision) = case.target.revision else {
                return Ok(None);
            };
            let Some(above) = case.history()?.above(revision).next() else {
                return Ok(None);
            };
            format!("the release has moved on to {}", case.state(above))
        }
        Guard::NewerRollback => {
            let Some(revision) = case.target.revision else {
                return Ok(None);
            };
            let rolled_over = case.history()?.above(revision).any(|entry| entry.status == Status::PendingRollback);
            if rolled_over {
                return Ok(None);
            }
            "no rollback over it is pending".to_owned()
        }
        Guard::Never => "no client of Helm does that".to_owned(),
        Guard::Free | Guard::Unlock | Guard::NothingInFlight | Guard::MappedApis | Guard::Deletion => return Ok(None),
    };
    let sentence = format!("Cannot change {} from {from} to {to}: {why}.", case.subject());
    let way_out = "Look at `helm history`; to change the release, start a new upgrade or rollback.";
    Ok(Some(Refusal::new(sentence, way_out).at("/metadata/labels/status")))
}
