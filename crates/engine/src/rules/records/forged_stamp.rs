//! The rule `forged-stamp`.
//!
//! The mutating half overwrites the stamps that a client sends, so a wrong value arrives only while that half is out of service.
//! A stamp that is missing was lost during such a time. That is never a reason to refuse.

use super::case::RecordCase;
use crate::facts::RecordVersion;
use crate::object::annotation_pointer;
use crate::owners;
use crate::release::stamps::{DRIVER, HOLDER, PIPELINE, PROTECTED_BY};
use crate::release::{DriverRef, Stamps};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, CheckedAll, Refusal, Rule, Step, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::undecided::Undecided;
use crate::stamp::{self, Phase};

/// The rule `forged-stamp`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "forged-stamp",
        owners: owners::OF_OPERATIONS,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Create, Operation::Update], kinds: &[] },
        summary: "The holder stamps on a record or in an operation are the ones that Interlock wrote.",
        why: "The holder of an operation may end it and write the objects of its release. A stamp that the client chooses \
              would open both.",
        allowed: "A record without stamps, as helm writes it.",
        refused: "The CREATE of a record that names another user as the holder, while the mutating half is out of service.",
        way_out: "Do not set Interlock's stamps: the webhook writes them.",
        settings: &[],
    },
    checks: &[Check::Record(check), Check::Declaration(in_operation)],
};

/// The way out of every other refusal.
const ONLY_THE_WEBHOOK: &str = "do not set Interlock's stamps: the webhook writes them";

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let Some(write) = case.change.write() else {
        return Ok(None);
    };
    if write.before.is_none() && case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    let sent = write.after.stamps();
    let expected = stamp::expected(case.facts, &write, case.now);
    let before = write.before.map(RecordVersion::stamps).unwrap_or_default();
    let formerly = case.policy.accounts.formerly(case.facts.actor);
    let formerly = formerly.as_ref().and_then(stamp::stamped_pipeline);
    let Some((key, must)) = stamp::forged(&expected, &before, &sent, formerly.as_deref(), case.now) else {
        return match expected.phase {
            Phase::Starts if write.before.is_none() && !inherits(case, &sent)? => Ok(Some(not_inherited(case))),
            Phase::Starts => false_driver(case, &sent),
            Phase::Ends | Phase::Keeps => Ok(None),
        };
    };
    let must = must.map_or("be absent".to_owned(), |value| format!("be {value:?}"));
    let sentence = format!("The annotation {key} on the record of {} must {must}.", case.subject());
    let ways_out: WaysOut = match key {
        // The replica that set the stamp may have a newer policy than this one.
        PIPELINE => WaysOut::from("do not set it: only the webhook does")
            .when("if the pipelines of the policy have just changed", Step::retry("try again in a minute")),
        _ => ONLY_THE_WEBHOOK.into(),
    };
    Ok(Some(Refusal::new(sentence, ways_out).at(annotation_pointer(key))))
}

/// The holder that an object names in the operation that it carries.
fn in_operation(case: &DeclarationCase<'_>) -> CheckedAll {
    let user = stamp::stamped_user(case.facts.actor.name);
    let forged = owners::holders_of_operation(case.declaration, user)
        .filter(|[expected, named]| named.is_some() && named != expected);
    let Some([expected, _]) = forged else { return Ok(Vec::new()) };
    let must = expected.map_or("be absent".to_owned(), |holder| format!("be {holder:?}"));
    let sentence = format!("The value of {HOLDER} in the operation of {} must {must}.", case.subject());
    Ok(vec![Refusal::new(sentence, ONLY_THE_WEBHOOK).at("/operation/info")])
}

/// Whether another record of the release has the stamp of what protects it, if a new record has one.
fn inherits(case: &RecordCase<'_>, sent: &Stamps) -> Result<bool, Undecided> {
    let Some(stamp) = sent.get(PROTECTED_BY) else { return Ok(true) };
    Ok(case.history()?.iter().any(|entry| entry.stamps.get(PROTECTED_BY) == Some(stamp)))
}

fn not_inherited(case: &RecordCase<'_>) -> Refusal {
    let sentence = format!(
        "The annotation {PROTECTED_BY} on the record of {} is on no other record of the release.",
        case.subject()
    );
    // The replica that set the stamp may not have seen yet that it was removed.
    let ways_out = WaysOut::from(ONLY_THE_WEBHOOK).when("if the stamp has just been removed", Step::retry("try again"));
    Refusal::new(sentence, ways_out).at(annotation_pointer(PROTECTED_BY))
}

/// The refusal of a stamp of the driver that the mutating half cannot have written: as long as the spec of the HelmRelease stays as
/// the stamp saw it, Flux does not work as the user for it. A stamp whose HelmRelease has changed since, or is gone, passes:
/// nobody works for it then.
fn false_driver(case: &RecordCase<'_>, sent: &Stamps) -> Checked {
    let Some(stamp) = sent.get(DRIVER) else { return Ok(None) };
    let is_true = match DriverRef::parse(stamp) {
        None => false,
        Some(stamped) => match case.driven(sent).stamped(case.evidence) {
            Err(need @ Undecided::Ask(_)) => return Err(need),
            Err(_) | Ok(None) => true,
            Ok(Some(driver)) => {
                driver.generation != stamped.generation || owners::works_for(driver, case.facts.actor, case.policy)
            }
        },
    };
    let sentence =
        format!("The annotation {DRIVER} on the record of {} names nobody for whom the user works.", case.subject());
    Ok((!is_true).then(|| Refusal::new(sentence, ONLY_THE_WEBHOOK).at(annotation_pointer(DRIVER))))
}
