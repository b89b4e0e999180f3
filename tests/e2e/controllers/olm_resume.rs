//! OLM dies in the middle of an upgrade: version 2 must be finished before version 3 is tried, although OLM itself
//! keeps no memory of it.

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::Kubectl;
use crate::harness::controllers::{failed, reached};
use crate::harness::eventually::eventually;
use crate::harness::extension::{CHUNK, COLLECTOR, Extension, WHOLE, hooked, large, noise};
use crate::harness::in_flight::{impatient, once_stale};

#[test]
fn an_interrupted_version_is_finished_before_the_next_one_is_tried() {
    let extension = Extension::new(impatient(), "olm-resume");
    let bob = extension.system.kubectl("bob");
    let extension = extension.asked_for(&bob);
    let olm = &extension.olm;
    let chart = hooked();
    reached(olm.reconcile(&chart, &large("one")), "install 1 deployed");

    extension.ask_for(&bob, "2.0.0").expect_success();
    chart.set_version("2.0.0");
    extension.kill_in_hook(&chart, &large("two"), 2);
    extension.objects.ready_pods();
    extension.objects.await_available(&extension.name);
    extension.ask_for(&bob, "3.0.0").expect_failure(&[
        "[extension-change-while-pending]",
        "its operation to demo-2.0.0 is pending-upgrade, revision 2",
        "If it is stuck, run `interlock unstick ",
    ]);
    // Everything that decides what is resolved next stays; another spelling and a pin of what is pending pass.
    let asked = |members: Value| extension.ask_with(&bob, members, &["--dry-run=server"]);
    let selector = json!({"matchLabels": {"olm.operatorframework.io/metadata.name": "other"}});
    for members in [
        json!({"version": "2"}),
        json!({"version": "2.0.0-rc.1"}),
        json!({"version": "2.0.0 || 3.0.0"}),
        json!({"version": "~2.0.0", "selector": selector}),
        json!({"version": "", "upgradeConstraintPolicy": "SelfCertified"}),
    ] {
        asked(members).expect_failure(&["[extension-change-while-pending]", "run `interlock unstick "]);
    }
    for version in ["v2.0.0", "= 2.0.0", ">=2.0.0, <2.0.1", "2.0.0 - 2.0.0"] {
        asked(json!({"version": version})).expect_success();
    }
    extension.ask_for(&bob, "v2.0.0").expect_success();

    delete_the_pending_record(&extension, &bob);
    extension.ask_for(&bob, "3.0.0").expect_success();
    chart.set_version("3.0.0");
    failed(
        olm.reconcile(&chart, &large("three")),
        "upgrade 1 deployed",
        &["[resume-interrupted]", "to demo-3.0.0: the upgrade to demo-2.0.0 (revision 2) was interrupted"],
    );
    extension.expect_records("1 deployed");
    extension.ask_for(&bob, "2.0.0").expect_success();
    chart.set_version("2.0.0");
    reached(olm.reconcile(&chart, &large("two")), "upgrade 2 deployed");
    extension.ask_for(&bob, "3.0.0").expect_success();
    chart.set_version("3.0.0");
    reached(olm.reconcile(&chart, &large("three")), "upgrade 3 deployed");
    extension.expect_records("1 superseded, 2 superseded, 3 deployed");

    // The objects are guarded, although their record is stored in five Secrets of another namespace.
    let image = ["set", "image", "deployment", &extension.name, "app=alice:1"];
    extension.objects.kubectl("alice").fails(&image, &["[manual-edit]", &format!("{}/", extension.system.name())]);
    bob.ok(&["delete", "clusterextension", &extension.name]);
    extension.await_no_records();
}

