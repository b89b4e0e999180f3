//! The rule `record-integrity`.
//!
//! Helm finds the deployed record by its label, orders records by their bodies, and creates them under their names. An update may
//! keep a disagreement that already exists, but must not add to it: `helm uninstall --keep-history` repairs some of them.

use super::case::RecordCase;
use crate::facts::{RecordBody, RecordChange, RecordVersion};
use crate::owners;
use crate::release::record::truncated;
use crate::release::storage::{HELM_SECRET_TYPE, INDEX_TYPE, KEY_LABEL};
use crate::release::{DecodeError, RecordName, Revision, Storage};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule, WaysOut};
use crate::rules::wording::known_status;

/// The rule `record-integrity`.
pub static RULE: Rule = Rule {
    specification: Specification {
        id: "record-integrity",
        owners: owners::OF_RECORDS,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Create, Operation::Update], kinds: &[] },
        summary: "The object name, the labels and the body of a record agree.",
        why: "Helm finds a record by its labels, orders records by their bodies and creates them under their names. Where \
              these disagree, it acts on a release that does not exist.",
        allowed: "Helm's own writes; an update that repairs a disagreement, or leaves it as it is.",
        refused: "`kubectl label secret ... status=deployed --overwrite` on a superseded record; a body that cannot be \
              decoded.",
        way_out: "Leave records to the program that writes them. `helm history` shows the state of the release, or the status of the \
                  object that declares it.",
        settings: &[],
    },
    checks: &[Check::Record(check)],
};

/// A disagreement between parts of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    about: About,
    /// `its label name is not web`.
    pub sentence: String,
    pointer: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    ObjectName,
    SecretType,
    Owner,
    NameLabel,
    VersionLabel,
    KeyLabel,
    StatusLabel,
    BodyName,
    BodyVersion,
    BodyStatus,
    Undecodable,
}

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let (storage, object) = (case.id.storage, case.id.object.as_str());
    let (before, after) = match case.change {
        RecordChange::Created(side) => (Vec::new(), side),
        RecordChange::Updated { before, after, .. } => (disagreements(storage, object, before), after),
        RecordChange::Deleted(_) => return Ok(None),
    };
    let worse: Vec<_> = disagreements(storage, object, after)
        .into_iter()
        .filter(|new| !before.iter().any(|old| old.about == new.about))
        .collect();
    if worse.is_empty() {
        return Ok(None);
    }
    let sentences: Vec<_> = worse.iter().map(|disagreement| disagreement.sentence.as_str()).collect();
    let sentence = format!("The record of {} would be inconsistent: {}.", case.subject(), sentences.join("; "));
    let words = case.words();
    let ways_out = if case.is_misnamed() {
        WaysOut::default().when("if it is no record", "remove its label owner")
    } else {
        WaysOut::default().note("Do not edit records by hand.").and(words.change()).and(words.look())
    };
    let refusal = Refusal::new(sentence, ways_out);
    Ok(Some(worse.iter().fold(refusal, |refusal, disagreement| refusal.at(disagreement.pointer))))
}

/// Every disagreement between the parts of a record, including its body if it was read.
pub fn disagreements(storage: Storage, object: &str, side: &RecordVersion<'_>) -> Vec<Disagreement> {
    let mut found = Vec::new();
    let mut note = |about, pointer, sentence: String| found.push(Disagreement { about, sentence, pointer });
    let metadata = &side.stored.metadata;
    let name = match object.parse::<RecordName>() {
        Ok(name) => Some(name),
        Err(error) => {
            note(About::ObjectName, "/metadata/name", format!("{error}"));
            None
        }
    };
    let secret_type = side.stored.secret_type.as_deref();
    if storage == Storage::Secret && secret_type != Some(HELM_SECRET_TYPE) {
        note(About::SecretType, "/type", format!("its type is not {HELM_SECRET_TYPE}"));
    }
    if storage == Storage::Index && secret_type != Some(INDEX_TYPE) {
        note(About::SecretType, "/type", format!("its type is not {INDEX_TYPE}"));
    }
    let foreign_key = |key: &&str| storage == Storage::Index && *key != object;
    if metadata.label(KEY_LABEL).is_some_and(|key| foreign_key(&key)) {
        let sentence = "its label key is not its own name, and its parts are found by it".to_owned();
        note(About::KeyLabel, "/metadata/labels/key", sentence);
    }
    let owner = storage.owner();
    if metadata.label("owner") != Some(owner) {
        note(About::Owner, "/metadata/labels/owner", format!("its label owner is not {owner}"));
    }
    let label = |key| metadata.label(key).unwrap_or_default();
    let version = label("version").parse::<Revision>().ok();
    if let Some(name) = &name {
        if label("name") != name.release.as_str() {
            note(About::NameLabel, "/metadata/labels/name", format!("its label name is not {}", name.release));
        }
        if version != Some(name.revision) {
            let sentence = format!("its label version is not {}", name.revision);
            note(About::VersionLabel, "/metadata/labels/version", sentence);
        }
    }
    found.extend(body_disagreements(name.as_ref(), side));
    found
}

/// The disagreements between the body and the object's name and label `status`.
fn body_disagreements(name: Option<&RecordName>, side: &RecordVersion<'_>) -> Vec<Disagreement> {
    let mut found = Vec::new();
    let mut note = |about, pointer, sentence: String| found.push(Disagreement { about, sentence, pointer });
    let label = side.stored.metadata.label("status").unwrap_or_default();
    match &side.body {
        RecordBody::Read(record) => {
            if name.is_some_and(|name| record.name != name.release.as_str()) {
                note(About::BodyName, "/data", format!("its body belongs to release {:?}", truncated(&record.name)));
            }
            if name.is_some_and(|name| record.version != name.revision) {
                note(About::BodyVersion, "/data", format!("its body belongs to revision {}", record.version));
            }
            if label != record.info.status {
                let [label, body] = [label, &record.info.status].map(known_status);
                let sentence = format!("its label status is {label}, but its body says {body}");
                note(About::StatusLabel, "/metadata/labels/status", sentence);
            }
            if side.status().is_none() {
                note(About::BodyStatus, "/data", "the status in its body is unknown".to_owned());
            }
        }
        // A record that OLM stores in several Secrets is incomplete until the last of them is written.
        RecordBody::Broken(DecodeError::Chunked) | RecordBody::Unread => {
            if side.label_status().is_none() {
                note(About::StatusLabel, "/metadata/labels/status", "its label status is unknown".to_owned());
            }
        }
        RecordBody::Broken(error) => note(About::Undecodable, "/data", error.to_string()),
    }
    found
}
