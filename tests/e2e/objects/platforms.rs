//! What runs the cluster writes the objects of releases, at rest and during an operation. People with similar names do not.

use std::time::Duration;

use interlock_engine::facts::{Actor, ActorKind};
use serde_json::json;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::decisions::expect_findings_only_of;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records;

/// How long an operation may take once nothing blocks it.
const WHILE: Duration = Duration::from_secs(60);

/// GKE's ingress controller writes an annotation that this chart declares, too.
const INGRESS: &str = "apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: demo
  annotations: {ingress.kubernetes.io/backends: none}
spec:
  defaultBackend: {service: {name: demo, port: {number: 80}}}
";

const FINALIZER: &str = "networking.gke.io/ingress-finalizer-V2";

/// Users that are people, whatever they are called.
const PEOPLE: [&str; 4] = ["system:admin", "Admin", "System:vpa-recommender", "system:node:worker-1"];

/// What GKE's ingress controller writes into each Ingress.
fn ensured(replicas: u32) -> String {
    let annotations = json!({
        "ingress.kubernetes.io/backends": format!("{replicas} HEALTHY"), "ingress.kubernetes.io/url-map": "k8s-um-demo",
    });
    json!({"metadata": {"finalizers": [FINALIZER], "annotations": annotations}}).to_string()
}

/// GKE's autoscaler and ingress controller do their work, and people do not do it for them.
#[track_caller]
fn expect_work_of_platforms_only(namespace: &Namespace<'_>, replicas: u32, rule: [&str; 2]) {
    let by = |user: &str| namespace.kubectl_as(&namespace.plane().named(user, &[]));
    let scale = format!("--replicas={replicas}");
    let patch = ensured(replicas);
    let ensure = ["patch", "ingress/demo", "--type=merge", "-p", &patch];
    for user in PEOPLE {
        let kubectl = by(user);
        kubectl.fails(&["scale", "deployment/demo", &scale], &["denied the request", rule[0]]);
        kubectl.fails(&ensure, &["denied the request", rule[1]]);
        // What the chart does not declare is free.
        kubectl.ok(&["annotate", "ingress/demo", "note=hello", "--overwrite"]);
    }
    by("system:vpa-recommender").ok(&["scale", "deployment/demo", &scale]);
    let glbc = by("system:controller:glbc");
    glbc.ok(&ensure);
    let ingress = glbc.get(&["ingress/demo"]);
    assert_eq!(ingress["metadata"]["finalizers"][0], FINALIZER);
    assert_eq!(ingress["metadata"]["annotations"]["ingress.kubernetes.io/url-map"], "k8s-um-demo");
    assert_eq!(glbc.get(&["deployment/demo"])["spec"]["replicas"], replicas);
}

#[test]
fn the_autoscaler_and_the_ingress_controller_of_a_cloud_work_at_rest_and_during_an_install() {
    for version in HelmVersion::ALL {
        let namespace = Namespace::new(Plane::shared(), "platforms");
        let chart = Chart::new("demo").template("ingress", INGRESS);
        let alice = namespace.helm(version, Driver::Secret, "alice");
        namespace.hang_pods();
        let install = alice.spawn(&["install", "demo", chart.path(), "--wait", "--timeout=50s"]);
        namespace.await_status(Driver::Secret, "demo", 1, "pending-install");
        // helm writes the record before the objects, and creates an Ingress last.
        namespace.await_image("demo", "registry.invalid/app:1");
        namespace.await_existence("ingress/demo");
        expect_work_of_platforms_only(&namespace, 2, ["[foreign-edit-in-transition]"; 2]);
        namespace.ready_pods();
        install.wait(WHILE).expect_success();
        assert_eq!(records::summary(&namespace.records(Driver::Secret, "demo")), "1 deployed");
        expect_work_of_platforms_only(&namespace, 3, ["[manual-scale]", "[manual-edit]"]);
        expect_findings_only_of(&namespace, &PEOPLE);
    }
}

#[test]
fn every_account_of_the_controller_manager_is_known() {
    let admin = Plane::shared().kubectl(&Plane::shared().admin());
    let bindings = admin.get(&["clusterrolebindings"]);
    let bindings = bindings["items"].as_array().expect("a list").iter();
    let of_controllers = bindings
        .filter(|binding| binding["metadata"]["name"].as_str().unwrap_or_default().starts_with("system:controller:"));
    let subjects = of_controllers.flat_map(|binding| binding["subjects"].as_array().cloned().unwrap_or_default());
    let users: Vec<_> = subjects
        .map(|subject| {
            let text = |key: &str| subject[key].as_str().unwrap_or_default().to_owned();
            format!("system:serviceaccount:{}:{}", text("namespace"), text("name"))
        })
        .collect();
    assert!(users.len() > 30, "expected the accounts of all controllers: {users:?}");
    let is_unknown = |user: &&String| Actor::named(user, &[]).kind != ActorKind::ControlPlane;
    let unknown: Vec<_> = users.iter().filter(is_unknown).collect();
    assert!(unknown.is_empty(), "add to crates/engine/src/facts/actor/control_plane.rs: {unknown:?}");
}
