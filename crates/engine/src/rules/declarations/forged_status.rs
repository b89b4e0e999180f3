//! The rule `forged-status`.
//!
//! A status says what a controller did: which release it installed and where, or what was delivered. Other rules believe it. Many
//! people and tenants may write a status, because roles often grant it together with the object.

use super::case::DeclarationCase;
use crate::facts::{ActorKind, Declaration};
use crate::owners;
use crate::owners::status::{PROVING_KINDS, PROVING_OWNERS, StatusWrite};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, CheckedAll, Refusal, Rule, WaysOut};
use crate::rules::proven_status::any_listed_account;
use crate::rules::undecided::Undecided;
use crate::rules::wording;

/// The rule `forged-status`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "forged-status",
        owners: PROVING_OWNERS,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        requests: Requests { operations: &[Operation::Create, Operation::Update], kinds: PROVING_KINDS },
        summary: "A status that proves something is written by its controller.",
        why: "Rules believe the status of a HelmRelease, Kustomization, ClusterExtension, ClusterSummary, ClusterConfiguration or \
              Application. Whoever forges one can take over a release, hide a dropped bundle, or block the release of another team.",
        allowed: "A status that a manager or a restore tool writes. A status that an agent writes about its own cluster. A status \
                  that any service account writes while no controller under `managers` exists in the cluster.",
        refused: "`kubectl patch helmrelease web --subresource=status`; `kubectl create` of an exported Application with its \
                  `status.resources`.",
        way_out: "Change the spec, or create the object without `status`: the controller then writes it. List a controller with another account under \
                  `managers`.",
        settings: &[],
    },
    checks: &[Check::Declaration(check), Check::Declaration(within)],
};

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let Declaration::Status(write) = case.declaration else {
        return Ok(Vec::new());
    };
    if !write.changes || may_write(case, write)? {
        return Ok(Vec::new());
    }
    Ok(vec![refusal(case, write.owner)])
}

/// The same for a kind without a status of its own: whoever may write or create the object may write its status. Service accounts may,
/// because programs beside the controller write the whole object.
fn within(case: &DeclarationCase<'_>) -> CheckedAll {
    let actor = case.facts.actor;
    let is_by_people = matches!(actor.kind, ActorKind::Person | ActorKind::Pipeline);
    let owner = owners::rules::changed_status(case.declaration);
    let owner = owner.filter(|_| is_by_people && !case.policy.is_manager_or_tool(actor.name));
    Ok(owner.map(|owner| refusal(case, owner)).into_iter().collect())
}

fn refusal(case: &DeclarationCase<'_>, owner: &str) -> Refusal {
    let sentence = format!(
        "The status of {} says what {owner} did, and only its controller writes it, not {}.",
        case.subject(),
        wording::user(Some(case.facts.actor.name))
    );
    let instead = match case.facts.operation {
        Operation::Create => "leave `status` out: the controller then writes it",
        _ => "change the spec instead: the controller then writes the status",
    };
    let mut ways_out = WaysOut::from(instead);
    if case.facts.actor.is_service_account() {
        ways_out =
            ways_out.note(format!("A controller of {owner} must be listed under `managers` in the cluster policy."));
    }
    Refusal::new(sentence, ways_out).at("/status")
}

/// Whether the actor may write this status. A service account that nobody listed may be the controller under another name, which
/// must never stop. So it may write unless a listed controller exists.
fn may_write(case: &DeclarationCase<'_>, write: &StatusWrite<'_>) -> Result<bool, Undecided> {
    let actor = case.facts.actor;
    if case.policy.is_manager_or_tool(actor.name) || write.agent.as_deref() == Some(actor.name) {
        return Ok(true);
    }
    match actor.kind {
        ActorKind::Person | ActorKind::Pipeline => return Ok(false),
        ActorKind::ServiceAccount => {}
        ActorKind::ControlPlane | ActorKind::Platform | ActorKind::Node | ActorKind::Interlock => return Ok(true),
    }
    Ok(any_listed_account(case.evidence, case.policy, write.controller)? != Some(true))
}
