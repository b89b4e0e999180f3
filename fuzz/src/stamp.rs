//! The patch of a stamp, applied by another implementation of JSON patches, against its meaning.
//!
//! Input: a scene, whose last line is the review.

use std::collections::BTreeMap;

use interlock_engine::effort::Effort;
use interlock_engine::facts::{RequestObjects, storing_kind};
use interlock_engine::json::RawObject;
use interlock_engine::release::{DecodeError, Record};
use interlock_engine::review::{Operation, Request, Review};
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::Input;
use super::json::unique;
use super::scene::{Scene, no_deadline, wait};

const PREFIX: &str = "interlock.dev/";
const HOLDER: &str = "interlock.dev/holder";
const STARTED: &str = "interlock.dev/started";
const ENDED: &str = "interlock.dev/ended";

/// The stamps that may change in the middle of a transition: notes about what is left to do.
const NOTES: [&str; 2] = ["interlock.dev/interrupted", "interlock.dev/hooks"];

/// Longer names are not stamped.
const MAX_USER_BYTES: usize = 4 * 1024;

/// The statuses in which a record is at rest, as Helm writes them.
const STATUSES: [&str; 5] = ["deployed", "failed", "superseded", "unknown", "uninstalled"];

pub fn run(input: &[u8]) -> Input {
    let Some(scene) = Scene::read(input) else { return Input::Foreign };
    let Ok(Review { request }) = Review::parse(scene.review.as_bytes()) else { return Input::Foreign };
    // An API server sends the old object with every operation but CREATE.
    if (request.operation == Operation::Create) == request.old_object.is_some() {
        return Input::Foreign;
    }
    let judge = scene.judge();
    let Ok(patch) = wait(judge.mutate(&request, scene.now, no_deadline())) else { return Input::Foreign };
    let side = |object: Option<RawObject<'_>>| object.map(|object| unique(object.get()));
    let (Some(Some(sent)), Some(before)) =
        (side(request.object), side(request.old_object).unwrap_or(Some(Value::Null)))
    else {
        assert!(patch.is_none() || request.object.is_some(), "nothing is there to be stamped");
        return Input::Foreign;
    };
    // Every object that an API server sends has metadata.
    if !sent["metadata"].is_object() {
        return Input::Foreign;
    }
    let mut stamped = sent.clone();
    if let Some(patch) = patch {
        let patch: json_patch::Patch =
            serde_json::to_value(&patch).and_then(serde_json::from_value).expect("a JSON patch");
        json_patch::patch(&mut stamped, &patch).expect("a patch that applies");
        assert_ne!(stamped, sent, "a patch that changes nothing");
    }
    assert_eq!(without_stamps(&stamped), without_stamps(&sent), "more than stamps changes");
    let whole = to_raw_value(&stamped).expect("JSON");
    let again = Request { object: Some(whole.as_ref().into()), ..request.clone() };
    let patch = wait(judge.mutate(&again, scene.now, no_deadline())).expect("a stamped object");
    assert_eq!(patch, None, "stamped twice: {stamped}");
    let judgement = wait(judge.validate(&again, scene.now, no_deadline())).expect("a stamped object");
    let forged = judgement.outcome.violations.iter().find(|judged| judged.violation.rule.as_str() == "forged-stamp");
    // A record that is created in another status than pending is not stamped, and may be refused for what it says.
    let is_left = request.operation == Operation::Create && stamped == sent;
    assert!(is_left || forged.is_none_or(|judged| !judged.refuses), "{forged:?}");
    let objects = RequestObjects::read(&request).expect("objects that were stamped");
    if objects.storage.is_some() {
        let bodies = objects.payloads(request.operation).inflate(&Effort::of_review());
        let (was, is) = (status(bodies.old.as_ref()), status(bodies.new.as_ref()));
        let is = if bodies.unchanged { was.clone() } else { is };
        // Without its body a record goes by its label.
        if let Some(is) = is.filter(|_| was.is_some() || !objects.was_record) {
            means(&request, (&before, was.filter(|_| objects.was_record)), (&stamped, is), stamped == sent, &scene);
        }
    } else if storing_kind(&request).is_some() {
        assert_eq!(stamped, sent, "no record is stamped");
    }
    Input::Own
}

/// What the stamps of a record must say. `before` has no status if it was no record.
fn means(
    request: &Request<'_>,
    (before, was): (&Value, Option<String>),
    (stamped, is): (&Value, String),
    is_unchanged: bool,
    scene: &Scene<'_>,
) {
    let (old, new) = (stamps(before), stamps(stamped));
    let user = request.user_info.username.as_ref();
    let is_pending = |status: &str| matches!(status, "pending-install" | "pending-upgrade" | "pending-rollback");
    let is_in_flight = |status: &str| is_pending(status) || status == "uninstalling";
    let time = scene.now.to_string();
    if user.len() > MAX_USER_BYTES || request.object.is_none() || request.operation == Operation::Delete {
        return;
    }
    let starts = |new: &BTreeMap<String, String>| {
        assert_eq!(new.get(HOLDER).map(String::as_str), Some(user), "{stamped}");
        assert_eq!(new.get(STARTED), Some(&time), "{stamped}");
    };
    match was {
        None if is_pending(&is) => starts(&new),
        None if request.operation == Operation::Create => {
            assert!(is_unchanged, "left to the validating half: {stamped}")
        }
        None => {}
        Some(was) if is == "uninstalling" && was != "uninstalling" => starts(&new),
        // Another user may take an uninstall over.
        Some(_) if is == "uninstalling" => {}
        Some(was) => {
            let ends = is_in_flight(&was) && STATUSES.contains(&is.as_str()) && !is_in_flight(&is);
            let kept = |stamps: &BTreeMap<String, String>| {
                let mut kept = stamps.clone();
                kept.retain(|key, _| !(NOTES.contains(&key.as_str()) || ends && key == ENDED));
                kept
            };
            assert_eq!(kept(&old), kept(&new), "the stamps of the stored record stay: {stamped}");
            assert!(!ends || new.get(ENDED) == Some(&time), "{stamped}");
        }
    }
}

/// The status in the body of a record; `None` if it cannot be read.
fn status(body: Option<&Result<Vec<u8>, DecodeError>>) -> Option<String> {
    let body = body?.as_ref().ok()?;
    let record = Record::read(body, &Effort::of_review()).ok()?;
    Some(record.info.status.into_owned())
}

/// The annotations of Interlock on an object, those that are stamps.
fn stamps(object: &Value) -> BTreeMap<String, String> {
    const KEYS: [&str; 7] = ["holder", "started", "ended", "chart", "target-namespace", "interrupted", "hooks"];
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    let stamps = annotations.filter(|(key, _)| key.strip_prefix(PREFIX).is_some_and(|key| KEYS.contains(&key)));
    stamps.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// An object without the annotations of Interlock. No annotations are the same as an empty map.
fn without_stamps(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        let annotations = metadata.remove("annotations").unwrap_or_default();
        if let Value::Object(mut annotations) = annotations {
            annotations.retain(|key, _| !key.starts_with(PREFIX));
            metadata.insert("annotations".to_owned(), annotations.into());
        } else {
            metadata.insert("annotations".to_owned(), Value::Object(serde_json::Map::new()));
        }
    }
    object
}
