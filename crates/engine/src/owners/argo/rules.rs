//! What an Application says of an object that its mark names.

pub(crate) mod dropped_applications;
pub(in crate::owners) mod operation;
pub(in crate::owners) mod protected_release;
#[cfg(test)]
mod tests;

use crate::evidence::{Evidence, question};
use crate::object::ObjectKey;
use crate::owners::argo::ignored::{self, SETTINGS};
use crate::owners::argo::{APPLICATION, Application, CONTROLLER, GROUP, TRACKING, Tracking};
use crate::owners::homes::home_of;
use crate::owners::rules::{AppliedObject, Applier};
use crate::policy::Policy;
use crate::rules::proven_status::{GLOB, namespaces_of_listed};
use crate::rules::undecided::{Undecided, ask};

/// The namespace in which the manifests of Argo CD install it.
const USUAL_NAMESPACE: &str = "argocd";

/// The Application that applies an object; `None` if the mark names another object, or no Application that does.
pub(in crate::owners) fn applier(
    evidence: &Evidence,
    object: &AppliedObject<'_>,
    (marked, name): (&str, &str),
) -> Result<Option<Applier>, Undecided> {
    let tracking = object.marks.each().find(|mark| mark.key == TRACKING).and_then(|mark| mark.value);
    // A label names no object, so it can only be proven.
    let names = |tracking| Tracking::parse(tracking).is_some_and(|tracking| tracking.names(&object.key));
    if !tracking.is_none_or(names) {
        return Ok(None);
    }
    for namespace in namespaces(object.policy, marked) {
        let Some(text) = ask(evidence, question::Object(ObjectKey::new(GROUP, APPLICATION, namespace, name)))? else {
            continue;
        };
        let read = serde_json::from_str::<Application<'_>>(text);
        let read = read
            .map_err(|why| Undecided::Unavailable(format!("{APPLICATION} {namespace}/{name} cannot be read: {why}")))?;
        // It may list objects of the same names in another cluster.
        if read.spec.destination.is_here() && read.lists(&object.key) {
            let mut left = ignored::in_application(&read.spec.ignore_differences, &object.key, object.effort);
            if let Some(settings) = settings(evidence, object.policy)? {
                left.extend(ignored::everywhere(settings, &object.key, object.effort));
            }
            let title = format!("{APPLICATION} {namespace}/{name}");
            let home = home_of(&object.key, &read.spec.destination.namespace, namespace);
            let is_protected = read.metadata.is_protected();
            // An Application has no status subresource: a tenant can write the status of one in a namespace of its own.
            let may_be_forged = !namespaces(object.policy, "").contains(&namespace);
            return Ok(Some(Applier { title, home, is_protected, may_be_forged, left, ..Applier::default() }));
        }
    }
    Ok(None)
}

/// The settings of Argo CD. Where they cannot be read, it ignores nothing by them.
fn settings<'e>(evidence: &'e Evidence, policy: &Policy) -> Result<Option<&'e str>, Undecided> {
    for namespace in namespaces(policy, "") {
        match ask(evidence, question::Object(ObjectKey::new("", "ConfigMap", namespace, SETTINGS))) {
            Err(need @ Undecided::Ask(_)) => return Err(need),
            Ok(Some(text)) => return Ok(Some(text)),
            Ok(None) | Err(_) => {}
        }
    }
    Ok(None)
}

/// The namespaces where the Application may be: the one in the mark, or those of Argo CD's controller in the policy.
fn namespaces<'n>(policy: &'n Policy, marked: &'n str) -> Vec<&'n str> {
    if !marked.is_empty() {
        return vec![marked];
    }
    // OpenShift's operator puts the name of an instance in front.
    let listed = namespaces_of_listed(policy, |name| name.ends_with(CONTROLLER));
    let listed: Vec<_> = listed.filter(|namespace| !namespace.contains(GLOB)).collect();
    if listed.is_empty() { vec![USUAL_NAMESPACE] } else { listed }
}
