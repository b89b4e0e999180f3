//! A counterexample as a recording that `interlock replay` reads (docs/replay.md).

use interlock_engine::release::Status;
use serde_json::{Value, json};

use crate::client::Write;
use crate::cluster::{LATE, Passing, SOON};
use crate::court::{self, Ruling};
use crate::explore::{Counterexample, Taken};
use crate::objects::{self, NOW};

/// The lines of a recording.
pub(crate) fn lines(found: &Counterexample) -> Vec<String> {
    let mut now = NOW;
    let mut lines = vec![json!({"mark": found.property})];
    let mut objects: Vec<Value> = found.start.records().iter().map(|record| objects::stored(record, now)).collect();
    let is_extension = found.start.is_extension();
    objects.extend(found.start.object.iter().map(|object| objects::deployment(object, is_extension)));
    objects.extend(found.start.others.iter().map(|other| objects::other(*other, now)));
    lines.extend(objects.into_iter().map(|object| json!({ "object": object })));
    for step in &found.steps {
        match step {
            Taken::Passed(Passing::Moments) => now += SOON,
            Taken::Passed(Passing::UntilStale) => now += LATE,
            Taken::Began(user, name) => lines.push(json!({"mark": format!("{} begins: {name}", user.name())})),
            Taken::Looked(user) => lines.push(json!({"mark": format!("{} reads", user.name())})),
            Taken::Killed(user) => lines.push(json!({"mark": format!("{} is killed", user.name())})),
            Taken::Wrote { user, write, before, .. } => {
                let Some(sent) = court::sent(before, write, now) else {
                    lines.push(json!({"mark": format!("{}: 404 or 409", user.name())}));
                    continue;
                };
                let old = old_object(before, write, now).map(|old| old.to_string());
                lines.push(json!({"t": now, "review": court::review(&sent, old.as_deref(), *user)}));
            }
        }
    }
    lines.iter().map(Value::to_string).collect()
}

/// The verdicts of its reviews, in their order.
pub(crate) fn verdicts(found: &Counterexample) -> Vec<bool> {
    let verdict = |step: &Taken| match step {
        Taken::Wrote { ruling: Ruling::Admitted(_), .. } => Some(true),
        Taken::Wrote { ruling: Ruling::Refused(_), .. } => Some(false),
        _ => None,
    };
    found.steps.iter().filter_map(verdict).collect()
}

/// The stored object that a write meets.
fn old_object(before: &crate::cluster::Cluster, write: &Write, now: i64) -> Option<Value> {
    let stored = |driver, revision| before.record(driver, revision).map(|record| objects::stored(record, now));
    match write {
        Write::Create(_) | Write::CreateLabelled(..) | Write::CreateStamped(..) => None,
        Write::Update(body) => stored(body.driver, body.revision),
        Write::Delete(driver, revision) | Write::Relabel(driver, revision, _) | Write::RemoveNote(driver, revision) => {
            stored(*driver, *revision)
        }
        Write::Apply(_) | Write::Restore(_) | Write::Edit | Write::DeleteObject => {
            before.object.map(|object| objects::deployment(&object, before.is_extension()))
        }
        Write::Put(other) | Write::Take(other) => before.replaced_by(*other).map(|old| objects::other(old, now)),
    }
}

/// One line a step, for a reader.
pub(crate) fn story(found: &Counterexample) -> String {
    let mut text = format!("{}, after {} writes:\n", found.property, found.writes());
    let start = found.start.records().iter().map(|record| format!("{}: {}", record.body.revision, record.status()));
    text += &format!("  at first: {}\n", start.collect::<Vec<_>>().join(", "));
    for step in &found.steps {
        let line = match step {
            Taken::Passed(Passing::Moments) => "a minute passes".to_owned(),
            Taken::Passed(Passing::UntilStale) => "20 minutes pass".to_owned(),
            Taken::Began(user, name) => format!("{} begins: {name}", user.name()),
            Taken::Looked(user) => format!("{} reads", user.name()),
            Taken::Killed(user) => format!("{} is killed", user.name()),
            Taken::Wrote { user, write, ruling, before } => {
                format!("{} writes {}: {}", user.name(), described(write, before), outcome(ruling))
            }
        };
        text += &format!("  {line}\n");
    }
    text
}

fn described(write: &Write, before: &crate::cluster::Cluster) -> String {
    let from =
        |driver, revision| before.record(driver, revision).map_or("nothing", |record| Status::as_str(record.status()));
    match write {
        Write::Create(body) => format!("v{} as {}", body.revision, body.status),
        Write::CreateLabelled(body, label) => format!("v{} as {} labelled {label}", body.revision, body.status),
        Write::CreateStamped(body, stamp) => format!("v{} as {} with {stamp:?}", body.revision, body.status),
        Write::Update(body) => {
            format!("v{}: {} -> {}", body.revision, from(body.driver, body.revision), body.status)
        }
        Write::Delete(driver, revision) => format!("v{revision}: {} -> deleted", from(*driver, *revision)),
        Write::Relabel(_, revision, label) => format!("v{revision} labelled {label}"),
        Write::RemoveNote(_, revision) => format!("v{revision} without its note"),
        Write::Apply(chart) | Write::Restore(chart) => format!("the object of chart {chart}"),
        Write::Edit => "an edit of the object".to_owned(),
        Write::DeleteObject => "a deletion of the object".to_owned(),
        Write::Put(other) => format!("{other:?}"),
        Write::Take(other) => format!("no {other:?}"),
    }
}

fn outcome(ruling: &Ruling) -> String {
    match ruling {
        Ruling::Admitted(_) => "admitted".to_owned(),
        Ruling::Conflict => "404 or 409".to_owned(),
        Ruling::Refused(refusals) => {
            refusals.iter().map(|refusal| format!("refused, {}", refusal.message)).collect::<Vec<_>>().join("; ")
        }
    }
}
