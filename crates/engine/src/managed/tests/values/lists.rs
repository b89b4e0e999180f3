//! Lists with and without keys, and the values of containers.

use serde_json::{Value, json};

use super::Verdict::{Changes, Free};
use super::{CONFIG_MAP, DEPLOYMENT, Edit, NETWORK_POLICY, ROLE, SERVICE, Shape, WIDGET, check};

#[test]
fn a_list_without_keys_is_atomic() {
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

#[test]
fn an_item_of_a_list_without_keys_may_not_gain_members() {
    let rule = |more: Value| {
        let mut rule = json!({"from": [{"podSelector": {}}], "ports": [{"port": 80, "protocol": "TCP"}]});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rule
    };
    let with_default = || json!([rule(json!({}))]);
    let both = || json!([{"podSelector": {}, "namespaceSelector": {}}]);
    check(vec![Shape {
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
    }]);
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
                ("a missing one behind a later one", init(&["b", "c"]), init(&["b", "a", "c"]), Changes),
                ("missing ones turned", init(&["a"]), init(&["a", "c", "b"]), Changes),
                ("a missing one at its place", init(&["a", "c"]), init(&["a", "b", "c"]), Free),
            ],
        },
    ]);
}

#[test]
fn only_the_api_spellings_of_a_value_are_equal() {
    let env = |value: &str| json!({"env": [{"name": "VERSION", "value": value}]});
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
    ]);
}

#[test]
fn a_quantity_is_an_amount_where_the_api_has_one() {
    let limits = |cpu: Value| json!({"resources": {"limits": {"cpu": cpu}}});
    let metric = |value: &str| json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": value}}}]);
    check(vec![
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
fn only_ports_of_containers_and_services_have_keys() {
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
            what: "no tolerations",
            kind: DEPLOYMENT,
            field: "/spec/template/spec/tolerations",
            declared: json!([]),
            edits: vec![("filled", json!(null), json!([{"operator": "Exists"}]), Changes)],
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
fn items_of_one_key_are_compared_in_their_order() {
    let env = |values: &[&str]| json!({"env": values.iter().map(|value| json!({"name": "A", "value": value})).collect::<Value>()});
    check(vec![in_container(
        "a variable that is declared twice",
        env(&["1", "2"]),
        vec![
            ("the second set back", env(&["1", "9"]), env(&["1", "2"]), Free),
            ("the first set back", env(&["9", "2"]), env(&["1", "2"]), Free),
            ("the second replaced", env(&["1", "2"]), env(&["1", "9"]), Changes),
            ("the second set to the first", env(&["1", "2"]), env(&["1", "1"]), Changes),
            ("exchanged", env(&["1", "2"]), env(&["2", "1"]), Changes),
            ("a third added", env(&["1", "2"]), env(&["1", "2", "3"]), Changes),
        ],
    )]);
}

#[test]
fn an_item_that_moves_is_compared_with_itself() {
    let volume = |name: &str, source: Value| json!({"name": name, "configMap": source});
    let (plain, full) = (|| json!({"name": "web"}), || json!({"name": "web", "defaultMode": 420}));
    check(vec![Shape {
        what: "volumes, of which one has a default",
        kind: DEPLOYMENT,
        field: "/spec/template/spec/volumes",
        declared: json!([volume("a", plain()), volume("b", plain())]),
        edits: vec![(
            "reordered",
            json!([volume("a", plain()), volume("b", full())]),
            json!([volume("b", full()), volume("a", plain())]),
            Free,
        )],
    }]);
}

#[test]
fn finalizers_are_a_set_only_in_metadata() {
    check(vec![
        Shape {
            what: "the finalizers that a Namespace has besides",
            kind: ("v1", "Namespace"),
            field: "/spec/finalizers",
            declared: json!(["x/a", "x/b"]),
            edits: vec![
                ("reordered", json!(["x/a", "x/b"]), json!(["x/b", "x/a"]), Changes),
                ("set back", json!(["x/b"]), json!(["x/a", "x/b"]), Free),
            ],
        },
        Shape {
            what: "a finalizer",
            kind: CONFIG_MAP,
            field: "/metadata/finalizers",
            declared: json!(["x/a"]),
            edits: vec![
                ("another one removed", json!(["x/a", "x/b", "x/c"]), json!(["x/a", "x/c"]), Free),
                ("reordered", json!(["x/a", "x/b"]), json!(["x/b", "x/a"]), Free),
                ("replaced", json!(["x/a", "x/b"]), json!(["x/b"]), Changes),
                ("added", json!(["x/a"]), json!(["x/a", "x/b"]), Changes),
            ],
        },
    ]);
}

#[test]
fn a_keyed_list_inside_an_atomic_map_is_a_part_of_it() {
    let claims = |names: &[&str]| {
        let claims: Value = names.iter().map(|name| json!({"name": name})).collect();
        json!([{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"claims": claims}}}}}])
    };
    check(vec![Shape {
        what: "claims of a volume",
        kind: DEPLOYMENT,
        field: "/spec/template/spec/volumes",
        declared: claims(&["a"]),
        edits: vec![
            ("added", claims(&["a"]), claims(&["a", "b"]), Changes),
            ("set back", claims(&["a", "b"]), claims(&["a"]), Free),
        ],
    }]);
}
