//! What an Application says of an object that its mark names.

pub(crate) mod dropped_applications;
pub(in crate::owners) mod operation;
pub(in crate::owners) mod protected_release;
#[cfg(test)]
mod tests;

use jsonptr::PointerBuf;

use crate::evidence::{Evidence, question};
use crate::object::ObjectKey;
use crate::owners::argo::{APPLICATION, Application, CONTROLLER, GROUP, IgnoredDifference, TRACKING, Tracking};
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
    (namespace, name): (&str, &str),
) -> Result<Option<Applier>, Undecided> {
    let tracking = object.marks.each().find(|mark| mark.key == TRACKING).and_then(|mark| mark.value);
    if !tracking.and_then(Tracking::parse).is_some_and(|tracking| tracking.names(&object.key)) {
        return Ok(None);
    }
    for namespace in namespaces(object.policy, namespace) {
        let Some(text) = ask(evidence, question::Object(ObjectKey::new(GROUP, APPLICATION, namespace, name)))? else {
            continue;
        };
        let read = serde_json::from_str::<Application<'_>>(text);
        let read = read
            .map_err(|why| Undecided::Unavailable(format!("{APPLICATION} {namespace}/{name} cannot be read: {why}")))?;
        if read.lists(&object.key) {
            let rules = read.spec.ignore_differences.iter().filter(|rule| rule.is_about(&object.key));
            let ignored = rules.flat_map(IgnoredDifference::pointers).collect();
            let title = format!("{APPLICATION} {namespace}/{name}");
            return Ok(Some(Applier { title, ignored, ..Applier::default() }));
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

impl IgnoredDifference<'_> {
    fn is_about(&self, key: &ObjectKey) -> bool {
        // The author of a glob may leave any field to others: a longer look would only narrow that.
        let glob = |pattern: &str, text: &str| pattern == text || pattern.contains(GLOB);
        let is_any = |wanted: &str, text: &str| wanted.is_empty() || wanted == text;
        glob(&self.group, &key.group)
            && glob(&self.kind, &key.kind)
            && is_any(&self.name, &key.name)
            && is_any(&self.namespace, &key.namespace)
    }

    /// The fields, as pointers. Of an expression, the field that it starts from: everything below is left to others.
    fn pointers(&self) -> impl Iterator<Item = PointerBuf> {
        let given = self.json_pointers.iter().filter_map(|pointer| PointerBuf::parse(pointer.as_ref()).ok());
        given.chain(self.jq_path_expressions.iter().map(|expression| start_of(expression)))
    }
}

/// The path at the start of a jq expression, such as `.spec.template` of `.spec.template[] | select(.name == "a")`.
fn start_of(expression: &str) -> PointerBuf {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut pointer = PointerBuf::root();
    let mut rest = expression.trim_start();
    while let Some(after) = rest.strip_prefix('.') {
        let end = after.find(|letter| !is_of_name(letter)).unwrap_or(after.len());
        let (name, tail) = after.split_at(end);
        if name.is_empty() {
            break;
        }
        pointer.push_back(name);
        rest = tail;
    }
    pointer
}
