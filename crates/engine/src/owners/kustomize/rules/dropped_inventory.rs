//! The rule `dropped-inventory`.
//!
//! A source that renders to nothing prunes everything, without an error. The controller asks for one object after the other, and goes on
//! after a refusal. It may try again only after its whole interval, so nothing waits: what is at most the share goes, and the rest
//! stays until somebody confirms it.

use std::collections::BTreeSet;

use crate::facts::ObjectChange;
use crate::losses::{Loss, Losses};
use crate::managed::{Owner, last_change_of_spec};
use crate::object::{ALLOW_REMOVAL, ObjectKey, service_account_user};
use crate::owners::kustomize;
use crate::owners::kustomize::rules::at_work;
use crate::owners::kustomize::{CONTROLLER, FORCE, GROUP, Kustomization, NAME, inventory_id};
use crate::release::ReleaseRef;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule, Step, Way, WaysOut};
use crate::rules::losses::{confirmation, explains, is_named, known};
use crate::rules::objects::case::ObjectCase;
use crate::rules::wording::command;

/// The rule `dropped-inventory`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "dropped-inventory",
        owners: &[kustomize::NAME],
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        requests: Requests { operations: &[Operation::Delete], kinds: &[] },
        summary: "A Kustomization does not prune most of its objects by accident.",
        why: "A source that renders to nothing is no error for Flux: it prunes every object of the Kustomization.",
        allowed: "Half of the inventory within a day, what a change of the spec in the last minutes leaves out, and older versions \
                  of generated ConfigMaps and Secrets. The deletion of the Kustomization. An object that is deleted to be created \
                  anew (`force`).",
        refused: "What kustomize-controller prunes beyond that, or the last object.",
        way_out: "Repair the source. If the objects shall go, name them in the annotation interlock.dev/allow-removal of the \
                  Kustomization, as its inventory does. An override names the Kustomization.",
        settings: &[],
    },
    checks: &[Check::Object(check)],
};

/// An object that its Kustomization prunes.
struct Pruned<'c> {
    case: &'c ObjectCase<'c>,
    applied_by: ReleaseRef,
    loss: Loss,
    losses: &'c Losses,
}

fn check(case: &ObjectCase<'_>) -> Checked {
    let ObjectChange::Deleted { marks, .. } = &case.write.change else { return Ok(None) };
    let Owner::Applied { kind: NAME, namespace, name, .. } = &marks.owner else { return Ok(None) };
    let Some(account) = case.facts.actor.service_account().filter(|_| !case.write.being_deleted) else {
        return Ok(None);
    };
    let object = ObjectKey::new(case.write.group(), case.kind(), &case.write.namespace, &case.write.name);
    let Some(kustomization) = at_work(case.evidence, &object, (namespace, name))? else { return Ok(None) };
    let works_for = &*kustomization.spec.service_account_name;
    let is_own = account.rsplit(':').next() == Some(CONTROLLER)
        || (!works_for.is_empty() && service_account_user(namespace, works_for) == case.facts.actor.name);
    let is_forced = marks.switches.iter().any(|(key, value)| *key == FORCE && value.eq_ignore_ascii_case("enabled"));
    if !is_own || is_forced || kustomization.spec.force {
        return Ok(None);
    }
    let child = inventory_id(&object);
    let is_generated = is_generated(&child);
    let is_named = is_named(kustomization.metadata.annotation(ALLOW_REMOVAL), &child);
    let changed = last_change_of_spec(kustomization.metadata.managed_fields, case.facts.effort);
    let loss = Loss {
        of: ObjectKey::new(GROUP, NAME, namespace, name),
        children: kustomization.lasting().count(),
        state: kustomization.status.last_applied_revision.to_string(),
        is_meant: is_named || explains(changed, case.now),
        child,
    };
    let Some(losses) = known(case.evidence, loss.clone())? else { return Ok(None) };
    let pruned = Pruned { case, applied_by: ReleaseRef::new(namespace, name), loss, losses };
    let refused =
        !pruned.loss.is_meant && if is_generated { pruned.is_one_of_refused() } else { !pruned.may_go(&kustomization) };
    Ok(refused.then(|| pruned.refusal(&kustomization)))
}

impl Kustomization<'_> {
    /// The objects that keep their names.
    fn lasting(&self) -> impl Iterator<Item = &str> {
        self.status.inventory.entries.iter().map(|entry| &*entry.id).filter(|id| !is_generated(id))
    }
}

impl Pruned<'_> {
    /// How many objects there were, and how many would be left.
    fn numbers(&self, kustomization: &Kustomization<'_>) -> (usize, usize) {
        let Self { case, loss, losses, .. } = self;
        let gone: BTreeSet<_> = losses.gone_beside(loss, case.now).collect();
        let gone = kustomization.lasting().filter(|id| gone.contains(id)).count() + losses.forgotten_beside(loss);
        let left = loss.children.saturating_sub(gone + 1);
        (losses.most(case.now).max(loss.children), left)
    }

    fn may_go(&self, kustomization: &Kustomization<'_>) -> bool {
        let (most, left) = self.numbers(kustomization);
        left > 0 && most - left <= self.case.policy.may_lose.of(most)
    }

    /// Generated objects go with the others, or stay with them.
    fn is_one_of_refused(&self) -> bool {
        self.losses.refused_beside(&self.loss, self.case.now).next().is_some()
    }

    fn refusal(&self, kustomization: &Kustomization<'_>) -> Refusal {
        let Self { case, applied_by, loss, losses } = self;
        let (most, left) = self.numbers(kustomization);
        let may_go = case.policy.may_lose.of(most);
        let sentence = format!(
            "{NAME} {applied_by} would prune {}, and have {left} of {most} objects left. Without a confirmation, at most {may_go} may go \
             in a day, and never the last.",
            case.subject()
        );
        let others = losses.refused_beside(loss, case.now).chain([loss.child.as_str()]);
        let confirmation = confirmation(("kustomization", applied_by), &others.collect::<Vec<_>>());
        let ways_out = WaysOut::from("repair its source");
        let ways_out = match confirmation {
            Some(confirmation) => {
                let ReleaseRef { namespace, name } = applied_by;
                let reconcile = command(&["flux", "reconcile", "kustomization", name, "-n", namespace]);
                ways_out.when("if they shall go", Way::from(confirmation).then(Step::run("run {}", reconcile)))
            }
            None => ways_out,
        };
        Refusal::new(sentence, ways_out.or(Step::release_override())).about(applied_by.clone())
    }
}

/// Whether an object of an inventory has a hash of its content in its name, so that every change gives it another name. Kustomize writes
/// ten hexadecimal digits, some as other letters.
fn is_generated(id: &str) -> bool {
    let Some(name) = id.strip_suffix("__ConfigMap").or_else(|| id.strip_suffix("__Secret")) else { return false };
    let hash = name.rsplit_once('-').map_or("", |(_, hash)| hash);
    hash.len() == 10 && hash.bytes().all(|letter| b"2456789bcdfghkmt".contains(&letter))
}

#[cfg(test)]
mod tests {
    use super::is_generated;

    #[test]
    fn a_generated_object_has_a_hash_in_its_name() {
        for id in ["shop_web-config-5g2f9h8k4m__ConfigMap", "shop_a-bfm8c2d7tk__Secret"] {
            assert!(is_generated(id), "{id}");
        }
        for id in [
            "shop_web__ConfigMap",
            "shop_web-5g2f9h8k4m_apps_Deployment",
            "shop_web-0123456789__ConfigMap",
            "shop___Secret",
        ] {
            assert!(!is_generated(id), "{id}");
        }
    }
}
