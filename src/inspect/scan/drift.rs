//! Compares an object with the manifest of its release, as the rule `manual-edit` does: declared fields are compared by
//! meaning, and other fields are ignored.

use interlock_engine::effort::Effort;
use interlock_engine::json::{FieldPath, RawObject, redacted};
use interlock_engine::managed::{
    Declared, ManagedFields, Owner, declared_by, delta, drifted as differing_fields, is_custom_resource,
};
use interlock_engine::object::{Metadata, ObjectKey};
use interlock_engine::owners::Driver;
use interlock_engine::owners::Marks;
use interlock_engine::policy::{Policy, ignored_fields};
use interlock_engine::release::{ReleaseRef, Revision};
use interlock_engine::rules::objects::exceptions::ExceptedFields;
use interlock_engine::rules::wording::{MAX_ENUMERATED, command, fields};
use serde_json::Value;
use serde_json::value::RawValue;

use super::finding::Finding;
use super::finding_kind::FindingKind;

/// The field manager of the Kubernetes controllers, including autoscalers.
const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// A revision whose manifest declares objects.
#[derive(Debug, Clone)]
pub(super) struct Declaring {
    pub(super) release: ReleaseRef,
    pub(super) revision: Revision,
}

/// The declared fields in which an object, as JSON text, differs from its document in the manifest. Fields that may be edited are
/// left out. `resource` is the plural of the object's kind. `drivers` are the HelmReleases for which Flux has installed the
/// release.
///
/// # Errors
/// When the object's metadata cannot be parsed.
pub(super) fn drifted(
    document: &Value,
    live: &str,
    object: &ObjectKey,
    resource: &str,
    (policy, drivers): (&Policy, &[&Driver]),
) -> Result<Vec<FieldPath>, String> {
    let raw: &RawValue = serde_json::from_str(live).map_err(|error| redacted(&error))?;
    let metadata = Metadata::of(raw.into()).map_err(|error| redacted(&error))?;
    let api_version = document["apiVersion"].as_str().unwrap_or_default();
    let effort = Effort::of_review();
    let written = if is_custom_resource(document) {
        ManagedFields::read(metadata.managed_fields, &effort).of(api_version, |_| true)
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
    let is_ignored = ignored_fields(&policy.ignore, &object.kind, &object.namespace, &object.name);
    let marks = Marks::of(|key| metadata.label(key), |key| metadata.annotation(key));
    let excepted = marks.as_ref().filter(|_| policy.drift_exceptions.honour_drift_ignore).and_then(|marks| {
        let named = (object.kind.as_str(), object.namespace.as_str(), object.name.as_str());
        ExceptedFields::of(drivers, document, named, marks, &effort).ok()
    });
    let declared = declared_by(document, &written);
    Ok(differing_fields(
        declared,
        &delta,
        &|field: &FieldPath| {
            let pointer = field.pointer();
            scaled == Some(&pointer)
                || is_ignored(&pointer)
                || excepted.as_ref().is_some_and(|excepted| excepted.contains(field))
        },
        &effort,
    ))
}

/// Whether a controller set the number of replicas last: only its writes through the scale subresource have this field
/// manager.
fn is_autoscaled(managed_fields: Option<RawObject<'_>>) -> bool {
    let entries = managed_fields.and_then(|fields| serde_json::from_str::<Vec<Value>>(fields.get()).ok());
    entries.into_iter().flatten().any(|entry| entry["subresource"] == "scale" && entry["manager"] == CONTROLLER_MANAGER)
}

/// The finding for fields that differ.
pub(super) fn differing(declaring: &Declaring, object: ObjectKey, differing: &[FieldPath]) -> Finding {
    let verb = if differing.len() == 1 { "differs" } else { "differ" };
    let message = format!(
        "{}: {} {verb} from the manifest of revision {}.",
        subject(&object),
        fields(differing, MAX_ENUMERATED),
        declaring.revision
    );
    let way_out = "Set it back to the declared value, which is always allowed; or change the chart or its values and \
        upgrade.";
    finding(FindingKind::Drift, declaring, object, message, way_out)
}

/// The finding for an object that also has the marks of another owner, which wrote it last: the release has moved, and its manifest says
/// nothing of the object any longer.
pub(super) fn adopted(declaring: &Declaring, object: &ObjectKey, live: &str) -> Option<Finding> {
    let metadata = Metadata::of(RawObject::delimited(live)).ok()?;
    let marks = Marks::of(|key| metadata.label(key), |key| metadata.annotation(key))?;
    let marks = marks.newest_first(metadata.managed_fields);
    let (Owner::Applied { program, kind, name, .. }, Some(_)) = (&marks.owner, &marks.other) else { return None };
    let message = format!(
        "{}: {program}'s {kind} {name} has adopted it, and the records of the release are still there.",
        subject(object)
    );
    let ReleaseRef { namespace, name } = &declaring.release;
    let delete = command(&["kubectl", "delete", "secret", "-n", namespace, "-l", &format!("owner=helm,name={name}")]);
    let way_out = format!("If all of the release has moved, delete its records: {delete}. Its objects stay.");
    Some(finding(FindingKind::AdoptedObject, declaring, object.clone(), message, &way_out))
}

/// The finding for an object that does not exist.
pub(super) fn missing(declaring: &Declaring, object: ObjectKey) -> Finding {
    let message = format!("{} does not exist, but revision {} declares it.", subject(&object), declaring.revision);
    finding(
        FindingKind::MissingObject,
        declaring,
        object,
        message,
        "Upgrade to the same chart and values, which creates it again.",
    )
}

/// Whether an object may be deleted automatically: a Job with a TTL.
pub(super) fn may_vanish(document: &Value) -> bool {
    document["kind"] == "Job" && document["spec"]["ttlSecondsAfterFinished"].is_number()
}

fn subject(ObjectKey { kind, namespace, name, .. }: &ObjectKey) -> String {
    let scope = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    format!("{kind} {scope}{name}")
}

fn finding(kind: FindingKind, declaring: &Declaring, object: ObjectKey, message: String, way_out: &str) -> Finding {
    let release = Some(declaring.release.clone());
    Finding { kind, release, object: Some(object), message, way_out: way_out.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_that_another_owner_wrote_last_is_adopted() {
        let live = |helm: &str, argo: &str| {
            let entry = |manager: &str, time: &str| json!({"manager": manager, "time": time});
            json!({"metadata": {
                "name": "web", "namespace": "shop", "labels": {"app.kubernetes.io/managed-by": "Helm"},
                "annotations": {
                    "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop",
                    "argocd.argoproj.io/tracking-id": "web:apps/Deployment:shop/web",
                },
                "managedFields": [entry("helm", helm), entry("argocd-controller", argo)],
            }})
            .to_string()
        };
        let (early, late) = ("2026-11-01T10:00:00Z", "2026-11-20T10:00:00Z");
        let declaring = Declaring { release: ReleaseRef::new("shop", "web"), revision: Revision(2) };
        let key = ObjectKey::new("apps", "Deployment", "shop", "web");
        let finding = adopted(&declaring, &key, &live(early, late)).unwrap();
        assert!(finding.message.contains("Argo CD's Application web has adopted it"), "{}", finding.message);
        assert!(
            finding.way_out.contains("kubectl delete secret -n shop -l 'owner=helm,name=web'"),
            "{}",
            finding.way_out
        );
        assert!(adopted(&declaring, &key, &live(late, early)).is_none());
    }

    fn document() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"replicas": 2, "template": {"spec": {"containers": [
                {"name": "web", "image": "nginx:1", "ports": [{"containerPort": 80}],
                 "resources": {"limits": {"cpu": "1000m"}}, "env": []},
            ]}}},
        })
    }

    /// As stored: with defaults, another order, a sidecar and managedFields.
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

    fn drift(document: &Value, live: &Value, policy: &Policy) -> Vec<String> {
        let object = ObjectKey::new("apps", "Deployment", "shop", "web");
        let found = drifted(document, &live.to_string(), &object, "deployments", (policy, &[])).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    fn edited(pointer: &str, value: Value) -> Value {
        let mut live = live();
        *live.pointer_mut(pointer).unwrap() = value;
        live
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn defaults_and_undeclared_fields_are_no_drift() {
        let policy = Policy::shipped().unwrap();
        assert_eq!(drift(&document(), &live(), &policy), NOTHING);
        assert_eq!(drift(&document(), &edited("/spec/progressDeadlineSeconds", json!(60)), &policy), NOTHING);
        let labels = json!({"app": "web", "team": "blue"});
        assert_eq!(drift(&document(), &edited("/metadata/labels", labels), &policy), NOTHING);
    }

    #[test]
    fn a_declared_field_that_differs_or_is_missing_is_named() {
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
            assert_eq!(drift(&document(), &edited(pointer, value), &policy), [wanted], "{pointer}");
        }
    }

    #[test]
    fn autoscaled_replicas_and_ignored_fields_are_no_drift() {
        let shipped = Policy::shipped().unwrap();
        let scaled = |manager: &str, subresource: &str| {
            let mut live = edited("/spec/replicas", json!(7));
            live["metadata"]["managedFields"] = json!([{"manager": manager, "subresource": subresource}]);
            drift(&document(), &live, &shipped)
        };
        assert_eq!(scaled(CONTROLLER_MANAGER, "scale"), NOTHING);
        assert_eq!(scaled("kubectl", "scale"), ["spec.replicas"]);
        assert_eq!(scaled(CONTROLLER_MANAGER, "status"), ["spec.replicas"]);
        let text = include_str!("../../../policies/cluster.yaml");
        let ignoring = format!("{text}ignore:\n  - paths: [/spec/replicas]\n    target: {{kind: Deployment}}\n");
        let ignoring = Policy::parse(&ignoring, std::path::Path::new("cluster.yaml")).unwrap();
        assert_eq!(drift(&document(), &edited("/spec/replicas", json!(7)), &ignoring), NOTHING);
    }

    #[test]
    fn fields_that_drift_correction_ignores_are_no_drift() {
        let driver = |ignore: Value| {
            let object = json!({
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"driftDetection": {"mode": "enabled", "ignore": ignore}},
                "status": {"storageNamespace": "shop", "history": [{"name": "web", "namespace": "shop", "status": "deployed"}]},
            });
            Driver::read(&object.to_string()).unwrap()
        };
        let drifted_with = |drivers: &[&Driver]| {
            let mut live = edited("/spec/replicas", json!(7));
            live["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = "shop".into();
            let (object, policy) = (ObjectKey::new("apps", "Deployment", "shop", "web"), Policy::shipped().unwrap());
            drifted(&document(), &live.to_string(), &object, "deployments", (&policy, drivers)).unwrap().len()
        };
        let replicas = driver(json!([{"paths": ["/spec/replicas"], "target": {"kind": "Deployment"}}]));
        let others = driver(json!([{"paths": ["/spec/paused"]}]));
        assert_eq!(
            (
                drifted_with(&[]),
                drifted_with(&[&replicas]),
                drifted_with(&[&others]),
                drifted_with(&[&replicas, &others])
            ),
            (1, 0, 1, 1)
        );
    }

    #[test]
    fn defaults_of_the_api_server_are_no_drift() {
        let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec});
        let container = |env: Value| json!({"containers": [{"name": "web", "env": env}]});
        let policy = Policy::shipped().unwrap();
        for (declared, live) in [
            (
                container(json!([{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}])),
                container(
                    json!([{"name": "IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}]),
                ),
            ),
            (
                container(
                    json!([{"name": "IP", "valueFrom": {"fieldRef": {"apiVersion": "", "fieldPath": "status.podIP"}}}]),
                ),
                container(
                    json!([{"name": "IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}]),
                ),
            ),
            (
                json!({"volumes": [{"name": "a", "configMap": {"name": "a", "defaultMode": null}}]}),
                json!({"volumes": [{"name": "a", "configMap": {"name": "a", "defaultMode": 420}}]}),
            ),
            (
                json!({"volumes": [{"name": "a", "configMap": {"name": "a"}}]}),
                json!({"volumes": [{"name": "a", "configMap": {"name": "a", "defaultMode": 420}}]}),
            ),
            (
                json!({"volumes": [{"name": "a", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}),
                json!({"volumes": [{"name": "a", "downwardAPI": {"defaultMode": 420, "items": [
                    {"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}]}}]}),
            ),
            (
                json!({"volumes": [{"name": "a", "projected": {"sources": [
                    {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                    {"serviceAccountToken": {"path": "t"}}]}}]}),
                json!({"volumes": [{"name": "a", "projected": {"defaultMode": 420, "sources": [
                    {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}]}},
                    {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}]}}]}),
            ),
            (
                json!({"volumes": [{"name": "a", "downwardAPI": {}}]}),
                json!({"volumes": [{"name": "a", "downwardAPI": {"defaultMode": 420}}]}),
            ),
        ] {
            assert_eq!(drift(&pod(declared.clone()), &pod(live), &policy), NOTHING, "{declared}");
        }
        let changed = json!({"volumes": [{"name": "a", "configMap": {"name": "a", "defaultMode": 511}}]});
        let declared = json!({"volumes": [{"name": "a", "configMap": {"name": "a", "defaultMode": 420}}]});
        assert_eq!(drift(&pod(declared), &pod(changed), &policy), ["spec.volumes[a].configMap.defaultMode"]);
        let added = json!({"volumes": [{"name": "a", "configMap": {"name": "a", "optional": true}}]});
        let declared = json!({"volumes": [{"name": "a", "configMap": {"name": "a"}}]});
        assert_eq!(drift(&pod(declared), &pod(added), &policy), ["spec.volumes[a].configMap.optional"]);
    }

    #[test]
    fn secrets_are_reported_by_key_only() {
        let document =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "hunter2"}});
        let live = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": value}});
        let policy = Policy::shipped().unwrap();
        assert_eq!(drift(&document, &live("aHVudGVyMg=="), &policy), NOTHING);
        assert_eq!(drift(&document, &live("b3RoZXI="), &policy), ["data.key"]);
    }

    #[test]
    fn only_a_job_with_a_ttl_may_vanish() {
        assert!(may_vanish(&json!({"kind": "Job", "spec": {"ttlSecondsAfterFinished": 60}})));
        assert!(!may_vanish(&json!({"kind": "Job", "spec": {}})));
        assert!(!may_vanish(&document()));
    }
}
