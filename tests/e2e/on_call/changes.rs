//! Who changed what: `interlock changes` of releases that real clients moved, from the cluster, from the webhook's log, from the
//! API server's audit log, and from all three.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::applications::{Application, Sync, define};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::controllers::account;
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};

const DEADLINE: Duration = Duration::from_secs(60);

/// The shipped policy, in which releases of one name, and what one Application deploys, are frozen for everybody but bob.
fn policy() -> String {
    let freeze = "freezes: [{name: sale, reason: the sale, timeZone: UTC, from: 2026-01-01T00:00, to: 2099-01-01T00:00, \
                  releases: [frozen, shop], exempt: {users: [bob]}}]";
    format!("{}{freeze}\n", include_str!("../../../policies/cluster.yaml"))
}

fn interlock(namespace: &Namespace<'_>, args: &[&str]) -> Output {
    let plane = namespace.plane();
    run(plane.interlock(&plane.person("alice"), args), DEADLINE)
}

/// The changes in a namespace, from these sources.
#[track_caller]
fn changes(namespace: &Namespace<'_>, args: &[&str]) -> Vec<Value> {
    let output = interlock(namespace, &[&["changes", "-n", namespace.name(), "-o", "json"], args].concat());
    let all = output.expect_success().json();
    all["changes"].as_array().unwrap().clone()
}

/// The values of some fields, in one text each.
fn message(changes: &[Value], fields: &[&str]) -> Vec<String> {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = |change: &Value| fields.iter().map(|field| shown(&change[*field])).collect::<Vec<_>>().join(" ");
    changes.iter().map(line).collect()
}

/// The releases of one namespace: upgraded, failed and rolled back; uninstalled with its history, and without; frozen.
fn act(namespace: &Namespace<'_>, version: HelmVersion) {
    let [alice, bob, ci] = ["alice", "bob", "ci-bot"].map(|who| namespace.helm(version, Driver::Secret, who));
    let chart = Chart::new("demo");
    alice.ok(&["install", "demo", chart.path()]);
    chart.set_version("1.1.0");
    ci.ok(&["upgrade", "demo", chart.path()]);
    ci.fails(&["upgrade", "demo", chart.path(), "--set=breakApply=true"], &[]);
    alice.ok(&["rollback", "demo", "2"]);
    for (release, flags) in [("kept", &["--keep-history"][..]), ("gone", &[])] {
        alice.ok(&["install", release, chart.path(), "--set=note=two"]);
        ci.ok(&[&["uninstall", release], flags].concat());
    }
    bob.ok(&["install", "frozen", chart.path()]);
    alice.fails(&["upgrade", "frozen", chart.path()], &["[freeze]"]);
    let release = format!("{}/frozen", namespace.name());
    let open = ["override", &release, "--rule", "freeze", "--for", "30m", "--reason", "incident 7"];
    eventually(DEADLINE, "the definition is served", || interlock(namespace, &open).into_result());
    eventually(DEADLINE, "the override is known", || alice.run(&["upgrade", "frozen", chart.path()]).into_result());
}

#[test]
fn every_source_tells_the_same_changes_and_together_they_tell_each_once() {
    let plane = Plane::audited(&policy());
    plane.define("manifests/base/releaseoverrides.yaml");
    for version in [HelmVersion::V3, HelmVersion::V4] {
        let namespace = Namespace::new(&plane, &format!("changes-{version:?}").to_lowercase());
        act(&namespace, version);
        let (log, audit) = (plane.webhook().log_file().to_str().unwrap(), plane.audit_log().to_str().unwrap());
        let of_log = changes(&namespace, &["--log", log]);
        let moved = ["release", "revision", "transition", "from", "to", "user", "outcome", "override"];
        let of_audit = eventually(DEADLINE, "the audit log is written", || {
            let found = changes(&namespace, &["--audit-log", audit]);
            let last = |changes: &[Value]| message(changes, &moved).last().cloned();
            if last(&found) == last(&of_log) { Ok(found) } else { Err(message(&found, &moved).join("\n")) }
        });
        assert_eq!(message(&of_audit, &moved), message(&of_log, &moved), "{version:?}");
        assert!(of_log.iter().chain(&of_audit).all(|change| change["certainty"] == "sure"));

        demo_is_told(&message(&of_log, &["release", "revision", "transition", "user", "chart"]));
        let of_cluster = changes(&namespace, &[]);
        the_cluster_says_the_same(&of_cluster, &of_log);
        let merged = changes(&namespace, &["--audit-log", audit, "--log", log, "--records"]);
        assert_eq!(message(&merged, &moved), message(&of_log, &moved), "{version:?}");
        assert!(merged.iter().all(|change| change["source"] == "log"));
        // Without the log, the records complete the audit log and add nothing.
        let rest = changes(&namespace, &["--audit-log", audit, "--records"]);
        assert_eq!(message(&rest, &moved), message(&of_audit, &moved), "{version:?}");

        the_freeze_is_told(&namespace, &of_log, [log, audit]);
        let table =
            interlock(&namespace, &["changes", "frozen", "-n", namespace.name(), "--log", log]).expect_success();
        println!("{}", table.stdout);
        for cell in ["TIME (UTC)", "frozen", "upgrade", "alice", "bob"] {
            assert!(table.stdout.contains(cell), "{cell}\n{table}");
        }
    }
}

