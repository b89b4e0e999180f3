//! The rule `extension-safety`.

use crate::facts::{ActorKind, DeclarationWrite};
use crate::owners::olm;
use crate::owners::olm::{CLUSTER_EXTENSION, OBJECT_SET_KINDS};
use crate::owners::olm::{ClusterExtension, ClusterObjectSet};
use crate::release::ReleaseRef;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, CheckedAll, Refusal, Rule};
use crate::rules::declarations::case::DeclarationCase;

/// The rule `extension-safety`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "extension-safety",
        owners: &[olm::NAME],
        mode: Mode::Warn,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        requests: Requests {
            operations: &[Operation::Create, Operation::Update, Operation::Delete],
            kinds: &[CLUSTER_EXTENSION, OBJECT_SET_KINDS[0], OBJECT_SET_KINDS[1]],
        },
        summary: "A ClusterExtension avoids settings that lose data, and leaves its revisions to OLM.",
        why: "SelfCertified upgrades ignore the upgrade graph of the catalog, and an unchecked CRD upgrade can drop \
              versions of stored objects.",
        allowed: "A ClusterExtension that follows the upgrade graph of its catalog; operator-controller archiving a \
              revision.",
        refused: "`upgradeConstraintPolicy: SelfCertified`; a person or a service account that deletes the ClusterObjectSet in use.",
        way_out: "Use CatalogProvided and Strict, and leave ClusterObjectSets to operator-controller.",
        settings: &[],
    },
    checks: &[Check::Declaration(check)],
};

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let extension = case.extension()?.map(risks).unwrap_or_default();
    let object_set = case.object_set()?.filter(|_| !is_olm(case)).and_then(by_hand);
    Ok(extension.into_iter().chain(object_set).collect())
}

/// Whether the actor is OLM, or tidies up for Kubernetes.
fn is_olm(case: &DeclarationCase<'_>) -> bool {
    case.policy.is_manager_or_tool(case.facts.actor.name)
        || !matches!(case.facts.actor.kind, ActorKind::Person | ActorKind::Pipeline | ActorKind::ServiceAccount)
}

/// The risks that a write introduces. Existing risks were already reported.
fn risks(written: &DeclarationWrite<'_, ClusterExtension<'_>>) -> Vec<Refusal> {
    let Some(after) = written.after.as_ref().filter(|_| !written.same_spec) else {
        return Vec::new();
    };
    let before = written.before.as_ref();
    let brought_in = |risk: fn(&ClusterExtension<'_>) -> bool| risk(after) && !before.is_some_and(risk);
    let mut found = Vec::new();
    if brought_in(|extension| extension.spec.source.catalog.upgrade_constraint_policy == "SelfCertified") {
        let sentence = format!(
            "ClusterExtension {} ignores the catalog's upgrade graph (SelfCertified): downgrades and skipped versions can lose data.",
            written.name
        );
        let way_out = "Use CatalogProvided, and SelfCertified only for the one step that needs it.";
        found.push(Refusal::new(sentence, way_out).at("/spec/source/catalog/upgradeConstraintPolicy"));
    }
    if brought_in(|extension| extension.spec.install.preflight.crd_upgrade_safety.enforcement == "None") {
        let sentence = format!(
            "ClusterExtension {} upgrades custom resource definitions unchecked: stored objects can become invalid or lose fields.",
            written.name
        );
        let way_out = "Set enforcement to Strict once this upgrade is done.";
        found.push(Refusal::new(sentence, way_out).at("/spec/install/preflight/crdUpgradeSafety/enforcement"));
    }
    found
}

/// An edit or deletion by somebody else of a revision that operator-controller manages.
fn by_hand(written: &DeclarationWrite<'_, ClusterObjectSet<'_>>) -> Option<Refusal> {
    let before = written.before.as_ref()?;
    let extension = before.extension()?;
    if written.same_spec || before.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let act = if written.after.is_some() { "edited" } else { "deleted" };
    let state = &before.spec.lifecycle_state;
    let sentence = format!(
        "{} {} ({state}) is a revision of ClusterExtension {extension}, and is {act} by hand.",
        written.kind, written.name
    );
    let way_out = "Change the ClusterExtension. operator-controller creates and archives its revisions.";
    Some(Refusal::new(sentence, way_out).about(ReleaseRef::new(written.namespace, extension)))
}
