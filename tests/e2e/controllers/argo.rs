//! Objects that an Application of Argo CD applies: what its source declares changes there, and everybody else goes on.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::application_sets::ApplicationSet;
use crate::harness::applications::{Application, Sync, shared};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::controllers::account;
use crate::harness::eventually::eventually;
use crate::harness::in_flight::policy;
use crate::harness::kustomizations::deployment;
use crate::harness::namespace::Namespace;
use crate::harness::process::run;
use crate::harness::shell::shell;

const DEADLINE: Duration = Duration::from_secs(60);

const LISTED: [(&str, &str, &str); 3] =
    [("apps", "Deployment", "demo"), ("", "ConfigMap", "web"), ("", "Secret", "key")];

fn config(mode: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"mode": mode}})
}

/// As people write it, where the controller keeps what it has applied. The API server stores `data`, and shows who wrote that.
fn secret(token: &str, sync: Sync) -> Value {
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}});
    match sync {
        Sync::Client => secret["stringData"] = json!({"token": token}),
        Sync::Server => secret["data"] = json!({"token": STANDARD.encode(token)}),
    }
    secret
}

fn merge<'p>(object: &'p str, patch: &'p str) -> [&'p str; 5] {
    ["patch", object, "--type=merge", "-p", patch]
}

/// Whoever creates an Application could list the objects of others in its status: it has no status subresource.
#[test]
fn nobody_creates_an_application_with_what_it_lists() {
    let namespace = Namespace::new(shared(), "listed-at-birth");
    let bob = namespace.kubectl("bob");
    let mut object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"},
        "spec": {"project": "default", "destination": {"namespace": namespace.name()}},
        "status": {"resources": [{"group": "apps", "kind": "Deployment", "namespace": namespace.name(), "name": "web"}]},
    });
    bob.with_file("create", &object, &[]).expect_failure(&["[forged-status]", "Leave `status` out"]);
    object["status"] = json!({"health": {"status": "Healthy"}});
    bob.with_file("create", &object, &[]).expect_success();
}