/// The life of the first release, by whom and with which chart.
#[track_caller]
fn demo_is_told(all: &[String]) {
    let mut demo: Vec<_> = all.iter().filter_map(|line| line.strip_prefix("demo ")).collect();
    // Helm supersedes just before or after it promotes.
    demo.sort_unstable();
    let wanted = [
        "1 deployed alice demo-1.0.0",
        "1 install alice demo-1.0.0",
        "1 superseded ci-bot demo-1.0.0",
        "2 deployed ci-bot demo-1.1.0",
        "2 superseded alice demo-1.1.0",
        "2 upgrade ci-bot demo-1.1.0",
        "3 failed ci-bot demo-1.1.0",
        "3 upgrade ci-bot demo-1.1.0",
        "4 deployed alice demo-1.1.0",
        "4 rollback alice demo-1.1.0",
    ];
    assert_eq!(demo, wanted);
    let ends: Vec<_> = all.iter().filter(|line| line.starts_with("gone ")).collect();
    assert_eq!(ends.len(), 4, "{ends:?}");
    assert!(ends[3].starts_with("gone 1 uninstalled ci-bot"), "{ends:?}");
}

/// What is in the cluster is told by it, with who started, and an uninstalled release is not there.
#[track_caller]
fn the_cluster_says_the_same(of_cluster: &[Value], of_log: &[Value]) {
    let kinds = |changes: &[Value]| {
        let kinds = message(changes, &["release", "revision", "transition", "to"]).into_iter();
        kinds.filter(|line| !line.starts_with("gone ")).collect::<BTreeSet<_>>()
    };
    assert_eq!(kinds(of_cluster), kinds(of_log));
    let stamped: Vec<_> = of_cluster.iter().filter(|change| change["certainty"] == "stamped").cloned().collect();
    let who = |changes: &[Value]| -> BTreeSet<_> {
        message(changes, &["release", "revision", "transition", "user"]).into_iter().collect()
    };
    let starts: Vec<_> = stamped.iter().filter(|change| change["user"].is_string()).cloned().collect();
    // Four of demo, the uninstall of kept, and two of frozen. An uninstall replaces the stamps of the install.
    assert_eq!(starts.len(), 7, "{starts:#?}");
    assert!(who(&starts).is_subset(&who(of_log)), "{starts:#?}");
    assert!(stamped.iter().any(|change| change["transition"] == "uninstalled" && change["seconds"].is_u64()));
}

/// An exempt user and an override pass a freeze, and both logs have what was refused.
#[track_caller]
fn the_freeze_is_told(namespace: &Namespace<'_>, of_log: &[Value], [log, audit]: [&str; 2]) {
    let frozen: Vec<_> = of_log.iter().filter(|change| change["freeze"] == "sale").cloned().collect();
    let starts = message(&frozen, &["release", "revision", "transition", "user"]);
    assert_eq!(starts, ["frozen 1 install bob", "frozen 2 upgrade alice"]);
    assert_eq!(frozen[0]["override"], Value::Null);
    let used = frozen[1]["override"].as_str().unwrap_or_default();
    assert!(used.starts_with(&format!("{}/frozen", namespace.name())), "{used}");
    for source in [["--log", log], ["--audit-log", audit]] {
        let all = changes(namespace, &[&source[..], &["--refused"]].concat());
        let refused: Vec<_> = all.into_iter().filter(|change| change["outcome"] == "refused").collect();
        let acts: BTreeSet<_> = message(&refused, &["release", "revision", "transition", "user"]).into_iter().collect();
        assert_eq!(acts.into_iter().collect::<Vec<_>>(), ["frozen 2 upgrade alice"], "{source:?}");
    }
}

const CONTROLLER: &str = "argocd-application-controller";

