//! Writes compared with declarations, with objects as the API server shows them.

mod differences;
mod values;

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Declared, Delta, Exceptions, ManagedFields, declared_by, delta, delta_except, touched};
use crate::effort::Effort;

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn text(value: &Value) -> String {
    value.to_string()
}

/// The declared fields that a write changes, in the form that people see.
fn changed(declared: Declared<'_>, old: &Value, new: &Value) -> Vec<String> {
    let (old, new) = (old.to_string(), new.to_string());
    let touched = delta(&old, &new).map(|delta| touched(&[declared], &delta, &|_| false, &Effort::of_review()));
    touched.unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// The fields of a document that an edit changes.
fn changed_of(document: &Value, old: &Value, new: &Value) -> Vec<String> {
    changed(declared_by(document, &Declared::nothing()), old, new)
}

fn document() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}, "creationTimestamp": null},
        "spec": {"replicas": 2, "template": {"spec": {
            "containers": [{
                "name": "web", "image": "nginx:1", "args": ["-a", "-b"], "resources": {"limits": {"cpu": "1000m"}},
                "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}], "securityContext": {},
            }],
        }}},
    })
}

/// The object that the API server creates from the document, with defaults, a sidecar as first container, and `managedFields`.
fn live() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {"deployment.kubernetes.io/revision": "1"}},
        "spec": {"replicas": 2, "progressDeadlineSeconds": 600, "template": {"spec": {
            "containers": [
                {"name": "sidecar", "image": "proxy:1"},
                {
                    "name": "web", "image": "nginx:1", "args": ["-a", "-b"], "resources": {"limits": {"cpu": "1"}},
                    "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "securityContext": {}, "terminationMessagePath": "/dev/termination-log",
                },
            ],
        }}},
    })
}

fn edited(pointer: &str, value: Value) -> Value {
    let mut live = live();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = live.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(items) if name == "-" => items.push(value),
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        Value::Object(members) => {
            if value.is_null() {
                members.remove(name);
            } else {
                members.insert(name.to_owned(), value);
            }
        }
        _ => panic!("{pointer}"),
    }
    live
}

const WEB: &str = "/spec/template/spec/containers/1";

#[test]
fn a_change_of_a_declared_field_is_named() {
    let document = document();
    let web = "spec.template.spec.containers[web]";
    for (pointer, value, wanted) in [
        ("/spec/replicas", json!(3), "spec.replicas".to_owned()),
        ("/metadata/labels/app", json!("x"), "metadata.labels.app".to_owned()),
        ("/metadata/labels", json!(null), "metadata.labels".to_owned()),
        (&format!("{WEB}/image"), json!("evil:1"), format!("{web}.image")),
        (&format!("{WEB}/args"), json!(["-a"]), format!("{web}.args")),
        (&format!("{WEB}/resources/limits/cpu"), json!("2"), format!("{web}.resources.limits.cpu")),
        (&format!("{WEB}/resources"), json!(null), format!("{web}.resources")),
        (&format!("{WEB}/env/0/value"), json!("2"), format!("{web}.env[A].value")),
        (&format!("{WEB}/env"), json!([]), format!("{web}.env[A]")),
        (&format!("{WEB}/ports/0/containerPort"), json!(81), format!("{web}.ports[80/TCP]")),
        ("/spec/template/spec/containers", json!([{"name": "sidecar", "image": "proxy:1"}]), web.to_owned()),
    ] {
        assert_eq!(changed_of(&document, &live(), &edited(pointer, value)), [wanted], "{pointer}");
    }
}

#[test]
fn a_change_of_an_undeclared_field_is_allowed() {
    let document = document();
    let mut reordered = live();
    reordered.pointer_mut("/spec/template/spec/containers").unwrap().as_array_mut().unwrap().reverse();
    for new in [
        edited("/metadata/labels/team", json!("blue")),
        edited("/metadata/annotations", json!(null)),
        edited("/spec/progressDeadlineSeconds", json!(60)),
        edited("/spec/template/spec/containers/0/image", json!("proxy:2")),
        edited("/spec/template/spec/containers/-", json!({"name": "other"})),
        edited("/spec/template/spec/tolerations", json!([{"key": "a"}])),
        edited(&format!("{WEB}/env/-"), json!({"name": "B", "value": "1"})),
        edited(&format!("{WEB}/securityContext/runAsUser"), json!(1)),
        edited(&format!("{WEB}/resources/requests"), json!({"cpu": "1"})),
        edited(&format!("{WEB}/terminationMessagePath"), json!("/x")),
        reordered,
    ] {
        assert_eq!(changed_of(&document, &live(), &new), [""; 0], "{new}");
    }
}

