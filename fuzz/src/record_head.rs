//! The head of a record's body, which is borrowed and read member by member, against a tree of values.
//!
//! Input: the JSON of a body.

use std::borrow::Cow;

use interlock_engine::effort::Effort;
use interlock_engine::release::Record;
use interlock_engine::release::record::differences;
use serde_json::{Map, Value};

use super::Input;
use super::json::{all, depth, unique};

/// The members that Helm knows, and those of `info` that Interlock reads.
const KNOWN: [&str; 10] =
    ["name", "info", "chart", "config", "manifest", "hooks", "version", "namespace", "apply_method", "labels"];
const KNOWN_IN_INFO: [&str; 6] = ["status", "first_deployed", "last_deployed", "deleted", "description", "notes"];

/// Beyond it charts and values count as different.
const MAX_DEPTH: usize = 60;

pub fn run(input: &[u8]) -> Input {
    let effort = Effort::of_review();
    let read = Record::read(input, &effort);
    if let Ok(record) = &read {
        let _read = (record.chart(), record.manifest(), record.hooks(&effort), record.hooks_of_kind("Job", &effort));
        assert_eq!(differences(record, record, &effort), [], "a record differs from itself");
    }
    let Some(body) = std::str::from_utf8(input).ok().and_then(unique) else { return Input::Foreign };
    let head = head(&body);
    match (&read, &head) {
        (Ok(record), Head::Of(expected)) => is_head(record, expected),
        // Keys that only a full case folding takes for known ones are refused too; no client writes them.
        (Err(_), Head::Odd | Head::Unreadable) | (Ok(_), Head::Odd) => {}
        (Ok(_), Head::Unreadable) => panic!("a body is read that the reference cannot read: {body}"),
        (Err(error), Head::Of(_)) => panic!("{error}: {body}"),
    }
    if let (Ok(record), true) = (&read, depth(&body) < MAX_DEPTH && can_be_respelled(&body)) {
        let again = body.to_string();
        let again = Record::read(again.as_bytes(), &effort).expect("the same body, spelled by another encoder");
        assert_eq!(differences(record, &again, &effort), [], "another spelling is a difference: {body}");
    }
    Input::Own
}

/// Whether a body means the same after another encoder has written it. Moments and the method of the apply are texts, as Go wants them:
/// other values are equal only byte by byte. The tree of values reads fractions inexactly.
fn can_be_respelled(body: &Value) -> bool {
    let moments = ["first_deployed", "deleted"].map(|moment| body["info"].get(moment));
    let texts = moments.into_iter().chain([body.get("apply_method")]);
    texts.flatten().all(Value::is_string) && all(body, &|value| !value.is_f64())
}

/// What the reference makes of a body.
enum Head<'v> {
    Of(&'v Map<String, Value>),
    /// It has a key that differs from a known one in case.
    Odd,
    Unreadable,
}

fn head(body: &Value) -> Head<'_> {
    let Value::Object(members) = body else { return Head::Unreadable };
    let info = members.get("info").and_then(Value::as_object);
    let is_text = |value: Option<&Value>| value.is_none_or(Value::is_string);
    let keys = |members: &Map<String, Value>, known: &[&str]| {
        members.keys().any(|key| !known.contains(&key.as_str()) && is_odd(key, known))
    };
    if keys(members, &KNOWN) || info.is_some_and(|info| keys(info, &KNOWN_IN_INFO)) {
        return Head::Odd;
    }
    let Some(info) = info else { return Head::Unreadable };
    let is_readable = members.get("name").is_some_and(Value::is_string)
        && members.get("version").is_some_and(Value::is_u64)
        && is_text(members.get("namespace"))
        && info.get("status").is_some_and(Value::is_string)
        && is_text(info.get("last_deployed"))
        && is_text(info.get("description"));
    if is_readable { Head::Of(members) } else { Head::Unreadable }
}

/// Whether a key may be taken for a known one by a reader that ignores case, in any of the ways that Unicode has for it.
fn is_odd(key: &str, known: &[&str]) -> bool {
    let folded = key.to_uppercase().to_lowercase();
    known.iter().any(|known| *known == folded)
}

/// Whether a reader that ignores case may take a key for the name or the version of a chart.
fn is_odd_of_chart(key: &str) -> bool {
    let known = ["name", "version"];
    !known.contains(&key) && is_odd(key, &known)
}

fn is_head(record: &Record<'_>, body: &Map<String, Value>) {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let body = Value::Object(body.clone());
    assert_eq!(record.name, text(&body, "name"));
    assert_eq!(record.namespace, text(&body, "namespace"));
    assert_eq!(Some(record.version.0), body["version"].as_u64());
    assert_eq!(record.info.status, text(&body["info"], "status"));
    assert_eq!(record.info.last_deployed, text(&body["info"], "last_deployed"));
    assert_eq!(record.info.description, text(&body["info"], "description"));
    assert_eq!(record.manifest(), Cow::from(text(&body, "manifest")));
    let metadata = &body["chart"]["metadata"];
    let is_plain = |key: &str| metadata.get(key).is_none_or(Value::is_string);
    let is_odd = metadata.as_object().is_some_and(|members| members.keys().any(|key| is_odd_of_chart(key)));
    if metadata.is_object() && is_plain("name") && is_plain("version") && !is_odd {
        let chart = record.chart_id();
        assert_eq!(
            (chart.name.into_owned(), chart.version.into_owned()),
            (text(metadata, "name"), text(metadata, "version"))
        );
    }
}
