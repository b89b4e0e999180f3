//! What one tenant writes in a namespace of its own decides nothing about the release of another.

use std::sync::OnceLock;

use serde_json::json;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::controllers::helm_controller;
use crate::harness::forging;
use crate::harness::helm_releases::{define, helm_release, refused};
use crate::harness::in_flight::{impatient, killed, once_stale};
use crate::harness::namespace::{ALL_OF_DEMO, Namespace};
use crate::harness::plane::Plane;
use crate::harness::records::{self, V1};

#[test]
fn a_record_that_names_another_namespace_makes_nobody_the_holder_of_its_release() {
    for (version, driver) in [(HelmVersion::V3, Driver::Secret), (HelmVersion::V4, Driver::ConfigMap)] {
        let (home, evil) = (Namespace::new(Plane::shared(), "home"), Namespace::new(Plane::shared(), "evil"));
        let (alice, chart) = (home.helm(version, driver, "alice"), Chart::new("demo"));
        alice.ok(&["install", "demo", chart.path(), "--set=note=one"]);
        let mut record = home.kubectl("bob").get(&[driver.resource(), V1]);
        forging::copy(&mut record, driver, 1, "pending-install");
        record["metadata"]["namespace"] = evil.name().into();
        evil.kubectl("bob").with_file("create", &record, &[]).expect_success();
        let claimed = evil.records(driver, "demo");
        assert_eq!(claimed[0].annotations["interlock.dev/holder"], "bob");
        assert_eq!(claimed[0].body["namespace"], home.name());

        let bob = home.kubectl("bob");
        bob.fails(&["set", "image", "deployment/demo", "app=bob:1"], &["denied the request", "[manual-edit]"]);
        bob.fails(&["scale", "deployment/demo", "--replicas=5"], &["denied the request", "[manual-scale]"]);
        bob.fails(&["delete", "configmap/demo"], &["denied the request", "[manual-delete]"]);
        bob.ok(&["annotate", "deployment/demo", "note=hello"]);
        // Its owner is not kept from it.
        alice.ok(&["upgrade", "demo", chart.path(), "--set=note=two,image=two", "--wait", "--timeout=60s"]);
        assert_eq!(records::summary(&home.records(driver, "demo")), "1 superseded, 2 deployed");
        assert_eq!((home.image("demo").as_str(), home.objects_of_demo()), ("two", ALL_OF_DEMO.to_vec()));
        alice.ok(&["uninstall", "demo"]);
        assert_eq!(home.objects_of_demo(), [""; 0]);
    }
}

/// The impatient plane with HelmReleases.
fn flux() -> &'static Plane {
    static DEFINED: OnceLock<()> = OnceLock::new();
    DEFINED.get_or_init(|| define(impatient()));
    impatient()
}

#[test]
fn a_helm_release_elsewhere_neither_delays_the_way_out_of_a_release_nor_takes_its_name() {
    let driver = Driver::Secret;
    let home = killed(flux(), "home", HelmVersion::V4, driver, true);
    let evil = Namespace::new(flux(), "evil");
    let bob = evil.kubectl("bob");
    let claim = json!({"releaseName": "demo", "storageNamespace": home.name(), "timeout": "9999h"});
    bob.with_file("create", &helm_release(evil.name(), "claim", claim.clone()), &[]).expect_success();
    // More than are read, each suspended, and each with a status that says that Flux has installed the release for it.
    let history = json!([{"name": "demo", "namespace": home.name(), "version": 1, "status": "deployed"}]);
    let status = json!({"status": {"storageNamespace": home.name(), "history": history}}).to_string();
    for number in 0..12 {
        let mut suspended = claim.clone();
        suspended["suspend"] = true.into();
        let name = format!("claim-{number}");
        bob.with_file("create", &helm_release(evil.name(), &name, suspended), &[]).expect_success();
        let target = format!("helmrelease/{name}");
        let forge = ["patch", &target, "--subresource=status", "--type=merge", "-p", &status];
        evil.kubectl("bob").fails(&forge, &["[forged-status]", "only its controller writes it, not bob"]);
        // As somebody did before the installation.
        evil.kubectl_as(&helm_controller(evil.plane())).ok(&forge);
    }
    // Once the webhook refuses the second of two later ones, it has seen the claim too.
    bob.with_file("create", &helm_release(evil.name(), "one", json!({"releaseName": "web"})), &[]).expect_success();
    let second = helm_release(evil.name(), "two", json!({"releaseName": "web"}));
    refused(&bob, &second, &["[duplicate-release]", &format!("HelmRelease {}/one", evil.name())]);

    let rollback = home.helm(HelmVersion::V4, driver, "bob");
    once_stale("the rollback is admitted", || rollback.run(&["rollback", "demo", "1", "--wait", "--timeout=60s"]));
    assert_eq!(records::summary(&home.records(driver, "demo")), "1 superseded, 2 pending-upgrade, 3 deployed");
    let alice = home.kubectl("alice");
    alice.with_file("create", &helm_release(home.name(), "demo", json!({})), &[]).expect_success();
    // At home the rule holds as ever.
    let other = helm_release(home.name(), "other", json!({"releaseName": "demo"}));
    refused(&alice, &other, &["[duplicate-release]", &format!("HelmRelease {}/demo", home.name())]);
}
