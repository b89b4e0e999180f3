//! OLM's operator-controller in front of the webhook: its transitions cause no finding, even if a record takes several
//! Secrets.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::harness::chart::Chart;
use crate::harness::controllers::{failed, operator_controller, reached};
use crate::harness::decisions::{decisions, expect_findings_only_of};
use crate::harness::eventually::eventually;
use crate::harness::extension::{CHUNK, COLLECTOR, Extension, hooked, large, noise};
use crate::harness::gate::Gate;
use crate::harness::in_flight::{impatient, once_stale};
use crate::harness::plane::Plane;

const IN_PROGRESS: &str = "another operation (install/upgrade/rollback) is in progress";

#[test]
fn olm_lives_a_whole_life() {
    let extension = Extension::new(Plane::shared(), "olm-life");
    let Extension { objects, name, olm, .. } = &extension;
    let chart = Chart::new("demo");
    reached(olm.reconcile(&chart, &json!({})), "install 1 deployed");
    let before = extension.secrets();
    assert_eq!(before.len(), 1, "{before:?}");
    reached(olm.reconcile(&chart, &json!({})), "");

    let bot = objects.service_account("bot");
    let drift = objects.kubectl_as(&bot);
    drift.ok(&["set", "image", "deployment", name, "app=drifted:1"]);
    drift.ok(&["delete", "service", name]);
    objects.kubectl("bob").fails(&["set", "image", "deployment", name, "app=bob:1"], &["[manual-edit]"]);
    let corrected = reached(olm.reconcile(&chart, &json!({})), "correct-drift 1 deployed");
    assert_eq!(corrected.actions[0].objects, [format!("Service/{name}"), format!("Deployment/{name}")]);
    assert_eq!(extension.secrets(), before, "a release in sync has no writes");

    chart.set_version("1.1.0");
    let two = json!({"note": "two"});
    reached(olm.reconcile(&chart, &two), "upgrade 2 deployed");
    failed(olm.reconcile(&chart, &json!({"note": "three", "breakApply": true})), "upgrade 3 failed", &["selector"]);
    extension.expect_records("1 superseded, 2 deployed, 3 failed");
    // OLM neither rolls back nor uninstalls: it repeats the upgrade until it works.
    reached(olm.reconcile(&chart, &two), "upgrade 4 deployed");
    extension.expect_records("1 superseded, 2 superseded, 3 failed, 4 deployed");
    let newest = extension.records().pop().unwrap();
    assert_eq!(newest.chart, "demo-1.1.0");
    assert_eq!(newest.annotations["interlock.dev/target-namespace"], objects.name());
    assert_eq!(newest.body["labels"]["olm.operatorframework.io/bundle-version"], "1.1.0");

    reached(olm.uninstall(), "uninstall");
    assert_eq!(extension.secrets(), BTreeMap::new());
    extension.expect_findings_only_of(&[bot.user(), "bob"]);
}

#[test]
fn olm_writes_nothing_over_an_interrupted_upgrade() {
    let extension = Extension::new(Plane::shared(), "olm-killed");
    let chart = hooked();
    reached(extension.olm.reconcile(&chart, &json!({})), "install 1 deployed");
    chart.set_version("2.0.0");
    extension.kill_in_hook(&chart, &json!({"note": "two"}), 2);
    let (secrets, writes) = (extension.secrets(), writes(&extension));
    for note in ["two", "three"] {
        let values = json!({"note": note});
        failed(extension.olm.reconcile(&chart, &values), "upgrade 2 pending-upgrade", &[IN_PROGRESS]);
    }
    assert_eq!(extension.secrets(), secrets);
    assert_eq!(self::writes(&extension), writes);
    // The hook runs before the objects are written, so there are no reviews in their namespace.
    expect_findings_only_of(&extension.system, &[]);
}

fn writes(extension: &Extension) -> usize {
    let user = operator_controller(extension.system.plane());
    let ours = |namespace| decisions(namespace).iter().filter(|decision| decision.user == user.user()).count();
    ours(&extension.system) + ours(&extension.objects)
}

