//! Refusals about the records of Helm, and of Flux, whose records are the same.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::{Value, json};

use super::owners::{Client, ends};
use super::scene::{Scene, kept, place};
use super::{Case, plane};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::controllers::{Flux, helm_controller};
use crate::harness::eventually::eventually;
use crate::harness::forging;
use crate::harness::helm_releases::helm_release;
use crate::harness::in_flight::{killed, killed_on_the_way_to, once_stale, unlock};
use crate::harness::namespace::Namespace;
use crate::harness::process::Output;
use crate::harness::records::{V1, V2};

const DRIVER: Driver = Driver::Secret;
const WHILE: Duration = Duration::from_secs(60);

pub(super) const CASES: &[Case] = &[
    Case { rule: "concurrent-operation", owner: "Helm", arrange: upgrade_during_an_upgrade },
    Case { rule: "concurrent-operation", owner: "Helm", arrange: upgrade_over_a_dead_upgrade },
    Case { rule: "pending-recovery", owner: "Helm", arrange: rollback_during_an_upgrade },
    Case { rule: "pending-recovery", owner: "Helm", arrange: unlock_of_a_dead_upgrade },
    Case { rule: "pending-recovery", owner: "Helm", arrange: deletion_of_a_dead_record },
    Case { rule: "pending-recovery", owner: "Flux", arrange: unlock_by_flux },
    Case { rule: "resume-interrupted", owner: "Helm", arrange: jump_over_an_interrupted_version },
    Case { rule: "revision-order", owner: "Helm", arrange: old_revision },
    Case { rule: "unusual-create", owner: "Helm", arrange: record_by_hand },
    Case { rule: "unusual-create", owner: "Helm", arrange: install_with_the_other_driver },
    Case { rule: "illegal-transition", owner: "Helm", arrange: superseded_to_deployed },
    Case { rule: "record-integrity", owner: "Helm", arrange: relabelled },
    Case { rule: "record-tampering", owner: "Helm", arrange: other_manifest },
    Case { rule: "record-tampering", owner: "Helm", arrange: finalizer },
    Case { rule: "record-deletion", owner: "Helm", arrange: deletion_of_the_deployed_record },
    Case { rule: "forged-stamp", owner: "Helm", arrange: forged_holder },
];

fn alice(namespace: &Namespace<'_>) -> Helm {
    namespace.helm(HelmVersion::V4, DRIVER, "alice")
}

/// Alice's release with two revisions.
fn two_revisions(test: &str) -> (&'static Namespace<'static>, Chart) {
    let (namespace, chart) = (place(test), Chart::new("demo"));
    alice(namespace).ok(&["install", "demo", chart.path()]);
    alice(namespace).ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
    (namespace, chart)
}

/// Alice's upgrade to revision 2 waits for pods that hang.
fn upgrading(test: &str) -> (&'static Namespace<'static>, Chart, Client) {
    let (namespace, chart) = (place(test), Chart::new("demo"));
    let alice = alice(namespace);
    alice.ok(&["install", "demo", chart.path(), "--wait", "--timeout=60s"]);
    namespace.hang_pods();
    let upgrade = alice.spawn(&["upgrade", "demo", chart.path(), "--set=image=two", "--wait", "--timeout=5m"]);
    namespace.await_status(DRIVER, "demo", 2, "pending-upgrade");
    (namespace, chart, kept(RefCell::new(Some(upgrade))))
}

/// A record of bob's, from the newest one of alice's.
fn create(namespace: &Namespace<'_>, revision: u64, status: &str) -> Output {
    let kubectl = namespace.kubectl("bob");
    let mut record = kubectl.get(&["secret", V2]);
    forging::copy(&mut record, DRIVER, revision, status);
    kubectl.with_file("create", &record, &[])
}

fn replace(namespace: &Namespace<'_>, name: &str, edit: impl FnOnce(&mut Value)) -> Output {
    let kubectl = namespace.kubectl("bob");
    let mut record = kubectl.get(&["secret", name]);
    edit(&mut record);
    kubectl.with_file("replace", &record, &[])
}

fn upgrade_during_an_upgrade() -> Scene {
    let (namespace, chart, upgrade) = upgrading("way-concurrent");
    let refused = create(namespace, 3, "pending-upgrade");
    Scene::new(namespace, chart, "bob", refused).wait(ends(namespace, upgrade))
}

