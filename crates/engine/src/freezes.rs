//! Which Freezes may be stored: the custom resources that stop the releases of a namespace. The rule `freeze` decides
//! what they stop.

use annotate_snippets::Level;
use jiff::{SignedDuration, Timestamp};

use super::evidence::{Evidence, Query, question};
use super::facts::{Actor, OwnSpec, OwnWrite};
use super::freeze_resource::PLURAL;
use super::outcome::Outcome;
use super::overrides::{self, CREATION_TOLERANCE};
use super::policy::{Freeze, Policy};
use super::policy_files::{BadFreeze, ExcerptStyle, FreezeName, excerpts, spelled};
use super::stamp::creator;

/// The most Freezes of a namespace, including those that are over. All of them are kept in memory.
pub const MAX_OF_NAMESPACE: usize = 50;

/// The outcome of a write to one of Interlock's own kinds: the answer to a probe, or whether the object may be stored.
///
/// # Errors
/// The query that needs an answer.
pub fn outcome(
    write: &OwnWrite<'_>,
    actor: &Actor<'_>,
    policy: &Policy,
    evidence: &Evidence,
    now: Timestamp,
) -> Result<Outcome, Query> {
    match &write.spec {
        OwnSpec::Override(spec) => Ok(overrides::outcome(write, spec, actor, policy, now)),
        OwnSpec::Freeze(_) if write.before.is_none() && evidence.get(&question::Freezes.into()).is_none() => {
            Err(question::Freezes.into())
        }
        OwnSpec::Freeze(spec) => {
            let stored = evidence.freezes().iter().filter(|it| it.home.as_deref() == Some(write.namespace)).count();
            Ok(Outcome::of_own(objection(write, spec, actor, (policy, stored), now), policy.cap))
        }
    }
}

/// Why a Freeze must not be stored; `None` if it may. The webhook may have been unavailable when it was created. Each
/// use therefore checks everything again, except the length of the window, and the policy ends a Freeze that is too
/// long.
fn objection(
    write: &OwnWrite<'_>,
    spec: &Result<&str, String>,
    actor: &Actor<'_>,
    (policy, stored): (&Policy, usize),
    now: Timestamp,
) -> Option<String> {
    if let Some(objection) = creator::objection(write, actor.name) {
        return Some(objection);
    }
    // The definition of the resource makes the specification immutable.
    if write.before.is_some() {
        return None;
    }
    let settings = &policy.team_freezes;
    if !settings.allowed {
        return Some(
            "The policy allows no Freezes (`teamFreezes` in cluster.yaml). Ask the people who maintain the policy."
                .to_owned(),
        );
    }
    let namespace = write.namespace;
    if stored >= MAX_OF_NAMESPACE {
        return Some(format!(
            "Namespace {namespace} has {stored} Freezes, and may not have more. Delete those that are over: kubectl delete {PLURAL} \
             -n {namespace} NAME"
        ));
    }
    let name = FreezeName { namespace, name: &write.after.name };
    let read = spec.clone().map_err(BadFreeze::Unreadable);
    let freeze = match read.and_then(|spec| Freeze::of_spec(name, spec)) {
        Ok(freeze) => freeze,
        Err(BadFreeze::Wrong(error)) => {
            let excerpts = excerpts(&error.problems, &Level::ERROR, ExcerptStyle::Plain);
            return Some(format!("The Freeze cannot be used:\n{excerpts}"));
        }
        Err(why) => return Some(format!("The Freeze cannot be used: {why}.")),
    };
    too_late(&freeze, settings.max_duration, now)
}

/// Why the end of a Freeze is wrong; `None` if it is not. The policy ends a Freeze that has no end of its own.
fn too_late(freeze: &Freeze, max_duration: SignedDuration, now: Timestamp) -> Option<String> {
    let end = freeze.own_end()?;
    let left = end.duration_since(now);
    if !left.is_positive() {
        let (end, now) = (freeze.shown(end), freeze.shown(now));
        return Some(format!("The Freeze has already ended: at {end}, and it is {now} now."));
    }
    (left > max_duration.saturating_add(CREATION_TOLERANCE)).then(|| {
        format!(
            "The Freeze would end in {:#}, but the policy allows at most {}. Set an earlier end. You can create another Freeze when \
             this one has ended, and longer freezes belong in the policy.",
            left.round(jiff::Unit::Minute).unwrap_or(left),
            spelled(max_duration),
        )
    })
}
