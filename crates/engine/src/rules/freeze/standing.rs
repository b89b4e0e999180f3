//! Which freezes are in force, and the ways out of them.

use jiff::Timestamp;

use crate::evidence::{Evidence, question};
use crate::facts::Actor;
use crate::policy::{ActiveFreeze, Freeze, Policy};
use crate::rules::check::{Step, Way, WaysOut};
use crate::rules::undecided::{Undecided, ask};

/// The Freezes that are stored in the cluster. Freezes that cannot be read stop nothing.
pub(super) fn stored(evidence: &Evidence) -> Result<&[Freeze], Undecided> {
    match ask(evidence, question::Freezes) {
        Err(Undecided::Ask(query)) => Err(Undecided::Ask(query)),
        _ => Ok(evidence.freezes()),
    }
}

/// Whether any freeze stops the actor. If not, nothing more needs to be read.
pub(super) fn stops_something(policy: &Policy, stored: &[Freeze], actor: Actor<'_>, now: Timestamp) -> bool {
    policy.all_freezes(stored).any(|freeze| freeze.stops(actor, now))
}

pub(super) fn ways_out(active: ActiveFreeze<'_>) -> WaysOut {
    if active.until.is_none() {
        return Step::release_override().into();
    }
    let retry = Step::retry("try again; controllers do so by themselves");
    let wait = Step { when: active.until, ..Step::wait("wait until the freeze ends") };
    WaysOut::from(Way::from(wait).then(retry)).when("if a fix cannot wait", Step::release_override())
}
