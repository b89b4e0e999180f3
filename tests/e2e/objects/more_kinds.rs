//! Kinds that few charts have: they are guarded like others. And the definitions that a chart brings without marks.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::run;

const DEADLINE: Duration = Duration::from_secs(60);

const RARE: &str = r#"apiVersion: v1
kind: Endpoints
metadata: {name: outside}
subsets:
  - addresses: [{ip: 192.0.2.1}]
    ports: [{port: 80}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: outside-1, labels: {kubernetes.io/service-name: outside}}
addressType: IPv4
endpoints: [{addresses: [192.0.2.1]}]
ports: [{port: 80}]
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: "{{ .Release.Namespace }}.example.com"}
spec: {requiresRepublish: false}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: "{{ .Release.Namespace }}"}
handler: runc
scheduling: {nodeSelector: {disk: ssd}}
"#;

#[test]
fn endpoints_slices_drivers_and_runtimes_are_guarded() {
    let namespace = Namespace::new(Plane::shared(), "rare-kinds");
    let chart = Chart::new("rare").template("rare", RARE);
    let alice = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
    alice.ok(&["install", "rare", chart.path()]);
    let bob = namespace.kubectl("bob");
    let (driver, runtime) =
        (format!("csidriver/{}.example.com", namespace.name()), format!("runtimeclass/{}", namespace.name()));
    for (object, patch, field) in [
        ("endpoints/outside", r#"{"subsets":[{"addresses":[{"ip":"192.0.2.9"}],"ports":[{"port":80}]}]}"#, "subsets"),
        ("endpointslice/outside-1", r#"{"endpoints":[{"addresses":["192.0.2.9"]}]}"#, "endpoints"),
        (driver.as_str(), r#"{"spec":{"requiresRepublish":true}}"#, "spec.requiresRepublish"),
        (runtime.as_str(), r#"{"scheduling":{"nodeSelector":{"disk":"hdd"}}}"#, "scheduling.nodeSelector"),
    ] {
        bob.fails(&["patch", object, "--type=merge", "-p", patch], &["[manual-edit]", field]);
        bob.ok(&["label", object, "team=blue"]);
    }
    alice.ok(&["upgrade", "rare", chart.path()]);
    alice.ok(&["uninstall", "rare"]);
}

#[test]
fn who_deletes_a_definition_of_a_chart_is_warned() {
    let plane = Plane::shared();
    for (version, test) in [(HelmVersion::V3, "definitions-helm3"), (HelmVersion::V4, "definitions-helm4")] {
        let namespace = Namespace::new(plane, test);
        let group = format!("{}.example.com", namespace.name());
        let definition = |plural: &str| -> Value {
            let version = json!({
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            });
            let names = json!({"kind": plural.to_uppercase(), "plural": plural});
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.{group}")},
                "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
            })
        };
        let chart = Chart::new("demo").definition(&definition("carts"));
        let alice = namespace.helm(version, Driver::Secret, "alice");
        alice.ok(&["install", "demo", chart.path()]);
        let bob = namespace.kubectl("bob");
        bob.with_file("create", &definition("plain"), &[]).expect_success();

        let scanned = run(plane.interlock(&plane.admin(), &["scan", "-o", "json", "-n", namespace.name()]), DEADLINE);
        let findings = scanned.json()["findings"].clone();
        let found = findings.as_array().unwrap().iter().find(|finding| finding["check"] == "unmarked-definition");
        let found = found.unwrap_or_else(|| panic!("{findings}"));
        assert!(found["message"].as_str().unwrap().contains(&format!("carts.{group}")), "{found}");

        let carts = bob.ok(&["delete", "customresourcedefinition", &format!("carts.{group}")]);
        assert!(
            carts.stderr.contains("[manual-delete]") && carts.stderr.contains("was installed by a chart"),
            "{carts}"
        );
        let plain = bob.ok(&["delete", "customresourcedefinition", &format!("plain.{group}")]);
        assert!(!plain.stderr.contains("interlock"), "{plain}");
    }
}
