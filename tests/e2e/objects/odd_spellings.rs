//! Manifests that Go's reader of YAML and those of YAML 1.2 read differently: what Helm applied is declared, however it was spelt.

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

/// Each ConfigMap with its name and the key that the API server knows.
const OBJECTS: [(&str, &str, &str); 6] = [
    (
        "behind",
        "a",
        "# U+0085 ends this line:\u{85}apiVersion: v1\u{2028}kind: ConfigMap\nmetadata: {name: behind}\ndata: {a: x}\n",
    ),
    ("word", "true", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: word}\ndata: {on: x}\n"),
    ("number", "16", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: number}\ndata: {0x10: x}\n"),
    (
        "margin",
        "a",
        "apiVersion: v1\nmetadata: {name: margin, annotations: {note: \"\nkind: Secret\n\"}}\nkind: ConfigMap\ndata: {a: x}\n",
    ),
    (
        "json",
        "a",
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"json\"},\"data\":{\"a\":\"x\"}}\n",
    ),
    (
        "merged",
        "a",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: merged, annotations: &same {a: x}}\ndata:\n  b: x\n  <<: *same\n",
    ),
];

#[test]
fn what_helm_applied_is_declared_however_it_is_spelt() {
    for (version, test) in [(HelmVersion::V3, "spelt-helm3"), (HelmVersion::V4, "spelt-helm4")] {
        let namespace = Namespace::new(Plane::shared(), test);
        let chart = Chart::new("spelt").template("spelt", &OBJECTS.map(|(_, _, document)| document).join("---\n"));
        let alice = namespace.helm(version, Driver::Secret, "alice");
        alice.ok(&["install", "spelt", chart.path()]);
        let bob = namespace.kubectl("bob");
        for (name, key, _) in OBJECTS {
            let object = format!("configmap/{name}");
            let patch = format!(r#"{{"data":{{"{key}":"y"}}}}"#);
            assert_eq!(bob.ok(&["get", &object, "-o", &format!("jsonpath={{.data.{key}}}")]).stdout, "x", "{name}");
            bob.fails(&["patch", &object, "-p", &patch], &["[manual-edit]", &format!("data.{key}")]);
            bob.ok(&["patch", &object, "-p", r#"{"data":{"bob":"y"}}"#]);
        }
        alice.ok(&["upgrade", "spelt", chart.path()]);
    }
}
