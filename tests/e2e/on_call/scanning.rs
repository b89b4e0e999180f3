//! `interlock scan` over broken releases, on a plane without the webhook, which would have refused to break them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion, Identity};
use crate::harness::eventually::eventually;
use crate::harness::in_flight::policy;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};
use crate::harness::records;

const DEADLINE: Duration = Duration::from_secs(60);

/// Runs `interlock scan ARGS` under an identity.
#[track_caller]
fn scan(plane: &Plane, who: &Identity, args: &[&str]) -> Output {
    run(plane.interlock(who, &[&["scan"], args].concat()), DEADLINE)
}

/// Check, release and object of every finding in a namespace.
#[track_caller]
fn found(namespace: &Namespace<'_>, args: &[&str]) -> Vec<(String, String, String)> {
    let plane = namespace.plane();
    let all = [&["-o", "json", "--fail-on", "high", "-n", namespace.name()], args].concat();
    let report = report(&scan(plane, &plane.admin(), &all));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(report["notLookedAt"], json!([]), "{report:#}");
    findings.iter().map(|it| (text(&it["check"]), text(&it["release"]), text(&it["object"]["name"]))).collect()
}

/// The report of a scan. Its exit code must be 1 if the report has a high finding.
#[track_caller]
fn report(output: &Output) -> Value {
    let report = output.json();
    let bad = report["counts"]["high"].as_u64().unwrap_or_default() > 0;
    assert_eq!(output.status.code(), Some(i32::from(bad)), "{output}");
    report
}

fn wanted(findings: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    let owned = |(check, release, object): &(&str, &str, &str)| ((*check).into(), (*release).into(), (*object).into());
    findings.iter().map(owned).collect()
}

fn v(release: &str, revision: u32) -> String {
    format!("sh.helm.release.v1.{release}.v{revision}")
}

/// Changes the body of a record, and its label `status` if that is to agree.
#[track_caller]
fn rewrite(namespace: &Namespace<'_>, release: &str, revision: u32, status: &str, label: bool) {
    let kubectl = namespace.kubectl("admin");
    let mut secret = kubectl.get(&["secret", &v(release, revision)]);
    let mut body = records::decode(&secret, Driver::Secret);
    body["info"]["status"] = status.into();
    secret["data"]["release"] = records::encode(&body, Driver::Secret).into();
    if label {
        secret["metadata"]["labels"]["status"] = status.into();
    }
    kubectl.with_file("replace", &secret, &[]).expect_success();
}

#[test]
fn every_fault_is_found_and_nothing_else() {
    let plane = Plane::without_webhook();
    let namespace = Namespace::new(plane, "scan");
    let (helm, kubectl) = (namespace.helm(HelmVersion::V4, Driver::Secret, "alice"), namespace.kubectl("admin"));
    let chart = Chart::new("demo");
    let install = |helm: &Helm, release: &str| _ = helm.ok(&["install", release, chart.path()]);
    let upgrade = |release: &str| _ = helm.ok(&["upgrade", release, chart.path(), "--set=note=two"]);
    for release in ["clean", "doubled", "garbled", "labelled", "lying", "buried", "failed", "stuck", "interrupted"] {
        install(&helm, release);
    }
    install(&namespace.helm(HelmVersion::V3, Driver::ConfigMap, "alice"), "mapped");
    assert_eq!(found(&namespace, &["--drift", "--bodies", "all"]), wanted(&[]), "nothing is broken yet");

    for release in ["clean", "doubled", "buried", "stuck"] {
        upgrade(release);
    }
    rewrite(&namespace, "doubled", 1, "deployed", true);
    rewrite(&namespace, "lying", 1, "superseded", false);
    rewrite(&namespace, "buried", 1, "pending-upgrade", true);
    rewrite(&namespace, "stuck", 2, "pending-upgrade", true);
    let garbled = r#"{"data":{"release":"bm90IGEgcmVjb3Jk"}}"#;
    kubectl.ok(&["patch", "secret", &v("garbled", 1), "--type=merge", "-p", garbled]);
    kubectl.ok(&["label", "secret", &v("labelled", 1), "owner-"]);
    kubectl.ok(&["annotate", "secret", &v("interrupted", 1), "interlock.dev/interrupted=demo-2.0.0@2"]);
    helm.fails(&["upgrade", "failed", chart.path(), "--set=breakApply=true"], &["selector"]);

    let impatient = policies(plane);
    let args = ["--policies", impatient.to_str().unwrap()];
    let [doubled, stuck, garbled, labelled, lying] =
        [v("doubled", 2), v("stuck", 2), v("garbled", 1), v("labelled", 1), v("lying", 1)];
    let [interrupted, failed, buried] = [v("interrupted", 1), v("failed", 2), v("buried", 1)];
    // The age is counted from the record's creation.
    eventually(Duration::from_secs(30), "the operation is stuck", || {
        let found = found(&namespace, &args);
        if found.iter().any(|(check, ..)| check == "stuck-operation") { Ok(()) } else { Err(format!("{found:#?}")) }
    });
    let faults = wanted(&[
        ("several-deployed", "doubled", &doubled),
        ("stuck-operation", "stuck", &stuck),
        ("unreadable-record", "garbled", &garbled),
        ("inconsistent-record", "labelled", &labelled),
        ("inconsistent-record", "lying", &lying),
        ("interrupted-operation", "interrupted", &interrupted),
        ("failed-release", "failed", &failed),
        ("buried-operation", "buried", &buried),
    ]);
    assert_eq!(found(&namespace, &args), faults);
    // By the shipped policy the operation may still run, and bodies that the metadata do not question are not read.
    let fewer = found(&namespace, &["--bodies", "questioned"]);
    let hidden = ["stuck-operation", "unreadable-record"];
    let left = faults.into_iter().filter(|(check, release, _)| !hidden.contains(&check.as_str()) && release != "lying");
    assert_eq!(fewer, left.collect::<Vec<_>>());
}