#[test]
fn olm_keeps_a_record_in_five_secrets() {
    let extension = Extension::new(Plane::shared(), "olm-chunks");
    let olm = extension.olm.clone().chunk_size(CHUNK);
    let chart = hooked();
    reached(olm.reconcile(&chart, &large("one")), "install 1 deployed");
    assert_eq!(extension.parts(), [5]);
    let first = extension.secrets();
    reached(olm.reconcile(&chart, &large("two")), "upgrade 2 deployed");
    assert_eq!(extension.parts(), [5, 5]);
    // To mark revision 1 as superseded, OLM deletes all its parts but the first and writes them under other names.
    let second = extension.secrets();
    let kept: Vec<_> = first.keys().filter(|name| second.contains_key(*name)).collect();
    assert_eq!(kept, [&extension.records()[0].object]);
    let mut broken = large("three");
    broken["breakApply"] = true.into();
    failed(olm.reconcile(&chart, &broken), "upgrade 3 failed", &["selector"]);
    reached(olm.reconcile(&chart, &large("four")), "upgrade 4 deployed");
    extension.expect_records("1 superseded, 2 superseded, 3 failed, 4 deployed");
    assert_eq!(extension.parts(), [5, 5, 5, 5]);

    let interrupted = Extension { olm, ..extension };
    interrupted.kill_in_hook(&chart, &large("five"), 5);
    let before = interrupted.secrets();
    failed(interrupted.olm.reconcile(&chart, &large("five")), "upgrade 5 pending-upgrade", &[IN_PROGRESS]);
    assert_eq!(interrupted.secrets(), before);
    interrupted.expect_findings_only_of(&[]);

    reached(interrupted.olm.uninstall(), "uninstall");
    interrupted.await_no_records();
    interrupted.expect_findings_only_of(&[]);
}

#[test]
fn olm_is_not_disturbed_wherever_its_upgrade_was_killed() {
    // OLM's writes in order: the index and the chunk of revision 2. Then, first for revision 1 (superseded) and then
    // for revision 2 (deployed): the deletion of the chunk, the index, and the new chunk.
    let rewritten = ["pending", "unreadable", "unreadable"];
    let expected = [&["not begun", "unreadable"], &rewritten[..], &rewritten, &["ended"]].concat();
    // In parallel: the cases spend most of their time waiting.
    let endings: Vec<_> = std::thread::scope(|scope| {
        let cases: Vec<_> = (1..=expected.len()).map(|step| scope.spawn(move || killed_at(step))).collect();
        cases.into_iter().map(|case| case.join().unwrap()).collect()
    });
    assert_eq!(endings, expected);
}

/// Kills an upgrade before its n-th write of records. Returns how the next reconcile finds the release, or `ended` if
/// there is no such write.
fn killed_at(step: usize) -> &'static str {
    let extension = Extension::new(Plane::shared(), &format!("olm-killed-{step}"));
    let olm = extension.olm.clone().chunk_size(CHUNK * 3);
    let chart = Chart::new("demo");
    reached(olm.reconcile(&chart, &json!({"note": noise()})), "install 1 deployed");
    assert_eq!(extension.parts(), [2]);
    let values = large("two");
    let gate = Gate::before(&extension.system, &operator_controller(extension.system.plane()));
    let hold = gate.hold(step);
    let mut upgrade = olm.spawn(&chart, &values);
    if !hold.reached_by(&mut upgrade) {
        reached(upgrade.wait(Duration::from_secs(60)), "upgrade 2 deployed");
        return "ended";
    }
    upgrade.kill();
    gate.open();
    let before = extension.secrets();
    let next = olm.reconcile(&chart, &values);
    let ending = if next.success() {
        reached(next, "upgrade 2 deployed");
        "not begun"
    } else {
        assert_eq!(extension.secrets(), before);
        if next.stdout.contains("upgrade") {
            failed(next, "upgrade 2 pending-upgrade", &[IN_PROGRESS]);
            "pending"
        } else {
            // One missing part of one revision is enough, and OLM does not recover by itself.
            failed(next, "", &["not found"]);
            "unreadable"
        }
    };
    expect_findings_only_of(&extension.system, &[]);
    ending
}