#[test]
fn reverting_drift_is_not_a_change() {
    let document = document();
    for (pointer, drift, repaired) in [
        (format!("{WEB}/image"), json!("evil:1"), json!("nginx:1")),
        (format!("{WEB}/resources/limits/cpu"), json!("7"), json!("1")),
        (format!("{WEB}/env"), json!([]), json!([{"name": "A", "value": "1"}])),
        ("/metadata/labels".to_owned(), json!(null), json!({"app": "web"})),
    ] {
        let drifted = edited(&pointer, drift);
        assert_eq!(changed_of(&document, &drifted, &edited(&pointer, repaired)), [""; 0], "{pointer}");
    }
    let drifted = edited(&format!("{WEB}/image"), json!("evil:1"));
    let other = edited(&format!("{WEB}/image"), json!("evil:2"));
    assert_eq!(changed_of(&document, &drifted, &other), ["spec.template.spec.containers[web].image"]);
}

/// The API server decodes the data of a Secret, and shows it in one line.
#[test]
fn wrapped_base64_of_a_secret_is_set_back() {
    let secret = |data: &str| json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": data}});
    let (wrapped, stored, edited) = (secret("aGVs\nbG8=\n"), secret("aGVsbG8="), secret("aG8="));
    assert_eq!(changed_of(&wrapped, &stored, &edited), ["data.a"]);
    assert_eq!(changed_of(&wrapped, &edited, &stored), [""; 0]);
}

#[test]
fn string_data_is_kept_as_data() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA=="}, "stringData": {"b": "hi"}});
    let live = json!({"data": {"a": "eA==", "b": "aGk="}});
    assert_eq!(changed_of(&secret, &live, &json!({"data": {"a": "eA==", "b": "eQ=="}})), ["data.b"]);
    assert_eq!(changed_of(&secret, &live, &json!({"data": {"a": "eA==", "b": "aGk=", "c": "eQ=="}})), [""; 0]);
    assert_eq!(changed_of(&secret, &json!({"data": {"a": "eA=="}}), &live), [""; 0]);
    // The rest of a Secret is declared like the rest of any other object.
    let typed = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"a": "eA=="}});
    assert_eq!(changed_of(&typed, &json!({"data": {"a": "eA=="}}), &json!({"data": {"a": "eQ=="}})), ["data.a"]);
    assert_eq!(changed_of(&typed, &json!({"type": "Opaque"}), &json!({"type": "example.com/x"})), ["type"]);
    // Only the API server's own Secrets have this field.
    let custom = json!({"apiVersion": "example.com/v1", "kind": "Secret", "stringData": {"b": "hi"}});
    let (hi, ho) = (json!({"stringData": {"b": "hi"}}), json!({"stringData": {"b": "ho"}}));
    assert_eq!(changed_of(&custom, &hi, &ho), ["stringData.b"]);
}

#[test]
fn a_field_without_a_value_declares_nothing() {
    let document = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "labels": null}});
    let live = json!({"metadata": {"name": "web"}});
    let labelled = json!({"metadata": {"name": "web", "labels": {"team": "blue"}}});
    assert_eq!(changed_of(&document, &live, &labelled), [""; 0]);
    assert_eq!(changed_of(&document, &labelled, &live), [""; 0]);
    let document = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": null});
    assert_eq!(changed_of(&document, &json!({}), &json!({"data": {"a": "1"}})), [""; 0]);
}

#[test]
fn a_null_in_the_data_of_a_secret_declares_nothing() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": null}});
    let mut with_text = secret.clone();
    with_text["stringData"] = json!({"b": "hi"});
    for document in [secret, with_text] {
        let live = |a: &str| json!({"data": {"a": a, "b": "aGk="}});
        assert_eq!(changed_of(&document, &live("eA=="), &live("eQ==")), [""; 0], "{document}");
    }
}