fn upgrade_over_a_dead_upgrade() -> Scene {
    let namespace = kept(killed(plane(), "way-stuck", HelmVersion::V4, DRIVER, false));
    let refused = eventually(WHILE, "the upgrade counts as stuck", || {
        let refused = create(namespace, 3, "pending-upgrade");
        if refused.stderr.contains("counts as stuck.") { Ok(refused) } else { Err(refused.to_string()) }
    });
    Scene::new(namespace, Chart::new("demo"), "bob", refused)
}

fn rollback_during_an_upgrade() -> Scene {
    const ROLLBACK: &str = "helm rollback demo 1 -n NAMESPACE";
    let (namespace, chart, upgrade) = upgrading("way-rollback");
    let refused = namespace.helm(HelmVersion::V4, DRIVER, "bob").run(&["rollback", "demo", "1"]);
    Scene::new(namespace, chart, "bob", refused).wait(ends(namespace, upgrade)).retry(|scene| scene.shell(ROLLBACK))
}

fn unlock_of_a_dead_upgrade() -> Scene {
    let (namespace, chart, upgrade) = upgrading("way-unlock");
    let refused = unlock(namespace, DRIVER, "bob");
    // Bob's text is that of Flux, so Flux is who the refusal speaks to.
    let for_flux = "flux reconcile helmrelease NAME --with-source";
    Scene::new(namespace, chart, "bob", refused)
        .act(for_flux, |scene| scene.namespace.kubectl("bob").run(&["get", "secret", V2]))
        .wait(ends(namespace, upgrade))
        .retry(|scene| unlock(scene.namespace, DRIVER, "bob"))
}

fn deletion_of_a_dead_record() -> Scene {
    let namespace = kept(killed(plane(), "way-delete", HelmVersion::V3, DRIVER, false));
    let refused = namespace.kubectl("bob").run(&["delete", "secret", V2]);
    Scene::new(namespace, Chart::new("demo"), "bob", refused)
}

/// Flux takes a pending record for a stale one, and must wait until the person who holds it is done.
fn unlock_by_flux() -> Scene {
    let (namespace, chart, upgrade) = upgrading("way-flux");
    let object = helm_release(namespace.name(), "demo", json!({"releaseName": "demo"}));
    namespace.kubectl("bob").with_file("create", &object, &[]).expect_success();
    let flux = Flux::new(&helm_controller(plane()), namespace, "demo").origin(namespace, "demo");
    let values = json!({"note": "flux"});
    let refused = flux.reconcile(&chart, &values);
    let again = move |scene: &Scene| flux.reconcile(&scene.chart, &values);
    Scene::new(namespace, chart, "bob", refused).wait(ends(namespace, upgrade)).retry(again.clone()).end(move |scene| {
        again(scene).into_result()?;
        scene.release_ended(DRIVER)
    })
}

fn jump_over_an_interrupted_version() -> Scene {
    fn upgrade(scene: &Scene, version: &str) -> Output {
        scene.chart.set_version(version);
        scene.shell("helm upgrade demo CHART -n NAMESPACE --set=image=two --wait --timeout=60s")
    }
    let namespace = kept(killed_on_the_way_to("2.0.0", plane(), "way-resume", HelmVersion::V4, DRIVER, true));
    once_stale("bob deletes the stuck record", || namespace.kubectl("bob").run(&["delete", "secret", V2]));
    let chart = Chart::new("demo");
    chart.set_version("3.0.0");
    let bob = namespace.helm(HelmVersion::V4, DRIVER, "bob");
    let refused = eventually(WHILE, "the interrupted upgrade is noted", || {
        let refused = bob.run(&["upgrade", "demo", chart.path(), "--dry-run=server"]);
        let noted = namespace.records(DRIVER, "demo")[0].annotations.contains_key("interlock.dev/interrupted");
        if noted { Ok(bob.run(&["upgrade", "demo", chart.path()])) } else { Err(refused.to_string()) }
    });
    Scene::new(namespace, chart, "bob", refused)
        .act("upgrade to demo-2.0.0 again", |scene| upgrade(scene, "2.0.0"))
        .act("roll back", |scene| scene.shell("helm rollback demo 1 -n NAMESPACE --wait --timeout=60s"))
        .retry(|scene| upgrade(scene, "3.0.0"))
        .end(|scene| {
            upgrade(scene, "3.0.0").into_result()?;
            scene.release_ended(DRIVER)
        })
}