#[test]
fn the_parts_of_a_record_are_guarded_as_one_with_it() {
    let extension = Extension::new(Plane::shared(), "olm-parts");
    let olm = extension.olm.clone().chunk_size(CHUNK);
    let chart = hooked();
    reached(olm.reconcile(&chart, &large("one")), "install 1 deployed");
    let index = extension.records().pop().unwrap().object;
    let part = extension.secrets().into_keys().find(|name| *name != index).unwrap();
    let bot = extension.system.service_account("bot");
    for kubectl in [extension.system.kubectl("bob"), extension.system.kubectl_as(&bot)] {
        kubectl.fails(&["delete", "secret", &part], &["[record-deletion]", "kubectl delete secret -n"]);
        for (args, text) in [
            (["label", "--overwrite", "secret", &part, "key=other"], "the label key"),
            (["label", "--overwrite", "secret", &part, "type=other"], "the label type"),
            (["label", "--overwrite", "secret", &index, "type=other"], "label type"),
            (["label", "--overwrite", "secret", &index, "key=other"], "label key"),
            (["patch", "secret", &part, "-p", r#"{"metadata":{"finalizers":["a.io/b"]}}"#], "the finalizers"),
        ] {
            kubectl.fails(&args, &["[record-tampering]", text]);
        }
        // The order of the parts is content too.
        let mut record = kubectl.get(&["secret", &index]);
        let listed = STANDARD.decode(record["data"]["extraChunks"].as_str().unwrap()).unwrap();
        let mut listed: Vec<String> = serde_json::from_slice(&listed).unwrap();
        listed.reverse();
        record["data"]["extraChunks"] = STANDARD.encode(serde_json::to_vec(&listed).unwrap()).into();
        let texts = ["[record-tampering]", "it is stored in several Secrets and cannot be compared"];
        kubectl.with_file("replace", &record, &[]).expect_failure(&texts);
        // One more part, as OLM would name it.
        let mut planted = kubectl.get(&["secret", &part]);
        planted["metadata"] = json!({"name": format!("{index}-abcdefghijklm")});
        planted["type"] = "Opaque".into();
        kubectl.with_file("create", &planted, &[]).expect_failure(&["[record-tampering]", "a part of a record"]);
        // What OLM does not read may change, and a Secret may be replaced with itself, to have it encrypted again.
        kubectl.ok(&["label", "--overwrite", "secret", &part, "team=a"]);
        for object in [&part, &index] {
            kubectl.with_file("replace", &kubectl.get(&["secret", object]), &[]).expect_success();
        }
    }
    reached(olm.reconcile(&chart, &large("two")), "upgrade 2 deployed");
    assert_eq!(extension.parts(), [5, 5]);
    extension.expect_findings_only_of(&["bob", bot.user()]);
}

#[test]
fn a_record_whose_parts_are_missing_is_deleted_and_olm_goes_on() {
    let extension = Extension::new(impatient(), "olm-missing");
    let olm = extension.olm.clone().chunk_size(CHUNK * 3);
    let chart = Chart::new("demo");
    reached(olm.reconcile(&chart, &json!({"note": noise()})), "install 1 deployed");
    extension.objects.await_available(&extension.name);
    // The index and the part of revision 2, and the deletion of the part of revision 1.
    extension.kill_before(&olm, &chart, &large("two"), 4);
    failed(olm.reconcile(&chart, &large("two")), "", &["not found"]);
    let bob = extension.system.kubectl("bob");
    let [first, second] = [1, 2].map(|revision| format!("sh.helm.release.v1.{}.v{revision}", extension.name));
    once_stale("bob deletes the pending record", || bob.run(&["delete", "secret", &second]));
    // It says that it is deployed, and nobody can read it.
    bob.ok(&["delete", "secret", &first]);
    extension.await_no_records();
    reached(olm.reconcile(&chart, &large("two")), "install 1 deployed");
}

#[test]
fn what_a_deleted_cluster_extension_leaves_behind_is_collected() {
    let extension = Extension::new(Plane::shared(), "olm-collected");
    let bob = extension.system.kubectl("bob");
    let extension = extension.asked_for(&bob);
    let Extension { objects, name, olm, .. } = &extension;
    let chart = Chart::new("demo");
    reached(olm.reconcile(&chart, &json!({"note": noise()})), "install 1 deployed");
    reached(olm.reconcile(&chart, &large("two")), "upgrade 2 deployed");
    assert_eq!(extension.parts(), [5, 5]);
    bob.ok(&["delete", "clusterextension", name]);
    eventually(COLLECTOR, "records and objects are collected", || {
        let (records, objects) = (extension.secrets(), objects.kubectl("admin").get(&["deployment,service"]));
        let objects = objects["items"].as_array().unwrap().len();
        if records.is_empty() && objects == 0 { Ok(()) } else { Err(format!("{objects} objects, {records:?}")) }
    });
    extension.expect_findings_only_of(&[]);
}