#[test]
fn lists_of_custom_resources_are_keyed_by_managed_fields() {
    let document = json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {
        "parts": [{"id": 1, "size": "s"}], "containers": [{"name": "a"}], "tags": ["x"],
    }});
    let account = raw(&json!([{"manager": "helm", "apiVersion": "example.com/v1", "fieldsV1": {"f:spec": {
        "f:parts": {"k:{\"id\":1}": {".": {}, "f:id": {}, "f:size": {}}}, "f:tags": {"v:\"x\"": {}},
    }}}]));
    let fields = ManagedFields::read(Some((&*account).into()), &Effort::of_review());
    let written = fields.of("example.com/v1", |_| true);
    let live = json!({"spec": {"parts": [{"id": 1, "size": "s"}], "containers": [{"name": "a"}], "tags": ["x"]}});
    let more = json!({"spec": {
        "parts": [{"id": 2}, {"id": 1, "size": "m"}], "containers": [{"name": "a"}, {"name": "b"}], "tags": ["y", "x"],
    }});
    assert_eq!(changed(declared_by(&document, &written), &live, &more), ["spec.containers", "spec.parts[1].size"]);
}

/// What an edit of `spec` of a custom resource changes, with the part of `managedFields` for its `spec`.
fn changed_in_spec(declared: &Value, written: &Value, old: &Value, new: &Value) -> Vec<String> {
    let document = json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": declared});
    let account = raw(&json!([{"manager": "helm", "apiVersion": "example.com/v1", "fieldsV1": {"f:spec": written}}]));
    let written = ManagedFields::read(Some((&*account).into()), &Effort::of_review()).of("example.com/v1", |_| true);
    changed(declared_by(&document, &written), &json!({ "spec": old }), &json!({ "spec": new }))
}

#[test]
fn managed_fields_key_lists_inside_items() {
    let part = |rules: Value| json!({"parts": [{"id": 1, "rules": rules}]});
    let item = json!({"f:id": {}, "f:rules": {"k:{\"port\":80}": {"f:port": {}, "f:host": {}}}});
    let written = json!({"f:parts": {"k:{\"id\":1}": item}});
    let (one, two) = (json!({"port": 80, "host": "a"}), json!({"port": 81, "host": "b"}));
    let declared = part(json!([one]));
    assert_eq!(changed_in_spec(&declared, &written, &declared, &part(json!([two, one]))), [""; 0]);
    let edited = part(json!([{"port": 80, "host": "b"}]));
    assert_eq!(changed_in_spec(&declared, &written, &declared, &edited), ["spec.parts[0].rules[0].host"]);
}

#[test]
fn an_atomic_map_of_a_custom_resource_gains_nothing() {
    let (one, two) = (json!({"config": {"a": 1}}), json!({"config": {"a": 1, "b": 2}}));
    assert_eq!(changed_in_spec(&one, &json!({"f:config": {}}), &one, &two), ["spec.config.b"]);
    assert_eq!(changed_in_spec(&one, &json!({"f:config": {"f:a": {}}}), &one, &two), [""; 0]);
    // An empty map is written in the same way, whether it is atomic or not.
    let (none, one) = (json!({"config": {}}), json!({"config": {"a": 1}}));
    assert_eq!(changed_in_spec(&none, &json!({"f:config": {}}), &none, &one), [""; 0]);
    assert_eq!(changed_in_spec(&none, &json!({"f:config": {".": {}}}), &none, &one), [""; 0]);
}

#[test]
fn owner_lists_are_closed_only_in_metadata() {
    let owners =
        |uids: &[u64]| json!({"ownerReferences": uids.iter().map(|uid| json!({"uid": uid})).collect::<Value>()});
    let written = json!({"f:ownerReferences": {"k:{\"uid\":1}": {"f:uid": {}}}});
    assert_eq!(changed_in_spec(&owners(&[1]), &written, &owners(&[1]), &owners(&[1, 2])), [""; 0]);
    assert_eq!(changed_in_spec(&owners(&[1]), &written, &owners(&[1, 2]), &owners(&[2])), ["spec.ownerReferences[0]"]);
}

