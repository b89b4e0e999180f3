//! The rule `resume-interrupted`.
//!
//! An upgrade from one version to the next assumes that the previous one is complete. If the record of a dead upgrade is deleted
//! or unlocked, its objects are only partly applied, and Helm keeps no trace of that. OLM would choose its next step from the
//! last deployed version, and skip the interrupted one. So a note keeps the interrupted version: on the newest remaining record,
//! or on the unlocked, failed record. The note is void after the next successful operation. A person can also remove it.

use super::case::RecordCase;
use crate::facts::RecordChange;
use crate::owners;
use crate::release::Status;
use crate::release::stamps::INTERRUPTED;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule, Step, Way, WaysOut};

/// The rule `resume-interrupted`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "resume-interrupted",
        owners: owners::OF_RECORDS,
        mode: Mode::Warn,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Create, Operation::Update], kinds: &[] },
        summary: "An interrupted operation is finished before the next version is tried.",
        why: "A version whose upgrade was interrupted may have migrated half of its data, and the next version assumes \
              that the migration is complete.",
        allowed: "The interrupted version again; a rollback; any version after either succeeded, or after a person removed \
              the note.",
        refused: "An upgrade to version 3 after the upgrade to version 2 was killed and its record deleted or unlocked.",
        way_out: "Upgrade to the interrupted version first, then to the next one. Where an object declares the release, pin that version in it.",
        settings: &[],
    },
    checks: &[Check::Record(check)],
};

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let RecordChange::Created(side) = case.change else {
        return Ok(None);
    };
    if side.status() != Some(Status::PendingUpgrade) || case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    let (Some((entry, interrupted)), Some(chart)) = (case.history()?.interrupted(), side.chart()) else {
        return Ok(None);
    };
    if interrupted.chart == chart {
        return Ok(None);
    }
    let sentence = format!(
        "Cannot upgrade {} to {chart}: the upgrade to {} (revision {}) was interrupted and never finished.",
        case.subject(),
        interrupted.chart,
        interrupted.revision
    );
    let words = case.words();
    let finish = WaysOut::from(and_go_on(words.finish(&interrupted.chart)));
    let may_roll_back = words.has_commands() && !case.policy.recovery.roll_forward_only;
    let finish = if may_roll_back { finish.or(and_go_on(words.roll_back().into())) } else { finish };
    let remove = format!("remove the annotation {INTERRUPTED} from the record {}: {{}}", entry.name);
    let remove = Step::run(remove, words.remove_annotation_command(&entry.name, INTERRUPTED));
    Ok(Some(Refusal::new(sentence, finish.when("if you will not finish that upgrade", remove))))
}

fn and_go_on(step: Step) -> Way {
    Way::from(step).then(Step::retry("continue from there"))
}