#[test]
fn fields_of_an_application_change_only_in_its_source() {
    for sync in [Sync::Client, Sync::Server] {
        let namespace = Namespace::new(shared(), &format!("synced-{sync:?}").to_lowercase());
        let shop = Application::new(&namespace, json!({}), sync);
        let bob = namespace.kubectl("bob");
        for object in [deployment("one", 2), config("declared"), secret("first", sync)] {
            shop.apply(&object).expect_success();
        }
        // The mark alone proves nothing.
        bob.ok(&merge("configmap/web", r#"{"data":{"mode":"bob"}}"#));
        shop.apply(&config("declared")).expect_success();
        shop.list(&LISTED);

        let owner = format!("is managed by Argo CD's Application {}/shop", namespace.name());
        let declared = [owner.as_str(), "declared by its source", "Change it through the source of", "[manual-edit]"];
        bob.fails(&merge("configmap/web", r#"{"data":{"mode":"bob"}}"#), &declared);
        bob.fails(&merge("secret/key", r#"{"stringData":{"token":"bob"}}"#), &declared);
        bob.fails(&["set", "image", "deployment/demo", "app=evil"], &declared);
        bob.fails(&["scale", "deployment/demo", "--replicas=5"], &[&owner, "spec.replicas", "[manual-scale]"]);
        for object in ["deployment/demo", "configmap/web"] {
            bob.fails(&["delete", object], &[&owner, "[manual-delete]"]);
            bob.fails(&["annotate", object, "argocd.argoproj.io/tracking-id-"], &["[manual-edit]"]);
            bob.fails(&["annotate", object, "argocd.argoproj.io/sync-options=Prune=false"], &["[manual-edit]"]);
        }
        bob.ok(&merge("configmap/web", r#"{"data":{"free":"bob"}}"#));
        bob.ok(&["label", "configmap/web", "team=blue"]);
        bob.ok(&["rollout", "restart", "deployment/demo"]);
        // A click in the page of Argo CD is warned about.
        let server = account(namespace.plane(), "argocd", "argocd-server");
        let clicked = namespace.kubectl_as(&server).run(&merge("configmap/web", r#"{"data":{"mode":"clicked"}}"#));
        let clicked = clicked.expect_success();
        assert!(clicked.stderr.contains("[manual-edit]"), "{clicked}");
        for object in [config("next"), deployment("two", 3), secret("second", sync)] {
            shop.apply(&object).expect_success();
        }
    }
}

/// Writes of the library are those of the recording: what Interlock takes for declared, and how objects are deleted.
#[test]
fn a_sync_writes_as_argo_cd_does() {
    let namespace = Namespace::new(shared(), "synced-writes");
    let shop = Application::new(&namespace, json!({}), Sync::Client);
    let bob = namespace.kubectl("bob");
    let written = |object: &str| {
        let metadata = bob.get(&[object, "--show-managed-fields"])["metadata"].clone();
        let fields = metadata["managedFields"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let writers: Vec<_> = fields.map(|entry| text(&entry["manager"]) + "/" + &text(&entry["operation"])).collect();
        let last_applied = metadata["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].clone();
        (writers.join(", "), last_applied.is_string())
    };
    for mode in ["one", "two"] {
        shop.apply(&config(mode)).expect_success();
        assert_eq!(written("configmap/web"), ("argocd-controller/Update".to_owned(), true));
    }
    let shop = shop.server_side();
    shop.apply(&config("three")).expect_success();
    shop.apply(&secret("first", Sync::Server)).expect_success();
    for object in ["configmap/web", "secret/key"] {
        assert_eq!(written(object), ("argocd-controller/Apply".to_owned(), false), "{object}");
    }

    // A deletion in the foreground waits for what belongs to the object.
    let uid = bob.get(&["configmap/web"])["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "uid": uid, "blockOwnerDeletion": true});
    let metadata = json!({"name": "part", "finalizers": ["interlock.dev/test"], "ownerReferences": [owner]});
    let part = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let mut copy = shop.tracked(config("copy"));
    copy["metadata"]["name"] = "copy".into();
    for object in [part, copy] {
        bob.with_file("create", &object, &[]).expect_success();
    }
    shop.prune(&[secret("second", Sync::Server)]).expect_success();
    let pruned = bob.get(&["configmap/web"])["metadata"].clone();
    assert_eq!(pruned["finalizers"], json!(["foregroundDeletion"]), "{pruned}");
    bob.ok(&merge("configmap/part", r#"{"metadata":{"finalizers":null}}"#));
    eventually(DEADLINE, "the pruned object is gone", || match bob.find(&["configmap/web"]) {
        None => Ok(()),
        Some(object) => Err(object.to_string()),
    });
    bob.ok(&["get", "configmap/copy", "secret/key"]);
}

#[test]
fn differences_that_an_application_ignores_are_left_to_people() {
    let namespace = Namespace::new(shared(), "synced-ignoring");
    let ignored =
        json!({"ignoreDifferences": [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}]});
    let shop = Application::new(&namespace, ignored, Sync::Client);
    shop.apply(&deployment("one", 2)).expect_success();
    shop.list(&LISTED);
    let bob = namespace.kubectl("bob");
    bob.ok(&["scale", "deployment/demo", "--replicas=5"]);
    bob.fails(&["set", "image", "deployment/demo", "app=evil"], &["[manual-edit]"]);
    // A copy of the mark names another object.
    let mut copy = shop.tracked(config("free"));
    copy["metadata"]["name"] = "copy".into();
    bob.with_file("create", &copy, &[]).expect_success();
    bob.ok(&merge("configmap/copy", r#"{"data":{"mode":"bob"}}"#));
    bob.ok(&["delete", "configmap/copy"]);
}

#[test]
fn a_sync_that_runs_is_neither_removed_nor_replaced() {
    let namespace = Namespace::new(shared(), "synced-operation");
    let shop = Application::new(&namespace, json!({}), Sync::Client);
    let bob = namespace.kubectl("bob");
    let sync = |revision: &str| json!({"operation": {"sync": {"revision": revision}}});
    // What has not started yet may be taken back.
    shop.patch(&bob, &sync("old")).expect_success();
    shop.patch(&bob, &json!({"operation": null})).expect_success();
    shop.patch(&bob, &sync("main")).expect_success();
    shop.begins();
    let rule = "[concurrent-operation]";
    shop.patch(&bob, &json!({"operation": null})).expect_failure(&[rule, "its sync is running", "Terminating"]);
    shop.patch(&bob, &sync("other")).expect_failure(&[rule, "the new operation would be lost"]);
    shop.patch(&bob, &json!({"spec": {"project": "shop"}})).expect_success();
    shop.patch(&bob, &json!({"status": {"operationState": {"phase": "Terminating"}}})).expect_success();
    shop.ends().expect_success();
    // kubectl leaves the state of the last sync.
    let over = shop.patch(&bob, &sync("next")).expect_success();
    assert!(over.stderr.contains("[concurrent-operation]"), "{over}");
    shop.begins();
    shop.ends().expect_success();
    shop.autosyncs().expect_success();
}

/// From both states in which an operation does not end by itself.
#[test]
fn a_stuck_operation_ends_and_the_application_is_synced() {
    let namespace = Namespace::new(shared(), "synced-stuck");
    let shop = Application::new(&namespace, json!({}), Sync::Client);
    let (plane, bob) = (namespace.plane(), namespace.kubectl("bob"));
    let policies = tempfile::tempdir().unwrap();
    std::fs::write(policies.path().join("cluster.yaml"), policy("staleAfter: 3s")).unwrap();
    let impatiently = ["--yes", "--policies", policies.path().to_str().unwrap()];
    let unstick = |args: &[&str]| {
        let named = ["unstick", "-n", namespace.name(), "app/shop"];
        let output = run(plane.interlock(&plane.person("bob"), &[&named, args].concat()), DEADLINE);
        (output.status.code(), output.stdout)
    };
    let state = || {
        let object = bob.get(&["applications.argoproj.io/shop"]);
        (object["operation"]["sync"].clone(), object["status"]["operationState"]["phase"].clone())
    };
    let sync = json!({"revision": "main"});

    shop.patch(&bob, &json!({"operation": {"sync": sync}})).expect_success();
    assert!(unstick(&["--yes"]).1.contains("is argocd-application-controller running?"));
    shop.begins();
    shop.patch(&bob, &json!({"operation": null})).expect_failure(&["[concurrent-operation]"]);
    let (code, fresh) = unstick(&["--yes"]);
    assert!(
        code == Some(1) && fresh.contains("counts as stuck after 15 min") && fresh.contains("Next: wait until"),
        "{fresh}"
    );
    let next = eventually(DEADLINE, "the operation is stuck", || match unstick(&impatiently) {
        (Some(0), ended) => Ok(ended.split_once("Next: ").unwrap().1.to_owned()),
        (code, text) => Err(format!("{code:?} {text}")),
    });
    assert_eq!(state(), (sync.clone(), "Terminating".into()));
    let (code, ending) = unstick(&["--yes"]);
    assert!(code == Some(1) && ending.contains("has not yet ended"), "{ending}");
    shop.ends().expect_success();
    shell(plane, &plane.person("bob"), &next, DEADLINE).expect_success();
    shop.begins();
    shop.ends().expect_success();
    let (code, done) = unstick(&["--yes"]);
    assert!(code == Some(0) && done.contains("Nothing to do"), "{done}");

    shop.patch(&bob, &json!({"operation": {"sync": sync}, "status": {"operationState": null}})).expect_success();
    shop.begins();
    shop.orphan();
    let (code, dry) = unstick(&["--dry-run"]);
    assert!(code == Some(0) && dry.contains("Start the interrupted operation"), "{dry}");
    assert_eq!(state(), (Value::Null, "Running".into()));
    let (code, again) = unstick(&["--yes"]);
    assert!(code == Some(0) && again.contains("carries out the operation"), "{again}");
    assert_eq!(state(), (sync, Value::Null));
    shop.begins();
    shop.ends().expect_success();
}

#[test]
fn status_lists_a_sync_and_wait_waits_for_it() {
    let namespace = Namespace::new(shared(), "synced-status");
    let shop = Application::new(&namespace, json!({}), Sync::Client);
    let (plane, bob) = (namespace.plane(), namespace.kubectl("bob"));
    let interlock = |args: &[&str]| {
        let output = run(plane.interlock(&plane.person("bob"), &[args, &["-n", namespace.name()]].concat()), DEADLINE);
        (output.status.code(), output.stdout)
    };
    let free = format!("Application {}/shop is free: no operation is running\n", namespace.name());
    assert_eq!(interlock(&["wait", "app/shop"]), (Some(0), free));
    shop.patch(&bob, &json!({"operation": {"sync": {"revision": "main"}}})).expect_success();
    shop.begins();
    let object = format!("Application {}/shop", namespace.name());
    let (code, listed) = interlock(&["status"]);
    let row = listed.lines().find(|line| line.contains(&object)).unwrap_or_default().to_owned();
    assert!(code == Some(0) && row.contains("running") && row.contains(" bob "), "{listed}");
    let (code, waited) = interlock(&["wait", "app/shop", "--timeout", "1s"]);
    assert!(code == Some(3) && waited.contains("is not free: running, held by bob for"), "{waited}");
    shop.orphan();
    let next = format!("interlock unstick -n {} app/shop", namespace.name());
    for command in [&["status"][..], &["wait", "app/shop"]] {
        let (code, text) = interlock(command);
        assert!(code == Some(1) && text.contains("interrupted") && text.contains(&next), "{text}");
    }
}

/// Its glob matches nothing, without an error. The controller asks for every Application in each round.
#[test]
fn an_application_set_that_generates_nothing_loses_nothing() {
    let namespace = Namespace::new(shared(), "generated");
    let all = ["a", "b", "c", "d"];
    let set = ApplicationSet::new(&namespace, &all);
    for name in all {
        set.drop(name).expect_failure(&["[dropped-applications]", "until it is known what else would go"]);
    }
    let refused = eventually(DEADLINE, "the whole set is known", || {
        let last = all.map(|name| set.drop(name)).into_iter().next_back().unwrap();
        if last.stderr.contains("would lose") { Ok(last) } else { Err(last.to_string()) }
    });
    let place = namespace.name();
    let command =
        format!("kubectl annotate applicationset shops -n {place} --overwrite interlock.dev/allow-removal=a,b,c,d");
    let refused = refused.expect_failure(&[
        "[dropped-applications]",
        &format!("ApplicationSet {place}/shops would lose a, b, c and d, and have 0 of 4 Applications left"),
        "ErrorOccurred=False (ApplicationSetUpToDate)",
    ]);
    assert!(refused.stderr.replace('\'', "").contains(&command), "{refused}");
    assert_eq!(set.applications(), all);
    // What a person deletes is created again, and no drop.
    namespace.kubectl("bob").ok(&["delete", "applications.argoproj.io/a"]);
    // One of those that are left goes, a few seconds later.
    eventually(DEADLINE, "one Application goes", || set.drop("b").into_result());
    assert_eq!(set.applications(), ["c", "d"]);
}

#[test]
fn an_application_set_loses_what_its_spec_or_its_annotation_leaves_out() {
    let namespace = Namespace::new(shared(), "generated-less");
    let set = ApplicationSet::new(&namespace, &["a", "b", "c", "d"]);
    let bob = namespace.kubectl("bob");
    let spec = r#"{"spec":{"generators":[{"list":{"elements":[{"name":"d"}]}}]}}"#;
    bob.ok(&["patch", "applicationset/shops", "--type=merge", "-p", spec]);
    for name in ["a", "b", "c"] {
        eventually(DEADLINE, "what the spec leaves out goes", || set.drop(name).into_result());
    }
    set.list(&["d"]);
    let refused = eventually(DEADLINE, "the whole set is known", || {
        let last = set.drop("d");
        if last.stderr.contains("would lose") { Ok(last) } else { Err(last.to_string()) }
    });
    refused.expect_failure(&["would lose d, and have 0 of 1 Applications left"]);
    bob.ok(&["annotate", "applicationset/shops", "interlock.dev/allow-removal=d"]);
    set.drop("d").expect_success();
}

#[test]
fn a_protected_application_keeps_its_objects() {
    let namespace = Namespace::new(shared(), "synced-protected");
    let shop = Application::new(&namespace, json!({"syncPolicy": {"automated": {"prune": true}}}), Sync::Client);
    shop.list(&LISTED);
    let set = ApplicationSet::new(&namespace, &["a", "b"]);
    shared().define("tests/e2e/harness/crds/upstreams.yaml");
    let bob = namespace.kubectl("bob");
    let project = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "shop"}});
    bob.with_file("create", &project, &[]).expect_success();
    let of_application = "applications.argoproj.io/shop";
    for object in [of_application, "applicationset/shops", "appproject/shop"] {
        bob.ok(&["annotate", object, "interlock.dev/protected=true"]);
        bob.fails(&["annotate", object, "interlock.dev/protected-"], &["[protected-release]"]);
    }
    bob.fails(&["delete", "applicationset/shops"], &["[protected-release]", "its Applications would be deleted"]);
    bob.fails(&["delete", "appproject/shop"], &["[protected-release]"]);
    let edit = |spec: Value| shop.patch(&bob, &json!({"spec": spec}));
    let destination = || json!({"destination": {"namespace": "other"}});
    edit(destination()).expect_failure(&["[protected-release]", "with this spec.destination.namespace, Argo CD may"]);
    edit(json!({"source": {"repoURL": "git", "path": "other"}})).expect_failure(&["[protected-release]"]);
    edit(json!({"source": {"repoURL": "git", "path": "web", "directory": {"exclude": "*"}}}))
        .expect_failure(&["[protected-release]"]);
    edit(json!({"project": "shop", "source": {"targetRevision": "next"}})).expect_success();
    let pruning = |sync: Value| shop.patch(&bob, &json!({"operation": {"sync": sync}}));
    pruning(json!({"prune": true, "manifests": []}))
        .expect_failure(&["[protected-release]", "with this operation.sync"]);
    bob.ok(&[
        "patch",
        of_application,
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":["resources-finalizer.argocd.argoproj.io"]}}"#,
    ]);
    bob.fails(&["delete", of_application], &["[protected-release]", "would delete its objects"]);
    bob.ok(&["patch", of_application, "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
    assert_eq!(set.applications(), ["a", "b", "shop"]);
}

#[test]
fn a_fresh_sync_is_ended_by_its_holder() {
    let namespace = Namespace::new(shared(), "synced-held");
    let shop = Application::new(&namespace, json!({}), Sync::Client);
    let (alice, bob) = (namespace.kubectl("alice"), namespace.kubectl("bob"));
    let claimed = json!([{"name": "interlock.dev/holder", "value": "alice"}, {"name": "Reason", "value": "release"}]);
    shop.patch(&bob, &json!({"operation": {"sync": {"revision": "main"}, "info": claimed}})).expect_success();
    let info = bob.get(&["applications.argoproj.io/shop"])["operation"]["info"].clone();
    assert_eq!(info, json!([{"name": "Reason", "value": "release"}, {"name": "interlock.dev/holder", "value": "bob"}]));
    shop.begins();
    let terminate = json!({"status": {"operationState": {"phase": "Terminating"}}});
    let rule = "[concurrent-operation]";
    shop.patch(&alice, &terminate).expect_failure(&[rule, "held by bob", "only its holder ends it before"]);
    shop.patch(&bob, &terminate).expect_success();
    shop.ends().expect_success();
    // A click in the page of Argo CD may be anybody's.
    shop.autosyncs().expect_success();
    shop.begins();
    shop.patch(&alice, &terminate)
        .expect_failure(&[rule, "held by system:serviceaccount:argocd:argocd-application-controller"]);
    let server = account(namespace.plane(), "argocd", "argocd-server");
    shop.patch(&namespace.kubectl_as(&server), &terminate).expect_success();
}

/// A tenant can write the status of an Application in its own namespace, so that takes no release from Helm.
#[test]
fn an_application_of_a_tenant_takes_no_release() {
    let namespace = Namespace::new(shared(), "moved-by-tenant");
    let chart = Chart::new("demo");
    let helm = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
    helm.ok(&["install", "demo", chart.path()]);
    let shop = Application::new(&namespace, json!({}), Sync::Server);
    shop.list(&[("apps", "Deployment", "demo"), ("", "ConfigMap", "demo"), ("", "Service", "demo")]);
    let sync = json!({"name": "demo", "annotations": {"sync": "1"}});
    shop.apply(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": sync})).expect_success();
    let bob = namespace.kubectl("bob");
    bob.fails(&["delete", "secret", "-l", "owner=helm,name=demo"], &["[record-deletion]"]);
    bob.fails(&["scale", "deployment/demo", "--replicas=7"], &["[manual-scale]", "is managed by release"]);
    helm.ok(&["uninstall", "demo"]);
}

/// Argo CD adopts the objects of a release. Helm's records and marks stay.
#[test]
fn helm_uninstall_takes_nothing_from_a_release_that_has_moved() {
    for version in [HelmVersion::V3, HelmVersion::V4] {
        let namespace = Namespace::new(shared(), &format!("moved-{version:?}").to_lowercase());
        let chart = Chart::new("demo");
        let helm = namespace.helm(version, Driver::Secret, "alice");
        helm.ok(&["install", "demo", chart.path()]);
        let shop = Application::in_argocd(&namespace, json!({}), Sync::Server);
        let bob = namespace.kubectl("bob");
        let installed = namespace.objects_of_demo();
        shop.list(&[("apps", "Deployment", "demo"), ("", "ConfigMap", "demo"), ("", "Service", "demo")]);
        // Whoever has written last is known by the second.
        for object in &installed {
            let kind = bob.get(&[object])["kind"].clone();
            let mut syncs = 0;
            eventually(DEADLINE, "Argo CD has written last", || {
                syncs += 1;
                let annotations = json!({"sync": syncs.to_string()});
                let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
                let metadata = json!({"name": "demo", "annotations": annotations});
                shop.apply(&json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})).expect_success();
                let deletion = bob.run(&["delete", object, "--dry-run=server"]);
                if deletion.stderr.contains("managed by Argo CD's Application") {
                    Ok(())
                } else {
                    Err(deletion.to_string())
                }
            });
        }
        let plane = namespace.plane();
        let scan = ["scan", "--drift", "-n", namespace.name()];
        let scanned = run(plane.interlock(&plane.person("bob"), &scan), DEADLINE);
        assert!(scanned.stdout.contains("adopted-object"), "{scanned}");
        let records = ["delete", "secret", "-l", "owner=helm,name=demo"];
        bob.ok(&[&records[..], &["--dry-run=server"]].concat());
        helm.fails(&["uninstall", "demo"], &["failed to delete release"]);
        assert_eq!(namespace.objects_of_demo(), installed);
        shop.apply(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "demo", "annotations": {"sync": "next"}},
        }))
        .expect_success();
        // Helm forgets the release: whoever began the uninstall deletes its records.
        namespace.kubectl("alice").ok(&records);
        assert_eq!(namespace.objects_of_demo(), installed);
    }
}