#[test]
fn items_are_shown_by_name_and_never_by_other_values() {
    for (spec, written, changed, shown) in [
        // A set.
        (
            json!({"tokens": ["hunter2A"]}),
            json!({"f:tokens": {"v:\"hunter2A\"": {}}}),
            json!({"tokens": []}),
            "spec.tokens[0]",
        ),
        // A key that is not a name in this list.
        (
            json!({"env": [{"token": "hunter2A", "x": 1}]}),
            json!({"f:env": {"k:{\"token\":\"hunter2A\"}": {".": {}, "f:token": {}, "f:x": {}}}}),
            json!({"env": [{"token": "hunter2A", "x": 2}]}),
            "spec.env[0].x",
        ),
        (
            json!({"env": [{"name": "MODE", "value": "1"}]}),
            json!({"f:env": {"k:{\"name\":\"MODE\"}": {".": {}, "f:name": {}, "f:value": {}}}}),
            json!({"env": [{"name": "MODE", "value": "2"}]}),
            "spec.env[MODE]",
        ),
    ] {
        let found = changed_in_spec(&spec, &written, &spec, &changed);
        assert!(found.iter().all(|path| path.starts_with(shown)) && !found.is_empty(), "{found:?}");
    }
}

#[test]
fn only_the_fields_of_the_owners_managers_are_declared() {
    let label = |key: &str| (key == "app.kubernetes.io/managed-by").then_some("Helm");
    let annotation = |key: &str| key.starts_with("meta.helm.sh/").then_some("web");
    let marks = crate::owners::Marks::of(label, annotation).unwrap();
    assert!(marks.is_manager("helm") && marks.is_manager("helm-controller"));
    assert!(!marks.is_manager("kubectl-edit") && !marks.is_manager("application/apply-patch"));
}

#[test]
fn managed_fields_alone_declare_what_was_owned() {
    let account = raw(&json!([{"manager": "helm", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {
        "f:replicas": {}, "f:paused": {}, "f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"web\"}": {".": {}, "f:image": {}}}}},
    }}}]));
    let declared = || ManagedFields::read(Some((&*account).into()), &Effort::of_review()).of("apps/v1", |_| true);
    assert_eq!(
        changed(declared(), &live(), &edited(&format!("{WEB}/image"), json!("x"))),
        ["spec.template.spec.containers[web].image"]
    );
    assert_eq!(changed(declared(), &live(), &edited(&format!("{WEB}/args"), json!([]))), [""; 0]);
    // The owner owns the field, but it was absent, so no value of the owner changes.
    assert_eq!(changed(declared(), &live(), &edited("/spec/paused", json!(true))), [""; 0]);
    // Another spelling of the same text is not a change.
    let text = |image: &str| {
        format!(r#"{{"spec": {{"template": {{"spec": {{"containers": [{{"name": "web", "image": "{image}"}}]}}}}}}}}"#)
    };
    for (image, wanted) in [("nginx:\\u0031", 0), ("nginx:\\u0032", 1)] {
        let (old, new) = (text("nginx:1"), text(image));
        let found = touched(&[declared()], &delta(&old, &new).unwrap(), &|_| false, &Effort::of_review());
        assert_eq!(found.len(), wanted, "{image}");
    }
}

#[test]
fn server_maintained_fields_are_left_out_of_a_difference() {
    let old = text(&json!({"metadata": {"generation": 1, "labels": {"a": "b"}}, "status": {"x": 1}}));
    let new = text(&json!({"metadata": {"generation": 2, "labels": {"a": "b"}}, "status": {"x": 2}}));
    let paths: [&[&str]; 2] = [&["metadata", "generation"], &["status"]];
    let except = Exceptions { paths: &paths, found: &[] };
    assert!(delta_except(&old, &new, except).is_none());
    let new = text(&json!({"metadata": {"generation": 2, "labels": {"a": "c"}}, "status": {"x": 2}}));
    let left = delta_except(&old, &new, except).unwrap();
    assert_eq!(
        left.changed_values().iter().map(|leaf| leaf.path.to_string()).collect::<Vec<_>>(),
        ["metadata.labels.a"]
    );
}

