//! Every shape of a declared value, and every kind of change: an edit may add what is not declared, and nothing else.

use serde_json::{Value, json};

use super::super::{declared_by, delta, drifted, touched};
use super::{Declared, changed_of};
use crate::engine::effort::Effort;
use crate::engine::json::FieldPath;

use Verdict::{Changes, Free};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    /// The edit changes what is declared.
    Changes,
    Free,
}

/// A kind of change, the value before and after, and the verdict. A null stands for an absent value.
type Edit = (&'static str, Value, Value, Verdict);

/// A field of a kind, as it is declared, and edits of it.
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
fn a_map_with_members_of_its_own_gains_members_freely() {
    check(vec![
        Shape {
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
        },
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
fn a_map_that_is_one_value_gains_nothing() {
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
        Shape {
            what: "a selector of all pods",
            kind: NETWORK_POLICY,
            field: "/spec/podSelector",
            declared: json!({}),
            edits: vec![
                ("filled", json!({}), json!({"matchLabels": app()}), Changes),
                ("set back", json!({"matchLabels": app()}), json!({}), Free),
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

#[test]
fn a_volume_is_its_source() {
    let volumes = |source: Value| {
        json!([{"name": "tmp"}]).as_array().map(|items| {
            let mut volume = items[0].as_object().unwrap().clone();
            volume.extend(source.as_object().unwrap().clone());
            json!([volume])
        })
    };
    let volumes = |source: Value| volumes(source).unwrap();
    let config = |more: Value| {
        let mut source = json!({"name": "web", "defaultMode": 420});
        source.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        volumes(json!({ "configMap": source }))
    };
    check(vec![
        Shape {
            what: "a disk",
            kind: DEPLOYMENT,
            field: "/spec/template/spec/volumes",
            declared: volumes(json!({"emptyDir": {}})),
            edits: vec![
                ("replaced", volumes(json!({"emptyDir": {}})), volumes(json!({"hostPath": {"path": "/"}})), Changes),
                ("removed", volumes(json!({"emptyDir": {}})), volumes(json!({})), Changes),
                (
                    "filled",
                    volumes(json!({"emptyDir": {}})),
                    volumes(json!({"emptyDir": {"medium": "Memory"}})),
                    Changes,
                ),
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
        },
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
fn a_list_without_keys_is_one_value() {
    let rule = |more: Value| {
        let mut rule = json!({"from": [{"podSelector": {}}], "ports": [{"port": 80, "protocol": "TCP"}]});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rule
    };
    let with_default = || json!([rule(json!({}))]);
    let both = || json!([{"podSelector": {}, "namespaceSelector": {}}]);
    check(vec![
        Shape {
            what: "no ingress",
            kind: NETWORK_POLICY,
            field: "/spec/ingress",
            declared: json!([]),
            edits: vec![
                ("filled", json!(null), json!([{}]), Changes),
                ("filled", json!([]), json!([{}]), Changes),
                ("set back", json!([{}]), json!(null), Free),
            ],
        },
        Shape {
            what: "peers",
            kind: NETWORK_POLICY,
            field: "/spec/ingress",
            declared: json!([{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}]),
            edits: vec![
                ("replaced", with_default(), json!([rule(json!({"from": [{"namespaceSelector": {}}]}))]), Changes),
                ("added", with_default(), json!([rule(json!({"from": both()}))]), Changes),
                ("emptied", with_default(), json!([rule(json!({"from": []}))]), Changes),
                ("an item added", with_default(), json!([rule(json!({})), {}]), Changes),
                (
                    "a default replaced",
                    with_default(),
                    json!([rule(json!({"ports": [{"port": 80, "protocol": "UDP"}]}))]),
                    Changes,
                ),
                ("a default removed", with_default(), json!([rule(json!({"ports": [{"port": 80}]}))]), Free),
                ("set back with the default", json!([{}]), with_default(), Free),
                ("set back with the default", json!(null), with_default(), Free),
                ("set back", json!([rule(json!({"from": both()}))]), with_default(), Free),
            ],
        },
        Shape {
            what: "rights",
            kind: ROLE,
            field: "/rules",
            declared: json!([]),
            edits: vec![
                ("filled", json!(null), json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]), Changes),
                ("filled", json!([]), json!([{"verbs": ["*"]}]), Changes),
            ],
        },
        Shape {
            what: "versions of a definition",
            kind: ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            field: "/spec/versions",
            declared: json!([{"name": "v1", "served": true}]),
            edits: vec![
                (
                    "added",
                    json!([{"name": "v1", "served": true}]),
                    json!([{"name": "v1", "served": true, "deprecated": true}]),
                    Changes,
                ),
                (
                    "reordered",
                    json!([{"name": "v1", "served": true}, {"name": "v2"}]),
                    json!([{"name": "v2"}, {"name": "v1", "served": true}]),
                    Changes,
                ),
            ],
        },
        Shape {
            what: "no tolerations",
            kind: DEPLOYMENT,
            field: "/spec/template/spec/tolerations",
            declared: json!([]),
            edits: vec![("filled", json!(null), json!([{"operator": "Exists"}]), Changes)],
        },
        Shape {
            what: "labels of a custom resource",
            kind: WIDGET,
            field: "/spec/tags",
            declared: json!(["a", "b"]),
            edits: vec![
                ("reordered", json!(["a", "b"]), json!(["b", "a"]), Changes),
                ("added", json!(["a", "b"]), json!(["a", "b", "c"]), Changes),
                ("set back", json!(["c"]), json!(["a", "b"]), Free),
            ],
        },
    ]);
}

/// The containers of a pod, with one more field.
fn containers(fields: Value) -> Value {
    let mut container = json!({"name": "web", "image": "nginx:1"});
    container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!([container])
}

fn in_container(what: &'static str, declared: Value, edits: Vec<Edit>) -> Shape {
    let edits =
        edits.into_iter().map(|(change, old, new, verdict)| (change, containers(old), containers(new), verdict));
    let (field, edits) = ("/spec/template/spec/containers", edits.collect());
    Shape { what, kind: DEPLOYMENT, field, declared: containers(declared), edits }
}

#[test]
fn order_counts_where_it_has_a_meaning() {
    let init = |names: &[&str]| Value::from_iter(names.iter().map(|name| json!({"name": name, "image": "x"})));
    check(vec![
        in_container(
            "arguments",
            json!({"args": ["-a", "-b"]}),
            vec![
                ("reordered", json!({"args": ["-a", "-b"]}), json!({"args": ["-b", "-a"]}), Changes),
                ("set back", json!({"args": ["-b", "-a"]}), json!({"args": ["-a", "-b"]}), Free),
            ],
        ),
        in_container(
            "no arguments",
            json!({"args": []}),
            vec![("filled", json!({}), json!({"args": ["-x"]}), Changes)],
        ),
        in_container(
            "no command",
            json!({"command": []}),
            vec![("filled", json!({}), json!({"command": ["sh"]}), Changes)],
        ),
        in_container(
            "variables",
            json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}),
            vec![(
                "reordered",
                json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}),
                json!({"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}),
                Free,
            )],
        ),
        Shape {
            what: "containers that run first",
            kind: DEPLOYMENT,
            field: "/spec/template/spec/initContainers",
            declared: init(&["a", "b", "c"]),
            edits: vec![
                ("reordered", init(&["a", "b", "c"]), init(&["a", "c", "b"]), Changes),
                ("reordered", init(&["a", "b", "c"]), init(&["c", "b", "a"]), Changes),
                ("removed", init(&["a", "b", "c"]), init(&["a", "c"]), Changes),
                ("added", init(&["a", "b", "c"]), init(&["mine", "a", "b", "c"]), Free),
                ("added between", init(&["a", "b", "c"]), init(&["a", "mine", "b", "c"]), Free),
                ("an undeclared one moved", init(&["mine", "a", "b", "c"]), init(&["a", "b", "c", "mine"]), Free),
                ("set back", init(&["c", "a", "b"]), init(&["a", "b", "c"]), Free),
                ("added to reordered ones", init(&["c", "b", "a"]), init(&["mine", "c", "b", "a"]), Free),
            ],
        },
    ]);
}

#[test]
fn a_value_is_respelled_only_where_the_api_has_the_other_spelling() {
    let env = |value: &str| json!({"env": [{"name": "VERSION", "value": value}]});
    let limits = |cpu: Value| json!({"resources": {"limits": {"cpu": cpu}}});
    let metric = |value: &str| json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": value}}}]);
    check(vec![
        in_container(
            "a variable",
            env("1.10"),
            vec![("respelled", env("1.10"), env("1.1"), Changes), ("set back", env("1.1"), env("1.10"), Free)],
        ),
        in_container(
            "a variable without a value",
            json!({"env": [{"name": "VERSION"}]}),
            vec![("filled", json!({"env": [{"name": "VERSION"}]}), env("1"), Changes)],
        ),
        in_container(
            "an empty variable, which the API server omits",
            env(""),
            vec![
                ("filled", json!({"env": [{"name": "VERSION"}]}), env("1"), Changes),
                ("set back", env("1"), json!({"env": [{"name": "VERSION"}]}), Free),
            ],
        ),
        in_container(
            "a quantity",
            limits(json!(1)),
            vec![
                ("respelled", limits(json!("1")), limits(json!("1000m")), Free),
                ("replaced", limits(json!("1")), limits(json!("1001m")), Changes),
            ],
        ),
        in_container(
            "a false value, which the API server omits",
            json!({"stdin": false}),
            vec![
                ("replaced", json!({}), json!({"stdin": true}), Changes),
                ("set back", json!({"stdin": true}), json!({}), Free),
            ],
        ),
        Shape {
            what: "a quantity of a metric",
            kind: ("autoscaling/v2", "HorizontalPodAutoscaler"),
            field: "/spec/metrics",
            declared: metric("1024Mi"),
            edits: vec![
                ("respelled", metric("1Gi"), metric("1048576Ki"), Free),
                ("replaced", metric("1Gi"), metric("2Gi"), Changes),
            ],
        },
        Shape {
            what: "an annotation with the name of a quantity",
            kind: CONFIG_MAP,
            field: "/metadata/annotations",
            declared: json!({"value": "1.10", "sizeLimit": "1.10"}),
            edits: vec![(
                "respelled",
                json!({"value": "1.10", "sizeLimit": "1.10"}),
                json!({"value": "1.1", "sizeLimit": "1.10"}),
                Changes,
            )],
        },
        Shape {
            what: "a limit of a custom resource",
            kind: WIDGET,
            field: "/spec/limits",
            declared: json!({"version": "1.10"}),
            edits: vec![("respelled", json!({"version": "1.10"}), json!({"version": "1.1"}), Changes)],
        },
    ]);
}

#[test]
fn nothing_that_ends_or_freezes_a_declared_object_is_added() {
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
fn ports_are_keyed_in_containers_and_services_alone() {
    let pod_ports = |more: &[Value]| {
        let all: Vec<_> = [json!({"containerPort": 80, "protocol": "TCP"})].iter().chain(more).cloned().collect();
        json!({ "ports": all })
    };
    let service =
        |more: &[Value]| Value::from_iter([json!({"port": 80, "protocol": "TCP"})].iter().chain(more).cloned());
    check(vec![
        in_container(
            "ports of a container",
            json!({"ports": [{"containerPort": 80}]}),
            vec![("added", pod_ports(&[]), pod_ports(&[json!({"containerPort": 81, "protocol": "TCP"})]), Free)],
        ),
        Shape {
            what: "ports of a Service",
            kind: SERVICE,
            field: "/spec/ports",
            declared: json!([{"port": 80}]),
            edits: vec![("added", service(&[]), service(&[json!({"port": 81, "protocol": "TCP"})]), Free)],
        },
        Shape {
            what: "ports of an EndpointSlice",
            kind: ("discovery.k8s.io/v1", "EndpointSlice"),
            field: "/ports",
            declared: json!([{"port": 80}]),
            edits: vec![("added", service(&[]), service(&[json!({"port": 81, "protocol": "TCP"})]), Changes)],
        },
        Shape {
            what: "pull secrets of a ServiceAccount",
            kind: ("v1", "ServiceAccount"),
            field: "/imagePullSecrets",
            declared: json!([{"name": "a"}]),
            edits: vec![("added", json!([{"name": "a"}]), json!([{"name": "a"}, {"name": "b"}]), Changes)],
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
fn defaults_and_omitted_values_are_no_drift() {
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
