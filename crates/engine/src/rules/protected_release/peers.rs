//! Deletions of objects that another guard's mark protects, if the policy honours these marks.

use crate::facts::{ActorKind, Facts};
use crate::policy::Policy;
use crate::release::ReleaseRef;
use crate::rules::check::{Refusal, Step, StepKind, WaysOut};

/// The refusal of the deletion of an object with such a mark. Kubernetes' own controllers delete what has already lost its owner, and
/// would try for ever.
pub(super) fn refusal(
    facts: &Facts<'_>,
    policy: &Policy,
    subject: String,
    release: Option<ReleaseRef>,
) -> Option<Refusal> {
    let mark = facts.peer_mark.filter(|_| policy.protected.honour_peer_marks)?;
    let actor = facts.actor;
    let is_exempt = matches!(actor.kind, ActorKind::ControlPlane | ActorKind::Platform | ActorKind::Node)
        || policy.controllers.contains(actor.name);
    if is_exempt {
        return None;
    }
    let sentence = format!("{subject} has the mark {mark}, which protects it, and the policy honours it.");
    let remove = Step::of(StepKind::Act, format!("take {mark} off it first"));
    let ways_out = WaysOut::default().when("if it must go", remove).or(Step::release_override());
    let refusal = Refusal::new(sentence, ways_out);
    Some(match release {
        Some(release) => refusal.about(release),
        None => refusal,
    })
}
