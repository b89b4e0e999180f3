//! Whether an act is honest work, or what Interlock is there to stop.
//!
//! Honest is what a program does again and again, to many objects, in the same fields, or what the platform does. An incident is what a
//! person does once, and everything that ends, jumps over or loses a release, by anybody. What is neither is a question, and opens
//! nothing.

use std::collections::BTreeSet;

use super::account::Account;
use super::act::{Act, ActKey, Effect};
use super::class::{Class, Classified};
use super::opening::{List, Opening, is_plain};
use super::seen::counted;

/// The fewest acts of a habit: on several objects, and on one object.
const HABIT: (usize, usize) = (3, 5);

/// The fewest days on which a person's habit shows.
const HABIT_DAYS: usize = 3;

/// What an act is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Work that a line of the policy should open.
    Honest(Opening),
    /// What Interlock is there to stop.
    Incident,
    /// It may be either. People must decide.
    Ask(String),
    /// Not refused, and nothing to decide: recorded or warned of.
    Noted,
    /// Refused because the input lacks what a rule needs.
    Unknown,
}

/// Judges an act of a classified account.
pub(super) fn verdict(key: &ActKey, act: &Act, account: &Account, classified: &Classified) -> Verdict {
    match key.effect {
        Effect::Undecided => return Verdict::Unknown,
        Effect::Warned => return Verdict::Noted,
        Effect::Refused | Effect::Audited => {}
    }
    if let Some(entry) = &classified.entry
        && opens(entry.list, key)
    {
        return Verdict::Honest(Opening::Entry(entry.clone()));
    }
    if key.is_about_objects() {
        return on_objects(key, act, account, classified);
    }
    match key.effect {
        Effect::Refused if continues_a_session(key, account, classified) => Verdict::Ask(
            "Every job has a user name of its own, so the next one may not continue what a dead one left. If one job at a time works on \
             a release, set `holder` of the pipeline to `pipeline`, or to the group of the project."
                .to_owned(),
        ),
        Effect::Refused => Verdict::Incident,
        _ => Verdict::Noted,
    }
}

/// The rules that a session of a pipeline breaks if it continues what another one left.
const CONTINUING: [&str; 2] = ["pending-recovery", "concurrent-operation"];

fn continues_a_session(key: &ActKey, account: &Account, classified: &Classified) -> bool {
    (classified.stem.is_some() || account.has_lone_sessions)
        && key.rules.contains(&CONTINUING[0])
        && key.rules.iter().all(|rule| CONTINUING.contains(rule))
}

/// Whether an entry in a list opens the rules of an act. A deletion during the operation of somebody else stays refused, as shipped.
fn opens(list: List, key: &ActKey) -> bool {
    let is_of_objects = key.is_about_objects();
    let deletes_over = key.operation == "DELETE" && key.effect == Effect::Refused;
    match list {
        List::Platform => is_of_objects,
        List::Managers => is_of_objects && !deletes_over,
        List::Pipelines => is_of_objects && key.effect == Effect::Refused && !key.rules.contains(&DURING_OPERATION),
        List::Tools => !is_of_objects,
    }
}

/// The rule about writes during the operation of another account.
const DURING_OPERATION: &str = "foreign-edit-in-transition";

fn on_objects(key: &ActKey, act: &Act, account: &Account, classified: &Classified) -> Verdict {
    let Some(own) = account.service_account.as_deref() else {
        let is_habit = classified.class == Class::Person && is_habit_of_a_person(act);
        return if is_habit { Verdict::Ask(habit(act)) } else { of_effect(key) };
    };
    match (classified.class, key.operation.as_str()) {
        (Class::Person | Class::Pipeline | Class::Manager | Class::Platform | Class::Tool, _) => of_effect(key),
        (Class::Hook, _) if key.effect == Effect::Refused => Verdict::Ask(format!(
            "If {own} is the account of a hook of this release, its chart should declare the Job and the account, so that the deletions \
             count as the release's own."
        )),
        (Class::Controller, "UPDATE") if is_habit(act) && is_plain(own) => {
            let kinds: BTreeSet<_> = Some(key.kind.clone()).filter(|kind| is_plain(kind)).into_iter().collect();
            Verdict::Honest(Opening::Cases { rules: key.rules.clone(), account: own.to_owned(), kinds })
        }
        (_, "DELETE")
            if key.effect == Effect::Refused && !act.namespaces.named.contains(account.home().unwrap_or_default()) =>
        {
            Verdict::Incident
        }
        _ => Verdict::Ask(format!(
            "What is {own}? {} not enough to tell a tool from an accident. If it completes objects of releases, add a case for it to the \
             rule.",
            if act.times.count == 1 {
                "One write is".to_owned()
            } else {
                format!("{} are", counted(act.times.count, "write"))
            }
        )),
    }
}

fn of_effect(key: &ActKey) -> Verdict {
    if key.effect == Effect::Refused { Verdict::Incident } else { Verdict::Noted }
}

/// Whether a program does the same again and again.
fn is_habit(act: &Act) -> bool {
    let (several, one) = HABIT;
    (act.times.count >= several && act.objects.len() > 1) || act.times.count >= one
}

fn is_habit_of_a_person(act: &Act) -> bool {
    act.times.days() >= HABIT_DAYS && act.times.count >= HABIT.1
}

fn habit(act: &Act) -> String {
    format!(
        "This happens {} on {} days. If it is how people work here, open the fields with `ignore`, or the objects with a case; otherwise \
         tell them before the rule is enforced.",
        counted(act.times.count, "time"),
        act.times.days()
    )
}
