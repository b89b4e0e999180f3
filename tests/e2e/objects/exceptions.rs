//! Exceptions that people have declared in the HelmRelease of a release. Flux does not run here: the tests write its status.

use serde_json::{Value, json};

use crate::harness::acts::{Target, Verdict};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::decisions::expect_findings_only_of;
use crate::harness::eventually::eventually;
use crate::harness::helm_releases::{SERVED, define, helm_release, installed, installed_by, shared};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

use Verdict::{Deletes, Edits, Passes, Scales};

const IMAGE: &str = "spec.template.spec.containers[app].image";
const SET_IMAGE: [&str; 4] = ["set", "image", "deployment/demo", "app=bob:1"];
const SCALE: [&str; 3] = ["scale", "deployment/demo", "--replicas=5"];

/// Release demo with a HelmRelease of this spec.
fn release<'p>(plane: &'p Plane, test: &str, spec: Value) -> Namespace<'p> {
    let namespace = Namespace::new(plane, test);
    let object = helm_release(namespace.name(), "demo", spec);
    namespace.kubectl("alice").with_file("create", &object, &[]).expect_success();
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", Chart::new("demo").path()]);
    namespace
}

#[test]
fn what_flux_ignores_is_left_to_people_once_flux_has_installed_it() {
    let ignored = json!({"paths": ["/spec/replicas"], "target": {"kind": "Deploy.*", "name": "demo"}});
    let namespace = release(shared(), "ignored", json!({"driftDetection": {"mode": "enabled", "ignore": [ignored]}}));
    let bob = namespace.kubectl("bob");
    let target = Target::deployed(&namespace, "demo", 1);
    target.expect(&bob.run(&SCALE), Scales);
    // A HelmRelease elsewhere that names the release loosens nothing.
    let tenant = Namespace::new(namespace.plane(), "ignored-tenant");
    let everything = json!({"driftDetection": {"ignore": [{"paths": [""]}]}, "releaseName": "demo",
        "storageNamespace": namespace.name(), "targetNamespace": namespace.name(), "suspend": true});
    let foreign = helm_release(tenant.name(), "x", everything);
    tenant.kubectl("bob").with_file("create", &foreign, &[]).expect_success();

    installed(&namespace, "demo", &namespace);
    eventually(SERVED, "the webhook knows the HelmRelease", || bob.run(&SCALE).into_result());
    let merge = |patch: &'static str| ["patch", "deployment/demo", "--type=merge", "-p", patch];
    target.expect(&bob.run(&merge(r#"{"spec":{"replicas":3}}"#)), Passes);
    target.expect(&bob.run(&SET_IMAGE), Edits(IMAGE));
    target.expect(&bob.run(&["delete", "deployment/demo"]), Deletes);
    // The annotation on the object opens nothing: Flux reads the manifest.
    bob.ok(&["annotate", "deployment/demo", "helm.toolkit.fluxcd.io/driftDetection=disabled"]);
    bob.ok(&["label", "deployment/demo", "helm.toolkit.fluxcd.io/driftDetection=disabled"]);
    target.expect(&bob.run(&SET_IMAGE), Edits(IMAGE));
    expect_findings_only_of(&namespace, &["bob"]);
}

#[test]
fn objects_are_left_to_people_while_their_helm_release_is_suspended() {
    let shipped = include_str!("../../../policies/cluster.yaml");
    let plane = Plane::start(&format!("{shipped}rules: {{manual-edit: {{whenSuspended: warn}}}}\n"));
    define(&plane);
    let namespace = release(&plane, "suspended", json!({"suspend": true}));
    let (alice, bob) = (namespace.kubectl("alice"), namespace.kubectl("bob"));
    let target = Target::deployed(&namespace, "demo", 1);
    target.expect(&bob.run(&SET_IMAGE), Edits(IMAGE));
    // No listed controller exists yet. Then every service account may write a status, so it opens nothing.
    let robot = namespace.service_account("robot");
    installed_by(&robot, &namespace, "demo", &namespace);
    target.expect(&bob.run(&SET_IMAGE), Edits(IMAGE));
    installed(&namespace, "demo", &namespace);
    let admitted = eventually(SERVED, "the webhook knows the HelmRelease", || bob.run(&SET_IMAGE).into_result());
    assert!(
        admitted.stderr.contains("is declared by the chart") && admitted.stderr.contains("[manual-edit]"),
        "{admitted}"
    );
    let scaled = bob.ok(&SCALE);
    assert!(scaled.stderr.contains("[manual-scale]"), "{scaled}");
    let deleted = bob.ok(&["delete", "service/demo"]);
    assert!(deleted.stderr.contains("[manual-delete]"), "{deleted}");
    alice.ok(&["patch", "helmrelease/demo", "--type=merge", "-p", r#"{"spec":{"suspend":false}}"#]);
    target.expect(&bob.run(&["set", "image", "deployment/demo", "app=bob:2"]), Edits(IMAGE));
}