fn old_revision() -> Scene {
    let (namespace, chart) = two_revisions("way-order");
    alice(namespace).ok(&["upgrade", "demo", chart.path(), "--history-max=2", "--set=note=three"]);
    let refused = create(namespace, 1, "pending-upgrade");
    Scene::new(namespace, chart, "bob", refused)
}

fn record_by_hand() -> Scene {
    let (namespace, chart) = two_revisions("way-create");
    let refused = create(namespace, 3, "deployed");
    Scene::new(namespace, chart, "bob", refused)
}

fn install_with_the_other_driver() -> Scene {
    let (namespace, chart) = two_revisions("way-driver");
    let refused = namespace.helm(HelmVersion::V4, Driver::ConfigMap, "bob").run(&[
        "install",
        "demo",
        chart.path(),
        "--take-ownership",
    ]);
    Scene::new(namespace, chart, "bob", refused)
}

fn superseded_to_deployed() -> Scene {
    let (namespace, chart) = two_revisions("way-transition");
    let refused = replace(namespace, V1, |record| {
        forging::edit(record, DRIVER, |body| body["info"]["status"] = "deployed".into());
        record["metadata"]["labels"]["status"] = "deployed".into();
    });
    Scene::new(namespace, chart, "bob", refused)
}

fn relabelled() -> Scene {
    let (namespace, chart) = two_revisions("way-integrity");
    let refused = namespace.kubectl("bob").run(&["label", "secret", V1, "--overwrite", "status=deployed"]);
    Scene::new(namespace, chart, "bob", refused)
}

fn other_manifest() -> Scene {
    let (namespace, chart) = two_revisions("way-tampering");
    let refused = replace(namespace, V2, |record| {
        forging::edit(record, DRIVER, |body| body["manifest"] = "---\nkind: Secret\n".into());
    });
    Scene::new(namespace, chart, "bob", refused)
}

fn finalizer() -> Scene {
    let (namespace, chart) = two_revisions("way-finalizer");
    let patch = r#"{"metadata":{"finalizers":["example.com/kept"]}}"#;
    let refused = namespace.kubectl("bob").run(&["patch", "secret", V2, "--type=merge", "-p", patch]);
    Scene::new(namespace, chart, "bob", refused)
}

fn deletion_of_the_deployed_record() -> Scene {
    let (namespace, chart) = two_revisions("way-deletion");
    let refused = namespace.kubectl("bob").run(&["delete", "secret", V2]);
    Scene::new(namespace, chart, "bob", refused).act("delete one superseded or failed record by name", |scene| {
        scene.namespace.kubectl("bob").run(&["delete", "secret", V1])
    })
}

/// Only while the mutating half is out of service does a stamp that a client sends arrive.
fn forged_holder() -> Scene {
    let (namespace, chart) = two_revisions("way-stamp");
    unstamped(namespace);
    let bob = namespace.kubectl("bob");
    let refused = eventually(WHILE, "the mutating half is not called for this namespace", || {
        let refused = bob.run(&["annotate", "secret", V2, "--overwrite", "interlock.dev/holder=bob"]);
        if refused.success() { Err(refused.to_string()) } else { Ok(refused) }
    });
    Scene::new(namespace, chart, "bob", refused).act("do not set Interlock's stamps", |scene| {
        scene.namespace.kubectl("bob").run(&["annotate", "secret", V2, "--overwrite", "team=blue"])
    })
}

/// Takes a namespace out of the registration of the mutating half.
pub(super) fn unstamped(namespace: &Namespace<'_>) {
    // The entries for records and for Applications.
    let add = [0, 2].map(|entry| {
        let path = format!("/webhooks/{entry}/namespaceSelector/matchExpressions/0/values/-");
        json!({"op": "add", "path": path, "value": namespace.name()})
    });
    let patch = json!(add).to_string();
    let admin = plane().kubectl(&plane().admin());
    admin.ok(&["patch", "mutatingwebhookconfiguration/interlock", "--type=json", "-p", &patch]);
}
