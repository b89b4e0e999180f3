//! OLM dies in the middle of an upgrade: version 2 must be finished before version 3 is tried, although OLM itself
//! keeps no memory of it.

use crate::harness::clients::Kubectl;
use crate::harness::controllers::{failed, reached};
use crate::harness::eventually::eventually;
use crate::harness::extension::{COLLECTOR, Extension, hooked, large};
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
        "delete only the record",
    ]);
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
