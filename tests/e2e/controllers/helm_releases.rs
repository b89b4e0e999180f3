//! Flux's HelmReleases: which of them may drive a release, and what an edit of one does to the release. Flux does not
//! run here: the tests write the objects and their status.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::acts::{Target, Verdict};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Kubectl};
use crate::harness::decisions::{decisions, expect_findings_only_of};
use crate::harness::eventually::eventually;
use crate::harness::helm_releases::{SERVED, attempted, define, helm_release, installed, refused, shared};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

const DEFINITION: &str = "customresourcedefinition/helmreleases.helm.toolkit.fluxcd.io";

#[test]
fn a_second_helm_release_on_a_release_is_refused_with_the_name_of_the_first() {
    let namespace = Namespace::new(shared(), "duplicate");
    let here = namespace.name();
    let alice = namespace.kubectl("alice");
    let create = |name: &str, spec: Value| alice.with_file("create", &helm_release(here, name, spec), &[]);
    create("one", json!({"releaseName": "web"})).expect_success();
    let second = helm_release(here, "two", json!({"releaseName": "web"}));
    let first = format!("HelmRelease {here}/one");
    refused(&alice, &second, &["[duplicate-release]", &first, &format!("release {here}/web"), "suspend"]);
    // Flux shortens long names. These two differ only in the cut-off part, and so in their digests.
    let long = |end: &str| format!("{}{end}", "long-".repeat(11));
    create(&long("a"), json!({})).expect_success();
    create(&long("b"), json!({})).expect_success();
    // By default a release is named after its target namespace and its HelmRelease.
    let same = helm_release(here, long("a").strip_prefix("long-").unwrap(), json!({"targetNamespace": "long"}));
    refused(&alice, &same, &["[duplicate-release]", &format!("HelmRelease {here}/{}", long("a"))]);

    // The allowed neighbours: records in another namespace, another cluster, and a suspended HelmRelease.
    let elsewhere = format!("{here}-records");
    create("records", json!({"releaseName": "web", "storageNamespace": elsewhere})).expect_success();
    create("remote", json!({"releaseName": "web", "kubeConfig": {"secretRef": {"name": "prod"}}})).expect_success();
    create("idle", json!({"releaseName": "web", "suspend": true})).expect_success();
    let resume = ["patch", "helmrelease/idle", "--type=merge", "-p", r#"{"spec":{"suspend":false}}"#];
    alice.fails(&resume, &["[duplicate-release]", &first]);
    // The official way to move a release: suspend the old one, resume the new one.
    alice.ok(&["patch", "helmrelease/one", "--type=merge", "-p", r#"{"spec":{"suspend":true}}"#]);
    eventually(SERVED, "the first is suspended, so the second may go on", || alice.run(&resume).into_result());
    alice.ok(&["delete", "helmrelease/idle"]);
    create("two", json!({"releaseName": "web"})).expect_success();
    // Labels do not matter.
    alice.ok(&["label", "helmrelease/two", "team=blue"]);
    let asked = decisions(&namespace).into_iter().filter(|decision| decision.name == "two" && !decision.dry_run);
    assert_eq!(asked.map(|decision| decision.operation).collect::<Vec<_>>(), ["CREATE", "CREATE"]);
}

#[test]
fn a_second_helm_release_is_refused_a_moment_after_the_first() {
    let namespace = Namespace::new(shared(), "moment");
    let alice = namespace.kubectl("alice");
    let create = |name: String, release: &str| {
        alice.with_file("create", &helm_release(namespace.name(), &name, json!({"releaseName": release})), &[])
    };
    for release in ["a", "b", "c", "d", "e"] {
        create(format!("{release}-one"), release).expect_success();
        create(format!("{release}-two"), release).expect_failure(&["[duplicate-release]", &format!("/{release}-one")]);
    }
    // Two spellings of one cluster.
    let remote = |name: &str, secret: Value| {
        let spec = json!({"releaseName": "far", "kubeConfig": {"secretRef": secret}});
        alice.with_file("create", &helm_release(namespace.name(), name, spec), &[])
    };
    remote("far-one", json!({"name": "prod"})).expect_success();
    remote("far-two", json!({"name": "prod", "key": "value"})).expect_failure(&["[duplicate-release]", "/far-one"]);
    remote("far-three", json!({"name": "prod", "key": "other"})).expect_success();
}

#[test]
fn deleting_one_of_two_is_warned_of_until_it_is_suspended() {
    let namespace = Namespace::new(shared(), "one-of-two");
    let alice = namespace.kubectl("alice");
    let create = |name: &str, spec: Value| {
        alice.with_file("create", &helm_release(namespace.name(), name, spec), &[]).expect_success();
    };
    create("old", json!({"releaseName": "web"}));
    create("new", json!({"releaseName": "web", "suspend": true}));
    let delete = ["delete", "helmrelease/old", "--dry-run=server"];
    let warned = eventually(SERVED, "the webhook knows both", || {
        let deleted = alice.ok(&delete);
        if deleted.stderr.contains("[duplicate-release]") { Ok(deleted) } else { Err(deleted.to_string()) }
    });
    assert!(warned.stderr.contains("Flux uninstalls the release of both"), "{warned}");
    alice.ok(&["patch", "helmrelease/old", "--type=merge", "-p", r#"{"spec":{"suspend":true}}"#]);
    let moved = alice.ok(&["delete", "helmrelease/old"]);
    assert!(!moved.stderr.contains("[duplicate-release]"), "{moved}");
}

#[test]
fn an_edit_that_makes_flux_uninstall_a_release_is_acknowledged_or_refused() {
    let namespace = Namespace::new(shared(), "retarget");
    let here = namespace.name();
    let alice = namespace.kubectl("alice");
    let edit = |name: &str, patch: &Value| {
        alice.run(&["patch", &format!("helmrelease/{name}"), "--type=merge", "-p", &patch.to_string()])
    };
    alice.with_file("create", &helm_release(here, "web", json!({})), &[]).expect_success();
    installed(&namespace, "web", &namespace);
    let renamed = json!({"spec": {"releaseName": "shop"}});
    let acknowledgement = format!("interlock.dev/allow-retarget: {here}/shop");
    edit("web", &renamed).expect_failure(&["[retarget]", &format!("release {here}/web"), &acknowledgement]);
    edit("web", &json!({"spec": {"targetNamespace": "elsewhere"}})).expect_failure(&["[retarget]"]);
    edit("web", &json!({"spec": {"storageNamespace": "elsewhere"}})).expect_failure(&["[retarget]"]);
    edit("web", &json!({"spec": {"values": {"image": "nginx:2"}}})).expect_success();

    let wrong = json!({"metadata": {"annotations": {"interlock.dev/allow-retarget": format!("{here}/other")}}});
    edit("web", &wrong).expect_success();
    edit("web", &renamed).expect_failure(&["[retarget]"]);
    let annotations = json!({"interlock.dev/allow-retarget": format!("{here}/shop")});
    let acknowledged = json!({"metadata": {"annotations": annotations}, "spec": {"releaseName": "shop"}});
    edit("web", &acknowledged).expect_success();

    // A HelmRelease that is not installed yet may be changed freely.
    alice.with_file("create", &helm_release(here, "new", json!({})), &[]).expect_success();
    edit("new", &json!({"spec": {"releaseName": "other"}})).expect_success();
}

#[test]
fn a_retarget_is_judged_by_what_was_deployed_and_by_what_can_be_told() {
    let namespace = Namespace::new(shared(), "deployed");
    let here = namespace.name();
    let alice = namespace.kubectl("alice");
    let edit = |name: &str, patch: &Value| {
        alice.run(&["patch", &format!("helmrelease/{name}"), "--type=merge", "-p", &patch.to_string()])
    };
    alice.with_file("create", &helm_release(here, "api", json!({})), &[]).expect_success();
    // A failed attempt over a deployed revision changes nothing of that, and is not what the refusal names.
    attempted(&namespace, "api", &namespace, &["failed", "deployed"]);
    edit("api", &json!({"spec": {"releaseName": "later"}})).expect_failure(&["[retarget]", "(deployed)"]);
    // Only Flux sees the name of the chart behind a reference.
    let referenced = |chart: &str| json!({"spec": {"chartRef": {"kind": "OCIRepository", "name": chart}}});
    let warned = edit("api", &referenced("other")).expect_success();
    assert!(
        warned.stderr.contains("only Flux sees the name of it") && warned.stderr.contains("[retarget]"),
        "{warned}"
    );
    let in_place = json!({"spec": {"upgrade": {"chartNameChangeStrategy": "InPlaceUpdate"}}});
    edit("api", &in_place).expect_success();
    let harmless = edit("api", &referenced("third")).expect_success();
    assert!(!harmless.stderr.contains("[retarget]"), "{harmless}");

    // A failed first install may be corrected.
    alice.with_file("create", &helm_release(here, "first", json!({})), &[]).expect_success();
    attempted(&namespace, "first", &namespace, &["failed"]);
    edit("first", &json!({"spec": {"releaseName": "corrected"}})).expect_success();
}

#[test]
fn risky_strategies_cause_warnings() {
    let namespace = Namespace::new(shared(), "strategy");
    let alice = namespace.kubectl("alice");
    let spec = json!({"install": {"strategy": {"name": "RetryOnFailure"}}, "upgrade": {"force": true}});
    let made = alice.with_file("create", &helm_release(namespace.name(), "web", spec), &[]).expect_success();
    assert_eq!(made.stderr.matches("[retry-strategy]").count(), 2, "{made}");
    let edited = alice.ok(&["patch", "helmrelease/web", "--type=merge", "-p", r#"{"spec":{"interval":"5m"}}"#]);
    assert!(!edited.stderr.contains("interlock"), "a strategy that was already there caused a warning\n{edited}");
    alice.ok(&["patch", "helmrelease/web", "--type=merge", "-p", r#"{"spec":{"suspend":true}}"#]);
    let deleted = alice.ok(&["delete", "helmrelease/web"]);
    assert!(deleted.stderr.contains("suspended") && deleted.stderr.contains("[retry-strategy]"), "{deleted}");
}

#[test]
fn the_account_that_a_helm_release_names_is_a_manager_of_its_release_alone() {
    let namespace = Namespace::new(shared(), "tenant");
    let (tenant, other) = (namespace.service_account("deployer"), namespace.service_account("other"));
    let alice = namespace.kubectl("alice");
    let create = |name: &str, account: &str| {
        let object = helm_release(namespace.name(), name, json!({"serviceAccountName": account}));
        alice.with_file("create", &object, &[]).expect_success();
    };
    create("demo", "deployer");
    create("elsewhere", "other");
    for taken in ["demo", "elsewhere"] {
        let second = helm_release(namespace.name(), "second", json!({"releaseName": taken}));
        refused(&alice, &second, &["[duplicate-release]", taken]);
    }
    namespace.helm_as(HelmVersion::V4, Driver::Secret, &tenant).ok(&["install", "demo", Chart::new("demo").path()]);
    // Drift and its correction while no operation is in flight.
    let set =
        |image: &str| ["set".to_owned(), "image".to_owned(), "deployment/demo".to_owned(), format!("app={image}")];
    let edit = |kubectl: &Kubectl, image: &str| kubectl.run(&set(image).each_ref().map(String::as_str));
    edit(&namespace.kubectl_as(&other), "other:1").expect_success();
    edit(&namespace.kubectl_as(&tenant), "tenant:1").expect_success();
    namespace.kubectl_as(&tenant).ok(&["delete", "service/demo"]);
    let image = "spec.template.spec.containers[app].image";
    Target::deployed(&namespace, "demo", 1).expect(&edit(&alice, "alice:1"), Verdict::Edits(image));
    expect_findings_only_of(&namespace, &["alice", other.user()]);
    let audited =
        decisions(&namespace).into_iter().any(|it| it.user == other.user() && it.rules.contains("manual-edit"));
    assert!(audited, "the account of another HelmRelease is one like any other");
}

#[test]
fn the_shipped_role_reads_helm_releases_and_their_definition_alone() {
    let admin = shared().kubectl(&shared().admin());
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/base");
    for file in ["namespace.yaml", "rbac.yaml"] {
        admin.ok(&["apply", "-f", base.join(file).to_str().expect("the checkout has a plain name")]);
    }
    let webhook = "--as=system:serviceaccount:interlock-system:interlock";
    // The watch's first request: a field selector, which a permission for one name covers.
    let only = "--field-selector=metadata.name=helmreleases.helm.toolkit.fluxcd.io";
    eventually(SERVED, "the role is in force", || {
        admin.run(&["get", "customresourcedefinitions", only, webhook]).into_result()
    });
    admin.ok(&["get", "helmreleases", "-A", webhook]);
    admin.fails(&["get", "customresourcedefinitions", webhook], &["Forbidden"]);
    let may = admin.run(&["auth", "can-i", "delete", "helmreleases", "-A", webhook]);
    assert!(!may.success() && may.stdout.trim() == "no", "{may}");
}

#[test]
fn definitions_come_and_go_without_a_restart_or_a_loop_of_errors() {
    let plane = Plane::start(include_str!("../../../policies/cluster.yaml"));
    assert_eq!(plane.webhook().admin("/readyz").0, 200, "without Flux nothing is waited for");
    let admin = plane.kubectl(&plane.admin());
    for life in ["first", "second"] {
        define(&plane);
        let namespace = Namespace::new(&plane, life);
        let object = |name: &str| helm_release(namespace.name(), name, json!({"releaseName": "web"}));
        namespace.kubectl("alice").with_file("create", &object("one"), &[]).expect_success();
        refused(&namespace.kubectl("alice"), &object("two"), &["[duplicate-release]", "/one"]);
        admin.ok(&["delete", DEFINITION, "--timeout=60s"]);
    }
    // Retries start within a second and pause for at most half a minute, so a loop of errors would show in this time.
    let namespace = Namespace::new(&plane, "after");
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", Chart::new("demo").path()]);
    let log = plane.webhook().log();
    let failures: Vec<_> = log.lines().filter(|line| line.contains("\"WARN\"") || line.contains("\"ERROR\"")).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
