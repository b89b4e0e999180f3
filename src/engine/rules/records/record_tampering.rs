//! The rule `record-tampering`.
//!
//! Status, description and the runs of hooks change; name, revision, namespaces, chart, values and manifest do not.
//! `info.last_deployed` tells apart the records of two lives of a release under the same revision: an upgrade whose release was
//! uninstalled and installed again meanwhile would write its old copy over the new record.

use super::case::RecordCase;
use crate::engine::facts::RecordChange;
use crate::engine::release::record::Difference;
use crate::engine::release::status::{Guard, transition};
use crate::engine::rule::{FORBIDDEN, FailsClosed, Mode, Specification};
use crate::engine::rules::check::{Check, Checked, Refusal, Rule};

/// The rule `record-tampering`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "record-tampering",
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        summary: "The content of a stored record never changes.",
        why: "A rollback installs the content of a stored record, and nobody reviews it again.",
        allowed: "A new status or description; Helm 3 rewriting a record of Helm 4.",
        refused: "A different manifest, chart, name, revision or different values in a stored record.",
        way_out: "A record is history. Start a new upgrade to change the release.",
        settings: &[],
    },
    checks: &[Check::Record(check)],
};

/// The labels that Helm derives from the body.
const DERIVED_LABELS: [&str; 4] = ["name", "owner", "status", "version"];

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let RecordChange::Updated { before, after, same_payload, .. } = case.change else {
        return Ok(None);
    };
    if *same_payload {
        let (old, new) = (&before.stored.metadata, &after.stored.metadata);
        // A label alone may change only to the value in the body, which repairs it.
        let said = |label: &str| match (label, after.record()) {
            ("owner", _) => Some(case.target.storage.owner().to_owned()),
            ("name", Some(record)) => Some(record.name.to_string()),
            ("version", Some(record)) => Some(record.version.to_string()),
            ("status", Some(record)) => Some(record.info.status.to_string()),
            _ => None,
        };
        let moved = DERIVED_LABELS.into_iter().filter(|label| old.label(label) != new.label(label));
        let moved: Vec<_> =
            moved.filter(|label| said(label).is_none_or(|said| new.label(label) != Some(&said))).collect();
        if moved.is_empty() {
            return Ok(None);
        }
        let sentence =
            format!("Cannot change only the label {} on the record of {}.", moved.join(", "), case.subject());
        let refusal = Refusal::new(sentence, "Helm also reads the body of the record. Use helm to change the release.");
        return Ok(Some(moved.iter().fold(refusal, |refusal, label| refusal.at(format!("/metadata/labels/{label}")))));
    }
    let mut changed = case.change.differences(case.facts.effort).to_vec();
    if transition(before.status(), after.status()) == Guard::Unlock {
        // Tools that unlock change the date of the record. `pending-recovery` decides who may unlock.
        changed.retain(|difference| *difference != Difference::LastDeployed);
    }
    if changed.is_empty() {
        return Ok(None);
    }
    let members: Vec<_> = changed.into_iter().map(Difference::member).collect();
    let sentence = format!("Cannot change {} in the stored record of {}.", members.join(", "), case.subject());
    let way_out = "A record is history. Start a new upgrade to change the release.";
    Ok(Some(Refusal::new(sentence, way_out).at("/data")))
}