/// Bob is exempt from the freeze, and alice has an override.
#[test]
fn every_source_tells_who_has_synced_an_application_and_how_that_ended() {
    let plane = Plane::audited(&policy());
    plane.define("manifests/base/releaseoverrides.yaml");
    define(&plane);
    let namespace = Namespace::new(&plane, "changes-syncs");
    let shop = Application::new(&namespace, json!({}), Sync::Client);
    syncs(&shop);
    let (log, audit) = (plane.webhook().log_file().to_str().unwrap(), plane.audit_log().to_str().unwrap());
    let told = ["storage", "release", "revision", "transition", "user", "holder", "certainty"];
    let controller = format!("system:serviceaccount:argocd:{CONTROLLER}");
    let wanted = [
        "sync bob bob",
        &format!("succeeded {controller} bob"),
        "sync alice alice",
        &format!("failed {controller} alice"),
        "sync bob bob",
        "deleted bob bob",
        "sync bob bob",
    ];
    let wanted = wanted.map(|act| format!("Application shop null {act} sure"));
    let of_log = changes(&namespace, &["app/shop", "--log", log]);
    // The webhook does not see what the controller writes at the end.
    let seen: Vec<_> = wanted.iter().filter(|act| !act.contains(CONTROLLER)).collect();
    assert_eq!(message(&of_log, &told).iter().collect::<Vec<_>>(), seen);
    let is_frozen = |change: &Value| change["freeze"] == "sale";
    assert!(of_log.iter().all(|change| is_frozen(change) == (change["transition"] == "sync")), "{of_log:#?}");
    let of_audit = eventually(DEADLINE, "the audit log is written", || {
        let found = changes(&namespace, &["app/shop", "--audit-log", audit]);
        if found.len() == wanted.len() { Ok(found) } else { Err(message(&found, &told).join("\n")) }
    });
    assert_eq!(message(&of_audit, &told), wanted);
    for (found, source) in [(of_log, ["--log", log]), (of_audit, ["--audit-log", audit])] {
        let opened: Vec<_> = found.iter().filter(|change| change["override"].is_string()).collect();
        assert!(matches!(opened[..], [change] if change["user"] == "alice"), "{source:?}: {opened:?}");
        let mut refused = changes(&namespace, &[&["app/shop", "--refused"], &source[..]].concat());
        refused.retain(|change| change["outcome"] == "refused");
        assert_eq!(refused[0]["user"], "alice", "{refused:#?}");
        assert!(refused.iter().all(|change| change["transition"] == "sync"), "{refused:#?}");
    }
    // The cluster has the sync that runs, and the other sources know more about it.
    let of_cluster = changes(&namespace, &["app/shop"]);
    assert_eq!(message(&of_cluster, &told), ["Application shop null sync bob bob stamped"]);
    let merged = changes(&namespace, &["--audit-log", audit, "--log", log, "--records"]);
    assert_eq!(message(&merged, &told), wanted);
    ends(&shop, "Succeeded");
    let ended = ["Application shop null sync bob bob stamped", "Application shop null succeeded null bob inferred"];
    assert_eq!(message(&changes(&namespace, &[]), &told), ended);
    assert_eq!(changes(&namespace, &["shop"]), Vec::<Value>::new(), "no release has this name");
    let table = interlock(&namespace, &["changes", "app/shop", "-n", namespace.name(), "--log", log]).expect_success();
    assert!(["Application", "deleted", "alice"].iter().all(|cell| table.stdout.contains(cell)), "{table}");
}

/// A sync that succeeds, one that is refused and then fails, one that is taken back, and one that runs.
#[track_caller]
fn syncs(shop: &Application<'_>) {
    let namespace = shop.namespace();
    let (alice, bob) = (namespace.kubectl("alice"), namespace.kubectl("bob"));
    let sync = json!({"operation": {"sync": {"revision": "main"}}, "status": {"operationState": null}});
    shop.patch(&bob, &sync).expect_success();
    shop.begins();
    ends(shop, "Succeeded");
    shop.patch(&alice, &sync).expect_failure(&["[freeze]"]);
    let release = format!("{}/shop", namespace.name());
    let open = ["override", &release, "--rule", "freeze", "--for", "30m", "--reason", "incident 7"];
    eventually(DEADLINE, "the definition is served", || interlock(namespace, &open).into_result());
    eventually(DEADLINE, "the override is known", || shop.patch(&alice, &sync).into_result());
    shop.begins();
    ends(shop, "Failed");
    shop.patch(&bob, &sync).expect_success();
    shop.patch(&bob, &json!({"operation": null})).expect_success();
    shop.patch(&bob, &sync).expect_success();
    shop.begins();
}

/// The controller ends the operation.
#[track_caller]
fn ends(shop: &Application<'_>, phase: &str) {
    let namespace = shop.namespace();
    let controller = namespace.kubectl_as(&account(namespace.plane(), "argocd", CONTROLLER));
    let state = json!({"phase": phase, "finishedAt": jiff::Timestamp::now().to_string()});
    shop.patch(&controller, &json!({"operation": null, "status": {"operationState": state}})).expect_success();
}
