//! Every shape of a declared value, and every kind of change. An edit may add undeclared parts, and nothing else.

mod lists;

use serde_json::{Value, json};

use super::super::{declared_by, delta, drifted, touched};
use super::{Declared, changed_of};
use crate::effort::Effort;
use crate::json::FieldPath;

use Verdict::{Changes, Free};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    /// The edit changes a declared part.
    Changes,
    Free,
}

/// A kind of change, the value before and after, and the verdict. A null stands for an absent value.
type Edit = (&'static str, Value, Value, Verdict);

/// A declared field of a kind, and edits of the field.
struct Shape {
    what: &'static str,
    kind: (&'static str, &'static str),
    /// As a JSON pointer.
    field: &'static str,
    declared: Value,
    edits: Vec<Edit>,
}

/// An object with one field.
fn object((api_version, kind): (&str, &str), field: &str, value: &Value) -> Value {
    let inner = field
        .rsplit('/')
        .filter(|name| !name.is_empty())
        .fold(value.clone(), |value, name| if value.is_null() { json!({}) } else { json!({ name: value }) });
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}});
    object.as_object_mut().unwrap().extend(inner.as_object().unwrap().clone());
    object
}

fn check(shapes: Vec<Shape>) {
    let mut wrong = Vec::new();
    for Shape { what, kind, field, declared, edits } in shapes {
        let document = object(kind, field, &declared);
        for (change, old, new, verdict) in edits {
            let found = changed_of(&document, &object(kind, field, &old), &object(kind, field, &new));
            let is = if found.is_empty() { Free } else { Changes };
            if is != verdict {
                wrong.push(format!("{what}, {change}: {is:?} {found:?}, {old} to {new}, declared {declared}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const CONFIG_MAP: (&str, &str) = ("v1", "ConfigMap");
const SERVICE: (&str, &str) = ("v1", "Service");
const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");
const NETWORK_POLICY: (&str, &str) = ("networking.k8s.io/v1", "NetworkPolicy");
const ROLE: (&str, &str) = ("rbac.authorization.k8s.io/v1", "Role");
const WIDGET: (&str, &str) = ("example.com/v1", "Widget");

#[test]
fn a_map_that_is_not_atomic_may_gain_members() {
    check(vec![Shape {
        what: "text by key",
        kind: CONFIG_MAP,
        field: "/data",
        declared: json!({"a": "1", "empty": ""}),
        edits: vec![
            ("added", json!({"a": "1", "empty": ""}), json!({"a": "1", "b": "2", "empty": ""}), Free),
            ("replaced", json!({"a": "1", "empty": ""}), json!({"a": "2", "empty": ""}), Changes),
            ("removed", json!({"a": "1", "empty": ""}), json!({"empty": ""}), Changes),
            ("removed, empty", json!({"a": "1", "empty": ""}), json!({"a": "1"}), Changes),
            ("emptied", json!({"a": "1", "empty": ""}), json!({"a": "", "empty": ""}), Changes),
            ("filled", json!({"a": "1", "empty": ""}), json!({"a": "1", "empty": "x"}), Changes),
            ("respelled", json!({"a": "1", "empty": ""}), json!({"a": "1.0", "empty": ""}), Changes),
            ("all removed", json!({"a": "1", "empty": ""}), json!(null), Changes),
            ("set back", json!({"a": "2"}), json!({"a": "1", "empty": ""}), Free),
        ],
    }]);
}

#[test]
fn a_struct_may_gain_members() {
    check(vec![
        Shape {
            what: "a struct without members",
            kind: DEPLOYMENT,
            field: "/spec/template/spec/securityContext",
            declared: json!({}),
            edits: vec![
                ("added", json!({}), json!({"runAsUser": 1}), Free),
                ("removed", json!({}), json!(null), Changes),
                ("set back", json!(null), json!({}), Free),
                ("emptied", json!({"runAsUser": 1}), json!({}), Free),
            ],
        },
        Shape {
            what: "a struct of empty values, which the API server omits",
            kind: DEPLOYMENT,
            field: "/spec/strategy",
            declared: json!({"type": ""}),
            edits: vec![
                ("removed", json!({"rollingUpdate": {}}), json!(null), Free),
                ("emptied", json!({"rollingUpdate": {}}), json!({}), Free),
            ],
        },
        Shape {
            what: "annotations without members, which the API server omits",
            kind: DEPLOYMENT,
            field: "/spec/template/metadata/annotations",
            declared: json!({}),
            edits: vec![
                ("added", json!(null), json!({"restartedAt": "now"}), Free),
                ("emptied", json!({"restartedAt": "now"}), json!(null), Free),
            ],
        },
        Shape {
            what: "a struct",
            kind: DEPLOYMENT,
            field: "/spec/strategy",
            declared: json!({"type": "RollingUpdate"}),
            edits: vec![
                (
                    "added",
                    json!({"type": "RollingUpdate"}),
                    json!({"rollingUpdate": {}, "type": "RollingUpdate"}),
                    Free,
                ),
                ("replaced", json!({"type": "RollingUpdate"}), json!({"type": "Recreate"}), Changes),
                ("set back", json!({"type": "Recreate"}), json!({"rollingUpdate": {}, "type": "RollingUpdate"}), Free),
            ],
        },
    ]);
}

#[test]
fn an_atomic_map_may_not_gain_members() {
    let app = || json!({"app": "web"});
    check(vec![
        Shape {
            what: "a selector of a Service",
            kind: SERVICE,
            field: "/spec/selector",
            declared: app(),
            edits: vec![
                ("added", app(), json!({"app": "web", "x": "y"}), Changes),
                ("replaced", app(), json!({"app": "x"}), Changes),
                ("removed", app(), json!(null), Changes),
                ("emptied", app(), json!({}), Changes),
                ("set back", json!({"app": "web", "x": "y"}), app(), Free),
                ("set back", json!(null), app(), Free),
                ("half set back", json!({"app": "x", "x": "y"}), json!({"app": "web", "x": "y"}), Free),
            ],
        },
        Shape {
            what: "no node selector",
            kind: DEPLOYMENT,
            field: "/spec/template/spec/nodeSelector",
            declared: json!({}),
            edits: vec![
                ("filled", json!(null), json!({"disk": "ssd"}), Changes),
                ("set back", json!({"disk": "ssd"}), json!(null), Free),
            ],
        },
        Shape {
            what: "labels of a selector",
            kind: DEPLOYMENT,
            field: "/spec/selector",
            declared: json!({"matchLabels": {"app": "web"}}),
            edits: vec![
                ("added", json!({"matchLabels": app()}), json!({"matchLabels": {"app": "web", "x": "y"}}), Changes),
                (
                    "added beside",
                    json!({"matchLabels": app()}),
                    json!({"matchExpressions": [{"key": "x", "operator": "Exists"}], "matchLabels": app()}),
                    Changes,
                ),
            ],
        },
    ]);
}

#[test]
fn an_empty_selector_and_a_reference_are_atomic() {
    check(vec![
        Shape {
            what: "a selector of all pods",
            kind: NETWORK_POLICY,
            field: "/spec/podSelector",
            declared: json!({}),
            edits: vec![
                ("filled", json!({}), json!({"matchLabels": {"app": "web"}}), Changes),
                ("set back", json!({"matchLabels": {"app": "web"}}), json!({}), Free),
            ],
        },
        Shape {
            what: "the target of an autoscaler",
            kind: ("autoscaling/v2", "HorizontalPodAutoscaler"),
            field: "/spec/scaleTargetRef",
            declared: json!({"kind": "Deployment", "name": "web"}),
            edits: vec![
                (
                    "replaced",
                    json!({"kind": "Deployment", "name": "web"}),
                    json!({"kind": "Deployment", "name": "x"}),
                    Changes,
                ),
                (
                    "added",
                    json!({"kind": "Deployment", "name": "web"}),
                    json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}),
                    Changes,
                ),
            ],
        },
    ]);
}

/// The volumes of a pod: one with this source.
fn volumes(source: Value) -> Value {
    let mut volume = json!({"name": "tmp"});
    volume.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    json!([volume])
}

#[test]
fn a_volume_cannot_get_another_source() {
    check(vec![Shape {
        what: "a disk",
        kind: DEPLOYMENT,
        field: "/spec/template/spec/volumes",
        declared: volumes(json!({"emptyDir": {}})),
        edits: vec![
            ("replaced", volumes(json!({"emptyDir": {}})), volumes(json!({"hostPath": {"path": "/"}})), Changes),
            ("removed", volumes(json!({"emptyDir": {}})), volumes(json!({})), Changes),
            ("filled", volumes(json!({"emptyDir": {}})), volumes(json!({"emptyDir": {"medium": "Memory"}})), Changes),
            (
                "replaced after a drift",
                volumes(json!({"emptyDir": {"medium": "Memory"}})),
                volumes(json!({"hostPath": {"path": "/"}})),
                Changes,
            ),
            ("set back", volumes(json!({"hostPath": {"path": "/"}})), volumes(json!({"emptyDir": {}})), Free),
            ("emptied", volumes(json!({"emptyDir": {"medium": "Memory"}})), volumes(json!({"emptyDir": {}})), Free),
            (
                "another volume",
                volumes(json!({"emptyDir": {}})),
                json!([{"name": "mine", "hostPath": {"path": "/"}}, {"name": "tmp", "emptyDir": {}}]),
                Free,
            ),
        ],
    }]);
}

#[test]
fn the_source_of_a_volume_has_quantities_and_defaults() {
    let config = |more: Value| {
        let mut source = json!({"name": "web", "defaultMode": 420});
        source.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        volumes(json!({ "configMap": source }))
    };
    check(vec![
        Shape {
            what: "a limited disk",
            kind: DEPLOYMENT,
            field: "/spec/template/spec/volumes",
            declared: volumes(json!({"emptyDir": {"sizeLimit": "1024Mi"}})),
            edits: vec![
                (
                    "respelled",
                    volumes(json!({"emptyDir": {"sizeLimit": "1Gi"}})),
                    volumes(json!({"emptyDir": {"sizeLimit": "1048576Ki"}})),
                    Free,
                ),
                (
                    "replaced",
                    volumes(json!({"emptyDir": {"sizeLimit": "1Gi"}})),
                    volumes(json!({"emptyDir": {"sizeLimit": "2Gi"}})),
                    Changes,
                ),
            ],
        },
        Shape {
            what: "a file with the API server's default of a mode",
            kind: DEPLOYMENT,
            field: "/spec/template/spec/volumes",
            declared: volumes(json!({"configMap": {"name": "web"}})),
            edits: vec![
                ("replaced", config(json!({})), config(json!({"name": "x"})), Changes),
                ("added", config(json!({})), config(json!({"optional": true})), Changes),
                ("a default replaced", config(json!({})), config(json!({"defaultMode": 511})), Changes),
                ("set back with the default", volumes(json!({"emptyDir": {}})), config(json!({})), Free),
                ("set back with the default", json!(null), config(json!({})), Free),
            ],
        },
    ]);
}

#[test]
fn owners_finalizers_and_immutable_may_not_be_added() {
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": uid});
    check(vec![
        Shape {
            what: "no owner",
            kind: CONFIG_MAP,
            field: "/metadata/ownerReferences",
            declared: json!(null),
            edits: vec![
                ("added", json!(null), json!([owner("1")]), Changes),
                ("added", json!([owner("1")]), json!([owner("1"), owner("2")]), Changes),
                ("replaced", json!([owner("1")]), json!([owner("2")]), Changes),
                ("reordered", json!([owner("1"), owner("2")]), json!([owner("2"), owner("1")]), Free),
                ("removed", json!([owner("1"), owner("2")]), json!([owner("2")]), Free),
                ("all removed", json!([owner("1")]), json!(null), Free),
            ],
        },
        Shape {
            what: "a finalizer",
            kind: WIDGET,
            field: "/metadata/finalizers",
            declared: json!(["example.com/a"]),
            edits: vec![
                ("added", json!(["example.com/a"]), json!(["example.com/a", "example.com/b"]), Changes),
                ("removed", json!(["example.com/a", "example.com/b"]), json!(["example.com/b"]), Changes),
                ("another one removed", json!(["example.com/a", "example.com/b"]), json!(["example.com/a"]), Free),
                ("set back", json!(null), json!(["example.com/a"]), Free),
            ],
        },
        Shape {
            what: "a ConfigMap that can change",
            kind: CONFIG_MAP,
            field: "/immutable",
            declared: json!(null),
            edits: vec![
                ("added", json!(null), json!(true), Changes),
                ("replaced", json!(false), json!(true), Changes),
                ("spelled out", json!(null), json!(false), Free),
            ],
        },
        Shape {
            what: "an immutable Secret",
            kind: ("v1", "Secret"),
            field: "/immutable",
            declared: json!(true),
            edits: vec![("set back", json!(null), json!(true), Free)],
        },
    ]);
}

#[test]
fn immutable_may_be_added_to_other_kinds() {
    check(vec![
        Shape {
            what: "a field that a Service does not have",
            kind: SERVICE,
            field: "/immutable",
            declared: json!(null),
            edits: vec![("added", json!(null), json!(true), Free)],
        },
        Shape {
            what: "a field of a custom resource with a familiar name",
            kind: ("example.com/v1", "ConfigMap"),
            field: "/immutable",
            declared: json!(null),
            edits: vec![("added", json!(null), json!(true), Free)],
        },
        Shape {
            what: "a field of a custom resource",
            kind: WIDGET,
            field: "/immutable",
            declared: json!(null),
            edits: vec![("added", json!(null), json!(true), Free)],
        },
    ]);
}

#[test]
fn ignored_changes_do_not_fill_the_list_of_changes() {
    let data = |value: &str, last: &str| {
        let mut data: serde_json::Map<_, _> = (0..150).map(|n| (format!("k{n:03}"), Value::from(value))).collect();
        data.insert("last".into(), last.into());
        object(CONFIG_MAP, "/data", &data.into())
    };
    let document = data("1", "1");
    let (old, new) = (document.to_string(), data("2", "2").to_string());
    let delta = delta(&old, &new).unwrap();
    let declared = [declared_by(&document, &Declared::Leaf(None))];
    let ignored = |field: &FieldPath| field.pointer().as_str().starts_with("/data/k");
    let found = touched(&declared, &delta, &ignored, &Effort::of_review());
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["data.last"]);
    assert_eq!(touched(&declared, &delta, &|_| false, &Effort::of_review()).len(), 100);
}

#[test]
fn defaults_and_omitted_values_are_not_drift() {
    let document = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "spec": {"podSelector": {}, "egress": [], "ingress": [{"ports": [{"port": 80}]}]},
    });
    let live = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"finalizers": ["x"]},
        "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}], "policyTypes": ["Ingress"]},
    });
    let differs = |live: &Value| {
        let (old, new) = (document.to_string(), live.to_string());
        let found = drifted(
            declared_by(&document, &Declared::Leaf(None)),
            &delta(&old, &new).unwrap(),
            &|_| false,
            &Effort::of_review(),
        );
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(differs(&live), [""; 0]);
    let mut drift = live;
    drift["spec"]["podSelector"] = json!({"matchLabels": {"a": "b"}});
    drift["spec"]["egress"] = json!([{}]);
    assert_eq!(differs(&drift), ["spec.egress", "spec.podSelector.matchLabels"]);
}
