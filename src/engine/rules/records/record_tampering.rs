//! `record-tampering`: what a record says of its release never changes once it is stored.
//!
//! Status, description and the runs of hooks do; name, revision, namespaces, chart, values and manifest do not, and
//! `info.last_deployed` tells the record of one life of a release from that of another under the same revision.
//!
//! Allowed: Helm 3 rewriting a record of Helm 4, which drops modification times. Denied: a manifest edited in place; an
//! upgrade whose release was uninstalled and installed again meanwhile, writing its old copy over the new record.

use super::case::Case;
use crate::engine::facts::RecordChange;
use crate::engine::release::record::{Difference, differences};
use crate::engine::release::status::{Guard, transition};
use crate::engine::rules::{Finding, Refusal};

/// The labels that Helm derives from the body.
const DERIVED_LABELS: [&str; 4] = ["name", "owner", "status", "version"];

pub(crate) fn check(case: &Case<'_>) -> Finding {
    let RecordChange::Updated { before, after, same_payload } = case.change else {
        return Ok(None);
    };
    if *same_payload {
        let (old, new) = (&before.stored.metadata, &after.stored.metadata);
        // A label may move alone only to what the body says, which mends it.
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
        let sentence = format!("Cannot change only the label {} of {}.", moved.join(", "), case.subject());
        let refusal = Refusal::new(sentence, "Helm reads its body too; use helm to change the release.");
        return Ok(Some(moved.iter().fold(refusal, |refusal, label| refusal.at(format!("/metadata/labels/{label}")))));
    }
    let (Some(old), Some(new)) = (before.record(), after.record()) else {
        return Ok(None);
    };
    let mut changed = differences(old, new);
    if transition(before.status(), after.status()) == Guard::Unlock {
        // Tools that unlock date the record anew; who may unlock is another rule's matter.
        changed.retain(|difference| *difference != Difference::LastDeployed);
    }
    if changed.is_empty() {
        return Ok(None);
    }
    let members: Vec<_> = changed.into_iter().map(Difference::member).collect();
    let sentence = format!("Cannot change {} in the stored record of {}.", members.join(", "), case.subject());
    let way_out = "A record is history; start a new upgrade to change the release.";
    Ok(Some(Refusal::new(sentence, way_out).at("/data")))
}
