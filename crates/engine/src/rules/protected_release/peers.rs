//! Deletions of objects that another guard's mark protects, if the policy honours these marks.

use crate::facts::{ActorKind, Facts};
use crate::policy::Policy;
use crate::release::ReleaseRef;
use crate::rules::check::{Refusal, Step, StepKind, WaysOut};

/// The mark that counts for the deletion of an object. Kubernetes' own controllers delete what has already lost its owner, and would try
/// for ever.
pub(super) fn mark(facts: &Facts<'_>, policy: &Policy) -> Option<&'static str> {
    let mark = facts.peer_mark.filter(|_| policy.protected.honour_peer_marks)?;
    let actor = facts.actor;
    let is_exempt = matches!(actor.kind, ActorKind::ControlPlane | ActorKind::Platform | ActorKind::Node)
        || policy.controllers.contains(actor.name);
    (!is_exempt).then_some(mark)
}

/// The refusal of the deletion of an object with such a mark.
pub(super) fn refusal(mark: &str, subject: &str, release: Option<ReleaseRef>) -> Refusal {
    let sentence = format!("{subject} has the mark {mark}, which protects it, and the policy honours it.");
    let remove = Step::of(StepKind::Act, format!("take {mark} off it first"));
    let ways_out = WaysOut::default().when("if it must go", remove).or(Step::release_override());
    let refusal = Refusal::new(sentence, ways_out);
    match release {
        Some(release) => refusal.about(release),
        None => refusal,
    }
}
