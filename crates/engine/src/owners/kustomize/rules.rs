//! What a Kustomization says of an object with its labels.

pub(crate) mod dropped_inventory;
pub(in crate::owners) mod protected_release;
#[cfg(test)]
mod tests;

use crate::evidence::{Evidence, question};
use crate::managed::LeftToOthers;
use crate::object::{ObjectKey, service_account_user};
use crate::owners::flux::{DeclaredObject, DriftDetection};
use crate::owners::homes::home_of;
use crate::owners::kustomize::{CONTROLLER, GROUP, Kustomization, NAME, RECONCILE, SSA};
use crate::owners::rules::{AppliedObject, Applier};
use crate::rules::proven_status::namespaces_of_listed;
use crate::rules::undecided::{Undecided, ask};

/// The Kustomization that applies an object; `None` if the labels name none that does, or the controller leaves the object alone.
pub(in crate::owners) fn applier(
    evidence: &Evidence,
    object: &AppliedObject<'_>,
    (namespace, name): (&str, &str),
) -> Result<Option<Applier>, Undecided> {
    if is_left_alone(object) || is_of_flux_itself(object, (namespace, name)) {
        return Ok(None);
    }
    let Some(read) = at_work(evidence, &object.key, (namespace, name))? else { return Ok(None) };
    let account = &*read.spec.service_account_name;
    let user = (!account.is_empty()).then(|| service_account_user(namespace, account));
    let is_suspended = read.spec.suspend;
    let home = home_of(&object.key, &read.spec.target_namespace, namespace);
    let is_protected = read.metadata.is_protected();
    // Rules that take too much work ignore nothing.
    let ignore = DriftDetection { ignore: read.spec.into_read().ignore };
    let pointers = ignore.ignored(&declared(object), object.effort).unwrap_or_default().pointers;
    let left = LeftToOthers { pointers, ..LeftToOthers::default() };
    let title = format!("{NAME} {namespace}/{name}");
    Ok(Some(Applier { title, user, is_suspended, home, is_protected, left, ..Applier::default() }))
}

/// The Kustomization with this name if it applies the object, and is not being deleted.
fn at_work<'e>(
    evidence: &'e Evidence,
    object: &ObjectKey,
    (namespace, name): (&str, &str),
) -> Result<Option<Kustomization<'e>>, Undecided> {
    let Some(text) = ask(evidence, question::Object(ObjectKey::new(GROUP, NAME, namespace, name)))? else {
        return Ok(None);
    };
    let read = serde_json::from_str::<Kustomization<'_>>(text);
    let read =
        read.map_err(|why| Undecided::Unavailable(format!("{NAME} {namespace}/{name} cannot be read: {why}")))?;
    let is_here = read.metadata.deletion_timestamp.is_none() && read.spec.kube_config.is_none();
    Ok(Some(read).filter(|read| is_here && read.lists(object)))
}

/// Whether an annotation that the controller itself has applied makes it leave the object alone. Where it is unknown who has, it does not.
fn is_left_alone(object: &AppliedObject<'_>) -> bool {
    object.marks.switches.iter().any(|(key, value)| {
        let leaves = match *key {
            RECONCILE => value.eq_ignore_ascii_case("disabled"),
            SSA => ["ignore", "ifnotpresent"].contains(&value.to_ascii_lowercase().as_str()),
            _ => false,
        };
        leaves && (object.wrote)(&["metadata", "annotations", *key]).unwrap_or(false)
    })
}

/// Whether the object belongs to Flux's own installation: `flux bootstrap` applies it under the account of a person. It creates a
/// Kustomization with the name of the controller's namespace, which may contain more.
fn is_of_flux_itself(object: &AppliedObject<'_>, (namespace, name): (&str, &str)) -> bool {
    let is_bootstrapped = name == namespace
        && namespaces_of_listed(object.policy, |account| account == CONTROLLER).any(|it| it == namespace);
    is_bootstrapped && (object.key.namespace.is_empty() || object.key.namespace == namespace)
}

/// The object, as far as the request shows how it is declared.
fn declared<'o>(AppliedObject { key, version, .. }: &'o AppliedObject<'_>) -> DeclaredObject<'o> {
    let ObjectKey { group, kind, namespace, name } = key;
    DeclaredObject { group, version, kind, namespace, name, ..DeclaredObject::default() }
}
