//! The rule `illegal-transition`.
//!
//! `superseded` to `deployed` is the failure path of an upgrade that was overtaken by a rollback: refusing that write is harmless to
//! helm and keeps one record deployed.

use super::case::RecordCase;
use crate::engine::facts::RecordChange;
use crate::engine::release::Status;
use crate::engine::release::status::{Guard, transition};
use crate::engine::rule::{FORBIDDEN, FailsClosed, Mode, Specification};
use crate::engine::rules::check::{Check, Checked, Refusal, Rule};

/// The rule `illegal-transition`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "illegal-transition",
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        summary: "The status of a record changes only along transitions that some client makes.",
        why: "When an upgrade was overtaken by a rollback, its failure path writes its old copy back: a superseded record \
              becomes deployed again.",
        allowed: "pending-upgrade to deployed on the newest record; failed to superseded; any status to itself.",
        refused: "superseded to deployed; pending-upgrade to deployed below a higher revision.",
        way_out: "See `helm history`. To change the release, start a new upgrade or rollback.",
        settings: &[],
    },
    checks: &[Check::Record(check)],
};

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let RecordChange::Updated { before, after, .. } = case.change else {
        return Ok(None);
    };
    let (Some(from), Some(to)) = (before.status(), after.status()) else {
        return Ok(None);
    };
    let why = match transition(Some(from), Some(to)) {
        Guard::Newest => {
            let Some(revision) = case.target.revision else {
                return Ok(None);
            };
            let Some(above) = case.history()?.above(revision).next() else {
                return Ok(None);
            };
            format!("the release has a newer record ({})", case.state(above))
        }
        Guard::NewerRollback => {
            let Some(revision) = case.target.revision else {
                return Ok(None);
            };
            let rolled_over = case.history()?.above(revision).any(|entry| entry.status == Status::PendingRollback);
            if rolled_over {
                return Ok(None);
            }
            "no rollback over this revision is pending".to_owned()
        }
        Guard::Never => "no Helm client does this".to_owned(),
        Guard::Free | Guard::Unlock | Guard::NothingInFlight | Guard::MappedApis | Guard::Deletion => return Ok(None),
    };
    let sentence = format!("Cannot change the status of {} from {from} to {to}: {why}.", case.subject());
    let way_out = "See `helm history`. To change the release, start a new upgrade or rollback.";
    Ok(Some(Refusal::new(sentence, way_out).at("/metadata/labels/status")))
}
