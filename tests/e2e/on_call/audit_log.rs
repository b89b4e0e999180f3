//! The audit log of a real API server, judged afterwards: the acts that Interlock would have refused.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::in_flight::killed;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::run;
use crate::harness::records::V2;

const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn the_log_of_a_cluster_without_the_webhook_names_the_forbidden_acts_and_no_others() {
    let plane = Plane::without_webhook();
    let namespace = Namespace::new(plane, "audit-log");
    let helm = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
    let chart = Chart::new("demo");
    helm.ok(&["install", "demo", chart.path()]);
    helm.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
    let bob = namespace.kubectl("bob");
    bob.ok(&["label", "configmap", "demo", "team=blue"]);
    bob.ok(&["patch", "configmap", "demo", "--type=merge", "-p", r#"{"data":{"note":"bob"}}"#]);
    bob.ok(&["delete", "secret", V2]);

    // All tests share the log, and its last line may be incomplete. Copy the events of this namespace, once all are
    // written.
    let copy = tempfile::NamedTempFile::new().unwrap();
    eventually(DEADLINE, "the deletion is logged", || {
        let log = fs::read_to_string(plane.audit_log()).map_err(|error| error.to_string())?;
        let ours = format!(r#""namespace":"{}""#, namespace.name());
        let whole = log.split_inclusive('\n').filter(|line| line.ends_with('\n') && line.contains(&ours));
        let whole: String = whole.collect();
        let deleted = whole.lines().any(|line| line.contains(r#""verb":"delete""#) && line.contains("demo.v2"));
        fs::write(copy.path(), whole).map_err(|error| error.to_string())?;
        if deleted { Ok(()) } else { Err("no deletion yet".to_owned()) }
    });
    let replay = |flags: &[&str]| {
        let mut interlock = Command::new(env!("CARGO_BIN_EXE_interlock"));
        interlock.args(["replay", "--as-recorded"]).args(flags).arg(copy.path()).env_remove("INTERLOCK_POLICIES");
        run(interlock, DEADLINE)
    };
    let judged = replay(&["-o", "json"]);
    assert_eq!(judged.status.code(), Some(1), "expected findings\n{judged}");
    let denied = judged.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let denied = denied.filter(|line| line["allowed"] == false);
    let denied: Vec<_> = denied
        .map(|line| {
            format!("{} {} {}", line["user"], line["operation"], line["violations"][0]["rule"]).replace('"', "")
        })
        .collect();
    assert_eq!(denied, ["bob UPDATE manual-edit", "bob DELETE record-deletion"], "{judged}");
    let table = replay(&[]).stdout;
    for wanted in ["manual-edit", "record-deletion", "bob", "2 denied"] {
        assert!(table.contains(wanted), "expected {wanted} in\n{table}");
    }
    adopted(plane, copy.path().to_str().unwrap());
}

/// `interlock adopt` finds the same acts in the log, and in the cluster an operation that was killed since.
fn adopted(plane: &'static Plane, log: &str) {
    let pending = killed(plane, "adopting", HelmVersion::V4, Driver::Secret, false);
    let admin = plane.admin();
    let kubeconfig = admin.kubeconfig().to_str().unwrap();
    let report =
        run(plane.interlock(&admin, &["adopt", log, "--kubeconfig", kubeconfig, "-o", "json"]), DEADLINE).json();
    let incidents = report["incidents"].as_array().unwrap().iter();
    let incidents: Vec<_> = incidents.map(|it| format!("{} {}", it["account"], it["rules"]).replace('"', "")).collect();
    assert_eq!(incidents, ["bob [manual-edit]", "bob [record-deletion]"], "{report}");
    let cluster = &report["cluster"];
    let rows = cluster["pending"].as_array().unwrap().iter();
    let found: Vec<_> =
        rows.filter(|row| row["namespace"] == pending.name()).map(|row| row["status"].clone()).collect();
    assert_eq!(found, ["pending-upgrade"], "{cluster}");
    assert!(cluster["gaps"].as_array().unwrap().is_empty() && cluster["platform"].is_null(), "{cluster}");
    // Bob's label, which is allowed, remains in the objects.
    let managers: Vec<_> = cluster["fieldManagers"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert!(managers.iter().any(|name| name.as_str().is_some_and(|name| name.starts_with("kubectl"))), "{managers:?}");
    let text = run(plane.interlock(&admin, &["adopt", log, "--kubeconfig", kubeconfig]), DEADLINE).stdout;
    assert!(text.contains(&format!("{}/demo is pending-upgrade, revision 2", pending.name())), "{text}");
}
