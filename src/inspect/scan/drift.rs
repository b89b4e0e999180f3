//! Whether an object is what the manifest of its release declares, by the notion of the rule `manual-edit`: what is declared
//! is compared by what it means, and what is not declared is free.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Check, Finding};
use crate::engine::evidence::ObjectKey;
use crate::engine::json::Path;
use crate::engine::managed::{Declared, Fields, declared_by, delta, is_custom, touched};
use crate::engine::object::Metadata;
use crate::engine::policy::Policy;
use crate::engine::release::{ReleaseRef, Revision};
use crate::engine::rules::wording::{MAX_ENUMERATED, fields};

/// Under which name the controllers of Kubernetes write, autoscalers among them.
const CONTROLLERS: &str = "kube-controller-manager";

/// A revision whose manifest declares objects.
#[derive(Debug, Clone)]
pub(super) struct Declaring {
    pub(super) release: ReleaseRef,
    pub(super) revision: Revision,
}

/// The declared fields in which the JSON text of an object differs from its document. `resource` is the plural of its kind.
///
/// # Errors
/// When the object's metadata do not read.
pub(super) fn drifted(
    document: &Value,
    live: &str,
    object: &ObjectKey,
    resource: &str,
    policy: &Policy,
) -> Result<Vec<Path>, String> {
    let raw: &RawValue = serde_json::from_str(live).map_err(|error| error.to_string())?;
    let metadata = Metadata::of(raw).map_err(|error| error.to_string())?;
    let api_version = document["apiVersion"].as_str().unwrap_or_default();
    let written = if is_custom(document) {
        Fields::read(metadata.managed_fields).of(api_version, |_| true)
    } else {
        Declared::nothing()
    };
    let declared = document.to_string();
    let Some(delta) = delta(&declared, live) else {
        return Ok(Vec::new());
    };
    let scaled = policy
        .scalable_resource(&object.group, resource)
        .filter(|_| is_autoscaled(metadata.managed_fields))
        .map(|scalable| &scalable.replicas);
    let mut fields = touched(&[declared_by(document, &written)], &delta);
    fields.retain(|field| {
        let pointer = field.pointer();
        let ignored = |ignored: &crate::engine::policy::IgnoredFields| {
            ignored.covers(&object.kind, &object.namespace, &object.name, &pointer)
        };
        scaled != Some(&pointer) && !policy.ignore.iter().any(ignored)
    });
    Ok(fields)
}

/// Whether a controller set the number of replicas last: nobody else's write through the scale subresource has its name.
fn is_autoscaled(managed_fields: Option<&RawValue>) -> bool {
    let entries = managed_fields.and_then(|fields| serde_json::from_str::<Vec<Value>>(fields.get()).ok());
    entries.into_iter().flatten().any(|entry| entry["subresource"] == "scale" && entry["manager"] == CONTROLLERS)
}

/// What to say of fields that differ.
pub(super) fn differing(declaring: &Declaring, object: ObjectKey, differing: &[Path]) -> Finding {
    let verb = if differing.len() == 1 { "differs" } else { "differ" };
    let message = format!(
        "{}: {} {verb} from what revision {} declares.",
        subject(&object),
        fields(differing, MAX_ENUMERATED),
        declaring.revision
    );
    let way_out = "Set it back to the declared value, which is no edit; or take it over into the chart and upgrade.";
    finding(Check::Drift, declaring, object, message, way_out)
}

/// What to say of an object that is gone.
pub(super) fn missing(declaring: &Declaring, object: ObjectKey) -> Finding {
    let message = format!("{} is declared by revision {}, and is not there.", subject(&object), declaring.revision);
    finding(
        Check::MissingObject,
        declaring,
        object,
        message,
        "Upgrade to the same chart and values: that makes it again.",
    )
}

/// Whether an object may go by itself: a Job that is cleaned up once it has ended.
pub(super) fn may_vanish(document: &Value) -> bool {
    document["kind"] == "Job" && document["spec"]["ttlSecondsAfterFinished"].is_number()
}

fn subject(ObjectKey { kind, namespace, name, .. }: &ObjectKey) -> String {
    let scope = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    format!("{kind} {scope}{name}")
}