/// A directory with the shipped policy, changed so that an operation is stuck after a second.
fn policies(plane: &Plane) -> std::path::PathBuf {
    let dir = plane.dir().join("impatient");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("cluster.yaml"), policy("staleAfter: 1s")).unwrap();
    dir
}

#[test]
fn declared_fields_drift_and_others_do_not() {
    let plane = Plane::without_webhook();
    let namespace = Namespace::new(plane, "scan-drift");
    let kubectl = namespace.kubectl("admin");
    let scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: scaled}\nspec:\n  \
                  minReplicas: 3\n  maxReplicas: 3\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}\n";
    for (version, release) in HelmVersion::ALL.into_iter().zip(["three", "four"]) {
        let helm = namespace.helm(version, Driver::Secret, "alice");
        helm.ok(&["install", release, Chart::new("demo").path()]);
    }
    let scaling = Chart::new("demo").template("scaler", scaler);
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "scaled", scaling.path()]);
    eventually(DEADLINE, "the autoscaler has scaled", || {
        let replicas = kubectl.get(&["deployment", "scaled"])["spec"]["replicas"].clone();
        if replicas == 3 { Ok(()) } else { Err(replicas.to_string()) }
    });
    kubectl.ok(&["label", "deployment/three", "team=blue"]);
    kubectl.ok(&["rollout", "restart", "deployment/four"]);
    assert_eq!(found(&namespace, &["--drift"]), wanted(&[]), "defaults, free fields and autoscalers are no drift");

    kubectl.ok(&["set", "image", "deployment/three", "app=bob:1"]);
    kubectl.ok(&["patch", "configmap/four", "--type=merge", "-p", r#"{"data":{"note":"bob"}}"#]);
    kubectl.ok(&["delete", "service/four"]);
    let drifted = wanted(&[("missing-object", "four", "four"), ("drift", "four", "four"), ("drift", "three", "three")]);
    assert_eq!(found(&namespace, &["--drift"]), drifted);
    assert_eq!(found(&namespace, &[]), wanted(&[]), "objects are looked at on request alone");
    let args = ["--drift", "--fail-on", "low", "-n", namespace.name()];
    let table = scan(plane, &plane.admin(), &args);
    assert_eq!(table.status.code(), Some(1), "{table}");
    assert!(table.stdout.contains("containers[app].image") && !table.stdout.contains("bob:1"), "{table}");
}

#[test]
fn declarations_that_collide_or_dangle_are_found_where_their_kinds_are_installed() {
    let plane = Plane::without_webhook();
    for file in ["helmreleases", "sveltos"] {
        plane.define(&format!("tests/e2e/harness/crds/{file}.yaml"));
    }
    let namespace = Namespace::new(plane, "scan-declared");
    let kubectl = namespace.kubectl("admin");
    let create = |api: &str, kind: &str, name: &str, spec: Value| {
        let object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec});
        eventually(DEADLINE, &format!("a {kind} is served"), || kubectl.with_file("apply", &object, &[]).into_result());
    };
    let flux = "helm.toolkit.fluxcd.io/v2";
    let web = |suspend: bool| {
        let chart = json!({"kind": "OCIRepository", "name": "shop"});
        json!({"interval": "10m", "chartRef": chart, "releaseName": "web", "suspend": suspend})
    };
    let lib = "lib.projectsveltos.io/v1beta1";
    let item = |name: &str| json!({"contentRef": {"kind": "ConfigurationBundle", "name": name}});
    create(flux, "HelmRelease", "one", web(false));
    create(flux, "HelmRelease", "two", web(true));
    create(lib, "ConfigurationBundle", "there", json!({}));
    create(lib, "ConfigurationGroup", "whole", json!({"configurationItem": [item("there")]}));
    let removing = json!({"action": "Remove", "configurationItem": [item("gone")]});
    create(lib, "ConfigurationGroup", "removing", removing);
    assert_eq!(found(&namespace, &[]), wanted(&[]));
    create(flux, "HelmRelease", "three", web(false));
    create(lib, "ConfigurationGroup", "broken", json!({"configurationItem": [item("there"), item("gone")]}));
    let faults = wanted(&[("duplicate-release", "web", "three"), ("dangling-bundle", "", "broken")]);
    assert_eq!(found(&namespace, &[]), faults);
}