#[test]
fn an_upgrade_that_died_between_its_last_two_writes_is_finished_first() {
    let extension = Extension::new(impatient(), "olm-between");
    let bob = extension.system.kubectl("bob");
    let extension = extension.asked_for(&bob);
    let chart = Chart::new("demo");
    // Records in one Secret each: the new index, the old one (superseded), and the new one again (deployed).
    let olm = extension.olm.clone().chunk_size(WHOLE);
    reached(olm.reconcile(&chart, &json!({})), "install 1 deployed");
    chart.set_version("2.0.0");
    extension.ask_for(&bob, "2.0.0").expect_success();
    extension.kill_before(&olm, &chart, &json!({"note": "two"}), 3);
    extension.expect_records("1 superseded, 2 pending-upgrade");
    let [first, second] = [1, 2].map(|revision| format!("sh.helm.release.v1.{}.v{revision}", extension.name));
    once_stale("bob deletes the pending record", || bob.run(&["delete", "secret", &second]));
    eventually(COLLECTOR, "the record that is left says what was interrupted", || {
        let record = bob.get(&["secret", &first]);
        let note = &record["metadata"]["annotations"]["interlock.dev/interrupted"];
        if note == "demo-2.0.0@2" { Ok(()) } else { Err(record["metadata"].to_string()) }
    });
    extension.ask_for(&bob, "3.0.0").expect_success();
    chart.set_version("3.0.0");
    let pin = r#"--type merge -p '{"spec":{"source":{"catalog":{"version":"2.0.0"}}}}'"#;
    let texts = ["[resume-interrupted]", "the upgrade to demo-2.0.0 (revision 2) was interrupted", pin];
    failed(olm.reconcile(&chart, &json!({"note": "three"})), "upgrade 1 superseded", &texts);
    let patch = r#"{"spec":{"source":{"catalog":{"version":"2.0.0"}}}}"#;
    bob.ok(&["patch", "clusterextension", &extension.name, "--type", "merge", "-p", patch]);
    chart.set_version("2.0.0");
    reached(olm.reconcile(&chart, &json!({"note": "two"})), "upgrade 2 deployed");
    extension.ask_for(&bob, "3.0.0").expect_success();
    chart.set_version("3.0.0");
    reached(olm.reconcile(&chart, &json!({"note": "three"})), "upgrade 3 deployed");
}

/// OLM writes the index and a part, and at the end it deletes the part, writes the index, and writes the part again.
#[test]
fn a_first_install_that_died_is_cleared_even_if_its_record_cannot_be_read() {
    for (step, parts_left) in [(3, 1), (4, 0)] {
        let extension = Extension::new(impatient(), &format!("olm-first-{step}"));
        let bob = extension.system.kubectl("bob");
        let extension = extension.asked_for(&bob);
        let olm = extension.olm.clone().chunk_size(CHUNK * 3);
        let chart = Chart::new("demo");
        extension.kill_before(&olm, &chart, &json!({"note": noise()}), step);
        let index = format!("sh.helm.release.v1.{}.v1", extension.name);
        assert_eq!(extension.secrets().keys().filter(|name| **name != index).count(), parts_left);
        extension.ask_for(&bob, "1.0.1").expect_failure(&["[extension-change-while-pending]", "pending-install"]);
        once_stale("bob deletes the pending record", || bob.run(&["delete", "secret", &index]));
        extension.await_no_records();
        // Another version may be the one that works.
        extension.ask_for(&bob, "1.0.1").expect_success();
        chart.set_version("1.0.1");
        reached(olm.reconcile(&chart, &json!({"note": noise()})), "install 1 deployed");
    }
}

/// A part alone may not be deleted. The record may, once it is stuck, and its parts are deleted with it.
#[track_caller]
fn delete_the_pending_record(extension: &Extension, bob: &Kubectl) {
    let index = extension.records().pop().unwrap().object;
    let part = extension.secrets().into_keys().find(|name| name.starts_with(&index) && *name != index).unwrap();
    bob.fails(&["delete", "secret", &part], &["[record-deletion]", "holds a part of the record"]);
    once_stale("bob deletes the pending record", || bob.run(&["delete", "secret", &index]));
    eventually(COLLECTOR, "the parts of the record are collected, and what it was is noted", || {
        let left: Vec<_> = extension.secrets().into_keys().filter(|name| name.starts_with(&index)).collect();
        let deployed = extension.records().pop().unwrap();
        let note = deployed.annotations["interlock.dev/interrupted"].clone();
        if left.is_empty() && note == "demo-2.0.0@2" { Ok(()) } else { Err(format!("{left:?}, {note}")) }
    });
}