fn finding(check: Check, declaring: &Declaring, object: ObjectKey, message: String, way_out: &str) -> Finding {
    let release = Some(declaring.release.clone());
    Finding { check, release, object: Some(object), message, way_out: way_out.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"replicas": 2, "template": {"spec": {"containers": [
                {"name": "web", "image": "nginx:1", "ports": [{"containerPort": 80}],
                 "resources": {"limits": {"cpu": "1000m"}}, "env": []},
            ]}}},
        })
    }

    /// As the API server keeps it: with defaults, another order, a sidecar and an account of fields.
    fn live() -> Value {
        json!({
            "kind": "Deployment", "apiVersion": "apps/v1",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u", "generation": 3,
                "labels": {"app": "web", "app.kubernetes.io/managed-by": "Helm"},
                "annotations": {"meta.helm.sh/release-name": "web"}, "managedFields": [],
            },
            "spec": {
                "progressDeadlineSeconds": 600, "replicas": 2,
                "template": {"metadata": {"creationTimestamp": null}, "spec": {"containers": [
                    {"name": "sidecar", "image": "proxy:1"},
                    {"name": "web", "image": "nginx:1", "ports": [{"containerPort": 80, "protocol": "TCP"}],
                     "resources": {"limits": {"cpu": "1"}}, "terminationMessagePath": "/dev/termination-log"},
                ]}},
            },
            "status": {"replicas": 2},
        })
    }

    fn told(document: &Value, live: &Value, policy: &Policy) -> Vec<String> {
        let object = ObjectKey::new("apps", "Deployment", "shop", "web");
        let found = drifted(document, &live.to_string(), &object, "deployments", policy).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    fn edited(pointer: &str, value: Value) -> Value {
        let mut live = live();
        *live.pointer_mut(pointer).unwrap() = value;
        live
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn defaults_and_what_is_not_declared_are_no_drift() {
        let policy = Policy::shipped().unwrap();
        assert_eq!(told(&document(), &live(), &policy), NOTHING);
        assert_eq!(told(&document(), &edited("/spec/progressDeadlineSeconds", json!(60)), &policy), NOTHING);
        let labels = json!({"app": "web", "team": "blue"});
        assert_eq!(told(&document(), &edited("/metadata/labels", labels), &policy), NOTHING);
    }

    #[test]
    fn a_declared_field_that_differs_or_is_gone_is_named() {
        let policy = Policy::shipped().unwrap();
        let containers = "/spec/template/spec/containers";
        for (pointer, value, wanted) in [
            ("/spec/replicas", json!(5), "spec.replicas"),
            ("/metadata/labels", json!({}), "metadata.labels.app"),
            (&format!("{containers}/1/image"), json!("evil:1"), "spec.template.spec.containers[web].image"),
            (&format!("{containers}/1/ports"), json!([]), "spec.template.spec.containers[web].ports[80/TCP]"),
            (containers, json!([{"name": "sidecar"}]), "spec.template.spec.containers[web]"),
            ("/spec/template", json!(null), "spec.template.spec"),
        ] {
            assert_eq!(told(&document(), &edited(pointer, value), &policy), [wanted], "{pointer}");
        }
    }

    #[test]
    fn what_an_autoscaler_scaled_and_what_the_policy_ignores_is_no_drift() {
        let shipped = Policy::shipped().unwrap();
        let scaled = |manager: &str, subresource: &str| {
            let mut live = edited("/spec/replicas", json!(7));
            live["metadata"]["managedFields"] = json!([{"manager": manager, "subresource": subresource}]);
            told(&document(), &live, &shipped)
        };
        assert_eq!(scaled(CONTROLLERS, "scale"), NOTHING);
        assert_eq!(scaled("kubectl", "scale"), ["spec.replicas"]);
        assert_eq!(scaled(CONTROLLERS, "status"), ["spec.replicas"]);
        let text = include_str!("../../../policies/cluster.yaml");
        let ignoring = format!("{text}  - paths: [/spec/replicas]\n    target: {{kind: Deployment}}\n");
        let ignoring = Policy::parse(&ignoring, std::path::Path::new("cluster.yaml")).unwrap();
        assert_eq!(told(&document(), &edited("/spec/replicas", json!(7)), &ignoring), NOTHING);
    }

    #[test]
    fn secrets_are_told_by_their_keys_alone() {
        let document =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "hunter2"}});
        let live = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": value}});
        let policy = Policy::shipped().unwrap();
        assert_eq!(told(&document, &live("aHVudGVyMg=="), &policy), NOTHING);
        assert_eq!(told(&document, &live("b3RoZXI="), &policy), ["data.key"]);
    }

    #[test]
    fn only_a_job_that_cleans_up_may_vanish() {
        assert!(may_vanish(&json!({"kind": "Job", "spec": {"ttlSecondsAfterFinished": 60}})));
        assert!(!may_vanish(&json!({"kind": "Job", "spec": {}})));
        assert!(!may_vanish(&document()));
    }
}
