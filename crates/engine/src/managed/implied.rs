//! What a document declares by leaving it out: fields of a few kinds that undo or replace what the document says.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::declared::Declared;
use crate::object::group_of;

/// The annotations in which `autoscaling/v1` has the fields of later versions, by the field.
const OLD_AUTOSCALING: [(&str, &str); 2] =
    [("metrics", "autoscaling.alpha.kubernetes.io/metrics"), ("behavior", "autoscaling.alpha.kubernetes.io/behavior")];

/// The fields that a document declares by leaving them out. `api_version` is that of the edited object.
///
/// - A Job is deleted with its pods when `ttlSecondsAfterFinished` is over.
/// - The control plane overwrites the rules of a ClusterRole that has an `aggregationRule`.
/// - A NetworkPolicy without `ingress` or `egress` admits nothing, and its types follow from what it has.
/// - A HorizontalPodAutoscaler has its metrics elsewhere in `autoscaling/v1`.
#[must_use]
pub fn implied_by(document: &Value, api_version: &str) -> Option<Declared<'static>> {
    let group = document.get("apiVersion").and_then(Value::as_str).map(group_of)?;
    let spec = &document["spec"];
    match (group, document["kind"].as_str()?) {
        ("batch", "Job") => Some(within("spec", left_out(spec, &["ttlSecondsAfterFinished"]))),
        ("rbac.authorization.k8s.io", "ClusterRole") => Some(left_out(document, &["aggregationRule"])),
        ("networking.k8s.io" | "extensions", "NetworkPolicy") => {
            Some(within("spec", left_out(spec, &["ingress", "egress", "policyTypes"])))
        }
        ("autoscaling", "HorizontalPodAutoscaler") => Some(of_autoscaler(spec, api_version)),
        _ => None,
    }
}

/// The fields of an autoscaler in the other versions of its API.
fn of_autoscaler(spec: &Value, api_version: &str) -> Declared<'static> {
    if api_version != "autoscaling/v1" {
        let metrics = has(spec, "targetCPUUtilizationPercentage").then_some("metrics");
        return within("spec", leaves(metrics, None));
    }
    let annotations =
        OLD_AUTOSCALING.into_iter().filter(|(field, _)| has(spec, field)).map(|(_, annotation)| annotation);
    let target = has(spec, "metrics").then_some("targetCPUUtilizationPercentage");
    Declared::Fields(BTreeMap::from([
        (Cow::Borrowed("spec"), absent(target)),
        (Cow::Borrowed("metadata"), within("annotations", absent(annotations))),
    ]))
}

fn has(place: &Value, name: &str) -> bool {
    place.get(name).is_some_and(|value| !value.is_null())
}

fn within(field: &'static str, declared: Declared<'static>) -> Declared<'static> {
    Declared::Fields(BTreeMap::from([(Cow::Borrowed(field), declared)]))
}

/// Those of the fields that a part of a document leaves out, declared as absent.
fn left_out(place: &Value, names: &[&'static str]) -> Declared<'static> {
    absent(names.iter().copied().filter(|name| !has(place, name)))
}

/// Fields that are declared as absent: any value is a change, and taking it away again is none.
fn absent(names: impl IntoIterator<Item = &'static str>) -> Declared<'static> {
    leaves(names, Some(&Value::Null))
}

/// Fields with a value, or with one that the document says in other words.
fn leaves(names: impl IntoIterator<Item = &'static str>, value: Option<&'static Value>) -> Declared<'static> {
    Declared::Fields(
        names.into_iter().map(|name| (Cow::Borrowed(name), Declared::Leaf(value.map(Cow::Borrowed)))).collect(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::effort::Effort;
    use crate::managed::{delta, touched};

    fn changed_by(document: &Value, api_version: &str, old: &Value, new: &Value) -> Vec<String> {
        let (old, new) = (old.to_string(), new.to_string());
        let declared = implied_by(document, api_version).unwrap();
        let touched = delta(&old, &new).map(|delta| touched(&[declared], &delta, &|_| false, &Effort::of_review()));
        touched.unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn fields_that_undo_a_document_are_declared_as_absent() {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {}}});
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []});
        let policy = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
        });
        for (document, added, wanted) in [
            (&job, json!({"spec": {"ttlSecondsAfterFinished": 0}}), "spec.ttlSecondsAfterFinished"),
            (&role, json!({"aggregationRule": {"clusterRoleSelectors": [{}]}}), "aggregationRule"),
            (&policy, json!({"spec": {"ingress": [{}]}}), "spec.ingress"),
            (&policy, json!({"spec": {"egress": [{}]}}), "spec.egress"),
        ] {
            let before = if added.get("spec").is_some() { json!({"spec": {}}) } else { json!({}) };
            assert_eq!(changed_by(document, "", &before, &added), [wanted]);
            assert_eq!(changed_by(document, "", &added, &before), [""; 0], "reverted: {wanted}");
        }
        let open = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}, "ingress": [{}]},
        });
        let types = |types: &[&str]| json!({"spec": {"policyTypes": types}});
        assert_eq!(changed_by(&open, "", &types(&["Ingress"]), &types(&["Egress"])), ["spec.policyTypes"]);
        assert!(implied_by(&json!({"apiVersion": "v1", "kind": "Service"}), "v1").is_none());
    }

    #[test]
    fn an_autoscaler_is_guarded_in_each_version_of_its_api() {
        let hpa =
            |spec: Value| json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec});
        let new = hpa(json!({"metrics": [{}]}));
        let old = hpa(json!({"targetCPUUtilizationPercentage": 80}));
        let target = |percentage: u32| json!({"spec": {"targetCPUUtilizationPercentage": percentage}});
        assert_eq!(
            changed_by(&new, "autoscaling/v1", &target(80), &target(10)),
            ["spec.targetCPUUtilizationPercentage"]
        );
        let annotated =
            |text: &str| json!({"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": text}}});
        assert_eq!(changed_by(&new, "autoscaling/v1", &annotated("a"), &annotated("b")).len(), 1);
        let metrics = |name: &str| json!({"spec": {"metrics": [{"name": name}]}});
        assert_eq!(changed_by(&old, "autoscaling/v2", &metrics("a"), &metrics("b")), ["spec.metrics"]);
        assert_eq!(changed_by(&new, "autoscaling/v2", &target(80), &target(10)), [""; 0]);
    }
}
