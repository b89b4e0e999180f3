//! Requests padded with what costs much to read, under the shipped registration: the API server refuses what it refuses without
//! the padding, while the same attacker keeps four others in flight.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::forging;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::Output;
use crate::harness::records::{V1, V2};

const DRIVER: Driver = Driver::Secret;

/// How many small maps the values are padded with: some 4 MiB, which compress to a few KiB.
const MAPS: usize = 1_400_000;

/// How many requests of the attacker are in flight beside the one that counts.
const IN_FLIGHT: usize = 4;

/// A release with a record v2 that alice has created by hand, to which `change` was done.
fn with_pending_record(test: &str, change: impl FnOnce(&mut Value)) -> Namespace<'static> {
    let namespace = Namespace::new(Plane::shared(), test);
    namespace.helm(HelmVersion::V4, DRIVER, "alice").ok(&["install", "demo", Chart::new("demo").path()]);
    let mut record = namespace.kubectl("alice").get(&["secret", V1]);
    forging::copy(&mut record, DRIVER, 2, "pending-upgrade");
    forging::edit(&mut record, DRIVER, change);
    namespace.kubectl("alice").with_file("create", &record, &[]).expect_success();
    namespace
}

/// Does the forbidden act while the attacker repeats it elsewhere.
fn beside_a_flood(act: impl Fn() -> Output + Sync) -> Output {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..IN_FLIGHT {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    act();
                }
            });
        }
        let output = act();
        over.store(true, Ordering::Relaxed);
        output
    })
}

#[test]
fn a_padded_unlock_of_somebody_elses_operation_is_refused_beside_four_others() {
    let padded = |number: Value| json!({"maps": vec![json!({}); MAPS], "number": number});
    let namespace = with_pending_record("padded-unlock", |body| body["config"] = padded(json!(1)));
    let mut forged = namespace.kubectl("bob").get(&["secret", V2]);
    forging::edit(&mut forged, DRIVER, |body| {
        body["info"]["status"] = "failed".into();
        body["manifest"] = "---\nkind: Secret\n".into();
        // The same number in another spelling: every map must be compared.
        body["config"] = padded(json!(1.0));
    });
    forged["metadata"]["labels"]["status"] = "failed".into();
    let output = beside_a_flood(|| namespace.kubectl("bob").with_file("replace", &forged, &[]));
    output.expect_failure(&["denied the request", "[pending-recovery]", "[record-tampering]"]);
    // The holder ends the operation, in the same spelling or in another.
    let mut ended = namespace.kubectl("alice").get(&["secret", V2]);
    forging::edit(&mut ended, DRIVER, |body| body["info"]["status"] = "failed".into());
    ended["metadata"]["labels"]["status"] = "failed".into();
    namespace.kubectl("alice").with_file("replace", &ended, &[]).expect_success();
}

#[test]
fn an_edit_in_a_release_with_padded_documents_is_refused_beside_four_others() {
    // 80 documents that name a Deployment, and expand to 60,000 nodes each.
    let level = |level: usize| format!("  x{level}: &x{level} [{}]\n", vec![format!("*x{}", level - 1); 9].join(","));
    let levels: String = (1..6).map(level).collect();
    let bomb = format!("---\nkind: &k Deployment\nmetadata: {{name: &n demo-padding}}\ny:\n  x0: &x0 [1]\n{levels}");
    let namespace = with_pending_record("padded-edit", |body| {
        let own = body["manifest"].as_str().unwrap_or_default().to_owned();
        body["manifest"] = format!("{}\n{own}", bomb.repeat(80)).into();
    });
    let set_status = |name: &str, status: &str| {
        let mut record = namespace.kubectl("alice").get(&["secret", name]);
        forging::edit(&mut record, DRIVER, |body| body["info"]["status"] = status.into());
        record["metadata"]["labels"]["status"] = status.into();
        namespace.kubectl("alice").with_file("replace", &record, &[]).expect_success();
    };
    set_status(V1, "superseded");
    set_status(V2, "deployed");
    let image = ["set", "image", "deployment/demo", "app=evil:1"];
    let output = beside_a_flood(|| namespace.kubectl("bob").run(&image));
    output.expect_failure(&["denied the request", "[manual-edit]"]);
    namespace.kubectl("bob").ok(&["label", "deployment/demo", "team=blue"]);
}