#[test]
fn an_ignored_member_may_appear_vanish_and_move() {
    let paths: [&[&str]; 2] = [&["metadata", "generation"], &["status"]];
    let except = Exceptions { paths: &paths, found: &[] };
    for (old, new, wanted) in [
        (r#"{"metadata":{"generation":1,"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#, &[][..]),
        (r#"{"metadata":{"name":"a"}}"#, r#"{"metadata":{"generation":1,"name":"a"},"status":{}}"#, &[]),
        (r#"{"status":1,"spec":1}"#, r#"{"spec":2,"status":2}"#, &["spec"]),
        (r#"{"status":[1],"spec":{"status":1}}"#, r#"{"status":[1,2],"spec":{"status":2}}"#, &["spec.status"]),
        (r#"{"metadata":[{"generation":1}]}"#, r#"{"metadata":[{"generation":2}]}"#, &["metadata[0].generation"]),
        (r#"{"metadata":{"generation":1}}"#, r#"{"metadata":null}"#, &["metadata"]),
        (r#"{"stat\u0075s":1,"z":1}"#, r#"{"stat\u0075s":2,"z":1}"#, &[]),
    ] {
        let left = delta_except(old, new, except);
        let changed = left.iter().flat_map(Delta::changed_values).map(|value| value.path.to_string());
        assert_eq!(changed.collect::<Vec<_>>(), wanted, "{old} -> {new}");
    }
}

#[test]
fn an_ignored_value_with_a_known_end_is_skipped() {
    let (old, new) = (r#"{"a": {"b":[1]}, "c":1}"#, r#"{"a": {"b":[2,3]}, "c":2}"#);
    for found in [&[][..], &[&old[6..15]], &[&new[6..17]], &[&old[6..15], &new[6..17], ""]] {
        let left = delta_except(old, new, Exceptions { paths: &[&["a"]], found });
        let changed = left.iter().flat_map(Delta::changed_values).map(|value| value.path.to_string());
        assert_eq!(changed.collect::<Vec<_>>(), ["c"], "{found:?}");
    }
}

#[test]
fn the_number_of_differences_is_bounded() {
    let wide = |value: u64| {
        let members = (0..20_000).map(|n| (format!("k{n}"), Value::from(value)));
        text(&Value::Object(members.collect::<Map<_, _>>()))
    };
    let (old, new) = (wide(1), wide(2));
    let delta = delta(&old, &new).unwrap();
    assert!(delta.changed_values().len() <= 20_000);
    let deep = |leaf: u64| {
        let members = (0..2_000).map(|n| (format!("k{n}"), json!({"a": leaf, "b": leaf})));
        text(&Value::Object(members.collect::<Map<_, _>>()))
    };
    let (old, new) = (deep(1), deep(2));
    assert!(super::delta(&old, &new).unwrap().changed_values().len() <= 2_000 + super::delta::MAX_DIFFERENCES);
}

#[test]
fn white_space_is_not_a_difference() {
    let value = json!({"a": [1, {"b": "x"}, []], "c": {"d": 1.5, "e": {}}, "f": null});
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    assert_eq!(delta(&pretty, &text(&value)), None);
    assert_eq!(delta(&text(&value), &pretty), None);
    let other = pretty.replace("1.5", "1.55");
    for (old, new) in [(&pretty, &other), (&other, &pretty), (&text(&value), &other)] {
        let changed_values = delta(old, new).unwrap().changed_values();
        assert_eq!(changed_values.iter().map(|leaf| leaf.path.to_string()).collect::<Vec<_>>(), ["c.d"]);
    }
}

/// Any JSON a few levels deep.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u8..4).prop_map(Value::from),
        "[a-c/~\"]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d/~]{1,2}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_differs_from_itself(value in json_value()) {
        prop_assert!(delta(&text(&value), &text(&value)).is_none());
    }

    #[test]
    fn applying_the_changed_values_yields_the_new_object(old in json_value(), new in json_value()) {
        let (before, after) = (text(&old), text(&new));
        let mut rebuilt = old.clone();
        for leaf in delta(&before, &after).iter().flat_map(Delta::changed_values) {
            apply(&mut rebuilt, leaf.path.pointer().as_str(), leaf.new.map(|new| serde_json::from_str(new).unwrap()));
        }
        prop_assert_eq!(rebuilt, new);
    }

    #[test]
    fn no_declaration_causes_a_panic(document in json_value(), old in json_value(), new in json_value()) {
        changed_of(&document, &old, &new);
    }
}

fn apply(root: &mut Value, pointer: &str, new: Option<Value>) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        *root = new.unwrap_or_default();
        return;
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    match (root.pointer_mut(parent).unwrap(), new) {
        (Value::Array(items), new) => items[name.parse::<usize>().unwrap()] = new.unwrap(),
        (Value::Object(members), Some(new)) => {
            members.insert(name, new);
        }
        (Value::Object(members), None) => {
            members.remove(&name);
        }
        (other, _) => panic!("{other}"),
    }
}