#[test]
fn an_object_of_two_kustomizations_is_found() {
    let plane = Plane::without_webhook();
    plane.define("tests/e2e/harness/crds/kustomizations.yaml");
    let namespace = Namespace::new(plane, "scan-shared");
    let kubectl = namespace.kubectl("admin");
    let source = |name: &str, entries: &[&str]| {
        let object = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": name},
            "spec": {"interval": "10m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "shop"}},
        });
        let created = || kubectl.with_file("apply", &object, &[]).into_result();
        eventually(DEADLINE, "a Kustomization is served", created);
        let id = |name: &&str| json!({"id": format!("{}_{name}__ConfigMap", namespace.name()), "v": "v1"});
        let status =
            json!({"status": {"inventory": {"entries": entries.iter().map(id).collect::<Vec<_>>()}}}).to_string();
        kubectl.ok(&["patch", "kustomization", name, "--subresource=status", "--type=merge", "-p", &status]);
    };
    source("one", &["web", "free"]);
    source("two", &["own"]);
    assert_eq!(found(&namespace, &[]), wanted(&[]));
    source("two", &["own", "web"]);
    assert_eq!(found(&namespace, &[]), wanted(&[("shared-object", "one", "web")]));
}

#[test]
fn unreadable_resources_are_named_and_nothing_is_written() {
    let plane = Plane::without_webhook();
    let namespace = Namespace::new(plane, "scan-rights");
    let who = plane.account(namespace.name(), "auditor").unwrap();
    let refused = scan(plane, &who, &["-n", namespace.name()]);
    assert_eq!(refused.status.code(), Some(2), "{refused}");
    assert!(refused.stderr.contains("cannot list resource \"secrets\""), "{refused}");
    let admin = namespace.kubectl("admin");
    admin.ok(&["create", "role", "auditor", "--verb=get,list", "--resource=secrets"]);
    let account = format!("--serviceaccount={}:auditor", namespace.name());
    admin.ok(&["create", "rolebinding", "auditor", "--role=auditor", &account]);
    let report = eventually(DEADLINE, "the role is in force", || {
        let output = scan(plane, &who, &["-o", "json", "-n", namespace.name()]);
        if output.success() { Ok(output.json()) } else { Err(output.to_string()) }
    });
    let gaps = report["notLookedAt"].as_array().unwrap();
    let config_maps = gaps.iter().find(|gap| gap["what"] == "records in ConfigMaps");
    assert!(config_maps.is_some_and(|gap| gap["why"].to_string().contains("cannot list resource")), "{report:#}");
}

#[test]
fn the_leader_scans_with_the_rights_of_the_manifests() {
    let plane = Plane::shared();
    eventually(DEADLINE, "the leader has scanned", || {
        let (_, metrics) = plane.webhook().admin("/metrics");
        let counted = metrics.contains("interlock_scan_findings{check=\"stuck-operation\"}");
        if counted { Ok(()) } else { Err(plane.webhook().log()) }
    });
    let log = plane.webhook().log();
    assert!(log.contains("\"message\":\"scanned\""), "{log}");
    let refused = |line: &&str| line.contains("the scan could not look at this") && line.contains("403");
    assert_eq!(log.lines().find(refused), None);
}
