//! The rule `manual-delete`.

use super::case::ObjectCase;
use super::conflict::OwnershipConflict;
use super::manual_edit::everything;
use crate::facts::{ActorKind, Declaration, DefinitionDeletion, ObjectChange};
use crate::managed::ManagedFields;
use crate::owners;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, CheckedAll, Refusal, Rule, Step, StepKind};
use crate::rules::declarations::case::DeclarationCase;

/// The rule `manual-delete`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "manual-delete",
        owners: owners::ALL,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        requests: Requests { operations: &[Operation::Delete], kinds: &[] },
        summary: "An object that a release declares is deleted through the release.",
        why: "The release still says that it is deployed, and the next upgrade creates the object again, or fails without \
              it.",
        allowed: "`helm uninstall`; deleting an object that an uninstall kept, or that a newer revision no longer declares.",
        refused: "`kubectl delete deployment` of a live release. With a warning: a CustomResourceDefinition that a chart brings in its \
                  directory crds/.",
        way_out: "Remove it from the chart and upgrade, or uninstall the release.",
        settings: &[],
    },
    checks: &[Check::Object(check), Check::Declaration(definition)],
};

/// The kinds with fields that no update changes: where an upgrade changes one, the object is deleted first.
const RECREATED: [&str; 2] = ["StatefulSet", "Job"];

/// How to recreate an object of such a kind.
fn recreation(kind: &str) -> String {
    let orphaning = if kind == "StatefulSet" { " with --cascade=orphan" } else { "" };
    format!(
        "If the next upgrade changes a field that cannot be changed, delete the {kind}{orphaning} under such an override and then \
         upgrade. A case of manual-delete in the policy can allow that (kinds: [{kind}])."
    )
}

fn check(case: &ObjectCase<'_>) -> Checked {
    if !matches!(case.write.change, ObjectChange::Deleted { .. }) {
        return Ok(None);
    }
    let Some(conflict) = case.conflict()? else {
        return Ok(None);
    };
    let OwnershipConflict { owner, declarer, release, unreadable, .. } = conflict;
    let why = unreadable.as_deref().map(|why| format!(": {}", everything(why))).unwrap_or_default();
    let sentence = format!("{} is managed by {owner}, and declared by {declarer}{why}.", case.subject());
    let ways_out = case.or_exempt(conflict.through("remove"));
    let ways_out = if RECREATED.contains(&case.kind()) { ways_out.note(recreation(case.kind())) } else { ways_out };
    let refusal = Refusal::new(sentence, ways_out).about(release.clone());
    case.unless_suspended(conflict, refusal).map(Some)
}

/// The warning about the deletion of a definition that a chart brought in its directory `crds/`. Nothing on it names a release.
fn definition(case: &DeclarationCase<'_>) -> CheckedAll {
    let Declaration::Definition(DefinitionDeletion { name, managed_fields }) = case.declaration else {
        return Ok(Vec::new());
    };
    let actor = case.facts.actor;
    let is_by_hand = matches!(actor.kind, ActorKind::Person | ActorKind::Pipeline);
    if !is_by_hand || case.policy.is_manager_or_tool(actor.name) {
        return Ok(Vec::new());
    }
    if !ManagedFields::read(*managed_fields, case.facts.effort)
        .names(|manager| owners::managers_of_releases().contains(&manager))
    {
        return Ok(Vec::new());
    }
    let sentence = format!(
        "CustomResourceDefinition {name} was installed by a chart, and deleting it deletes every object of its kind."
    );
    let look = Step { kind: StepKind::Look, ..Step::run("{} names the release", "interlock scan".to_owned()) };
    Ok(vec![Refusal::new(sentence, look).into_advice()])
}
