//! Objects of an Application: who may change what.

mod acts;
mod dropped;
mod moved;

use serde_json::{Value, json};

use crate::rules::tests::acts::set;
use crate::rules::tests::scenario::{Cluster, Verdict};

const CONTROLLER: &str = "system:serviceaccount:argocd:argocd-application-controller";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const TRACKING: &str = "argocd.argoproj.io/tracking-id";
const OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// A ConfigMap as the controller has applied it on the side of the client.
fn config() -> Value {
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "declared"}}).to_string();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "declared", "free": "x"},
        "metadata": {
            "name": "web", "namespace": "shop",
            "annotations": {TRACKING: "web:/ConfigMap:shop/web", LAST_APPLIED: applied},
        },
    })
}

/// A Deployment that it has applied on the side of the server.
fn web(replicas: u64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": replicas},
        "metadata": {
            "name": "web", "namespace": "shop", "annotations": {TRACKING: "web:apps/Deployment:shop/web"},
            "managedFields": [{
                "manager": "argocd-controller", "operation": "Apply", "apiVersion": "apps/v1",
                "fieldsV1": {"f:spec": {"f:replicas": {}}},
            }],
        },
    })
}

fn application(spec: Value, requires_pruning: bool) -> Value {
    let listed = |group: &str, kind: &str| {
        json!({
            "group": group, "kind": kind, "namespace": "shop", "name": "web", "status": "Synced",
            "requiresPruning": requires_pruning,
        })
    };
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web", "namespace": "argocd"},
        "spec": spec, "status": {"resources": [listed("", "ConfigMap"), listed("apps", "Deployment")]},
    })
}

fn cluster(application: Value) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given(web(2));
    cluster.given(application);
    cluster
}

fn synced() -> Cluster {
    cluster(application(json!({}), false))
}

fn with(path: &[&str], value: Value) -> Value {
    let mut object = config();
    path.iter().fold(&mut object, |part, key| &mut part[*key]).clone_from(&value);
    object
}

fn without(annotation: &str) -> Value {
    let mut object = config();
    object["metadata"]["annotations"].as_object_mut().unwrap().remove(annotation);
    object
}

fn refused(rule: &'static str) -> Verdict {
    Err(vec![rule])
}

/// Also where the Application lists the object: Argo CD ignores such a mark, and whoever copies an object copies it.
#[test]
fn a_mark_that_names_another_object_makes_nobody_its_owner() {
    let edit = |tracking: &str| {
        let marked = with(&["metadata", "annotations", TRACKING], tracking.into());
        synced().update_objects("alice", marked.clone(), set(marked, "/data/mode", "evil".into()))
    };
    assert_eq!(edit("web:/ConfigMap:shop/web"), refused("manual-edit"));
    for other in [
        "web:apps/ConfigMap:shop/web",
        "web:/Secret:shop/web",
        "web:/ConfigMap:other/web",
        "web:/ConfigMap:shop/other",
        "web:apps/Secret:shop/other",
    ] {
        assert_eq!(edit(other), Ok(()), "{other}");
    }
}

#[test]
fn people_change_what_is_synced_in_its_source() {
    let edit = |user: &str, new: Value| synced().update_objects(user, config(), new);
    assert_eq!(edit("alice", with(&["data", "mode"], "evil".into())), refused("manual-edit"));
    assert_eq!(synced().delete_object("alice", config()), refused("manual-delete"));
    assert_eq!(synced().update_objects("alice", web(2), web(5)), refused("manual-edit"));
    assert_eq!(synced().scale("alice", &web(2), 2, 5), refused("manual-scale"));
    assert_eq!(edit("alice", without(TRACKING)), refused("manual-edit"));
    let ghost = with(&["metadata", "annotations", TRACKING], "ghost:/ConfigMap:shop/web".into());
    assert_eq!(edit("alice", ghost), refused("manual-edit"));
    // What was applied last is the basis of the next comparison.
    assert_eq!(edit("alice", without(LAST_APPLIED)), refused("manual-edit"));
    assert_eq!(
        edit("alice", with(&["metadata", "annotations", OPTIONS], "Prune=false".into())),
        refused("manual-edit")
    );

    assert_eq!(edit("alice", with(&["data", "free"], "y".into())), Ok(()));
    assert_eq!(edit("alice", with(&["metadata", "labels"], json!({"team": "blue"}))), Ok(()));
    assert_eq!(edit(CONTROLLER, with(&["data", "mode"], "next".into())), Ok(()));
    assert_eq!(synced().delete_object(CONTROLLER, config()), Ok(()));
    let message = synced().findings("alice", Some(config()), None).concat();
    assert!(message.contains("managed by Argo CD's Application argocd/web"), "{message}");
}

#[test]
fn a_huge_or_broken_annotation_is_no_mark() {
    let huge = format!("{}:/ConfigMap:shop/web", "web:".repeat(50_000));
    for tracking in [huge.as_str(), "::::", "web:/ConfigMap:shop/", "_:/:/", "\u{0}:/ConfigMap:shop/web"] {
        let marked = |mode: &str| {
            let mut object = with(&["data", "mode"], mode.into());
            object["metadata"]["annotations"][TRACKING] = tracking.into();
            object
        };
        let verdict = synced().update_objects("alice", marked("declared"), marked("other"));
        assert_eq!(verdict, Ok(()), "{}", tracking.chars().take(20).collect::<String>());
    }
}

#[test]
fn a_mark_without_a_status_guards_nothing() {
    let edited = || with(&["data", "mode"], "other".into());
    assert_eq!(Cluster::new().update_objects("alice", config(), edited()), Ok(()), "there is no such Application");
    let mut stray = cluster(application(json!({}), true));
    assert_eq!(stray.update_objects("alice", config(), edited()), Ok(()), "no source declares it");
    // A copy names another object.
    let copy = |mut object: Value| {
        object["metadata"]["name"] = "copy".into();
        object
    };
    assert_eq!(synced().update_objects("alice", copy(config()), copy(edited())), Ok(()));
    let odd = |mut object: Value| {
        object["metadata"]["annotations"][TRACKING] = ":::".into();
        object
    };
    assert_eq!(synced().update_objects("alice", odd(config()), odd(edited())), Ok(()));
}

#[test]
fn an_application_in_another_namespace_is_named_by_the_mark() {
    let marked = |mut object: Value| {
        object["metadata"]["annotations"][TRACKING] = "team_web:/ConfigMap:shop/web".into();
        object
    };
    let edit = |cluster: &mut Cluster| {
        cluster.update_objects("alice", marked(config()), marked(with(&["data", "mode"], "evil".into())))
    };
    assert_eq!(edit(&mut synced()), Ok(()));
    let mut elsewhere = application(json!({}), false);
    elsewhere["metadata"]["namespace"] = "team".into();
    assert_eq!(edit(&mut cluster(elsewhere)), refused("manual-edit"));
}

#[test]
fn what_an_application_does_not_compare_is_left_to_people() {
    let ignoring = |rule: Value| cluster(application(json!({"ignoreDifferences": [rule]}), false));
    let of_deployments = |rest: Value| {
        let mut rule = json!({"group": "apps", "kind": "Deployment"});
        rule.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        rule
    };
    for rest in [json!({"jsonPointers": ["/spec/replicas"]}), json!({"jqPathExpressions": [".spec.replicas"]})] {
        assert_eq!(ignoring(of_deployments(rest.clone())).scale("alice", &web(2), 2, 5), Ok(()), "{rest}");
    }
    let of_another = of_deployments(json!({"name": "other", "jsonPointers": ["/spec/replicas"]}));
    assert_eq!(ignoring(of_another).scale("alice", &web(2), 2, 5), refused("manual-scale"));
    let everywhere = json!({"group": "*", "kind": "*", "jsonPointers": ["/data"]});
    let edited = with(&["data", "mode"], "other".into());
    assert_eq!(ignoring(everywhere).update_objects("alice", config(), edited), Ok(()));
}

#[test]
fn a_field_of_a_manager_that_is_left_alone_is_no_loss() {
    let of_manager = |manager: &str, replicas: u64| {
        let mut object = web(replicas);
        let mut entry = object["metadata"]["managedFields"][0].clone();
        entry["manager"] = manager.into();
        object["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
        object
    };
    let rule = json!({"group": "apps", "kind": "Deployment", "managedFieldsManagers": ["autoscaler"]});
    let edit = |manager: &str| {
        let mut cluster = cluster(application(json!({"ignoreDifferences": [rule]}), false));
        cluster.update_objects("alice", of_manager(manager, 2), of_manager(manager, 5))
    };
    assert_eq!(edit("autoscaler"), Ok(()));
    assert_eq!(edit("other"), refused("manual-edit"));
}

#[test]
fn what_argo_cd_compares_nowhere_is_left_to_people() {
    let edit = |key: &str| {
        let mut cluster = synced();
        cluster.given(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"},
            "data": {format!("resource.customizations.ignoreDifferences.{key}"): "jsonPointers: [/spec/replicas]"},
        }));
        cluster.update_objects("alice", web(2), web(5))
    };
    assert_eq!(edit("apps_Deployment"), Ok(()));
    assert_eq!(edit("all"), Ok(()));
    assert_eq!(edit("apps_StatefulSet"), refused("manual-edit"));
}

#[test]
fn a_label_names_an_application_that_lists_the_object() {
    let labelled = |application: &str, mode: &str| {
        let mut object = with(&["data", "mode"], mode.into());
        object["metadata"]["annotations"].as_object_mut().unwrap().remove(TRACKING);
        object["metadata"]["labels"] = json!({"argocd.argoproj.io/instance": application});
        object
    };
    let edit =
        |application: &str, after: Value| synced().update_objects("alice", labelled(application, "declared"), after);
    assert_eq!(edit("web", labelled("web", "evil")), refused("manual-edit"));
    assert_eq!(edit("web", labelled("ghost", "declared")), refused("manual-edit"));
    assert_eq!(synced().delete_object("alice", labelled("web", "declared")), refused("manual-delete"));
    assert_eq!(edit("ghost", labelled("ghost", "evil")), Ok(()), "nothing proves it");
    assert_eq!(edit("team_web", labelled("team_web", "evil")), Ok(()), "there is none in that namespace");
}

const SERVER: &str = "system:serviceaccount:argocd:argocd-server";

/// An Application with an operation and the state of one.
fn operating(operation: Value, phase: &str, started: &str) -> Value {
    let mut application = application(json!({"destination": {"namespace": "shop"}}), false);
    application["operation"] = operation;
    if !phase.is_empty() {
        application["status"]["operationState"] = json!({"phase": phase, "startedAt": started, "operation": {}});
    }
    application
}

fn sync(revision: &str) -> Value {
    json!({"sync": {"revision": revision}})
}

const FRESH: &str = "2026-11-21T09:59:00Z";
const STALE: &str = "2026-11-21T09:00:00Z";

/// The rules that refuse an update, and every finding.
fn written(user: &str, old: &Value, new: &Value) -> (Verdict, Vec<String>) {
    let update = |cluster: &mut Cluster| cluster.update_objects(user, old.clone(), new.clone());
    (update(&mut Cluster::new()), Cluster::new().findings(user, Some(old.clone()), Some(new.clone())))
}

#[test]
fn an_operation_that_runs_is_neither_removed_nor_replaced() {
    let running = operating(sync("a"), "Running", FRESH);
    for (new, verdict) in [
        (operating(Value::Null, "Running", FRESH), refused("concurrent-operation")),
        (operating(sync("b"), "Running", FRESH), refused("concurrent-operation")),
        // The clean end, and what says nothing about the operation.
        (operating(sync("a"), "Terminating", FRESH), Ok(())),
        (operating(sync("a"), "Running", FRESH), Ok(())),
    ] {
        assert_eq!(written("bob", &running, &new).0, verdict, "{new}");
        assert_eq!(written(CONTROLLER, &running, &new).0, Ok(()), "{new}");
    }
    let ended = operating(Value::Null, "Succeeded", FRESH);
    assert_eq!(written(CONTROLLER, &running, &ended), (Ok(()), vec![]));
    // Where no listed controller exists, one in another namespace may be it.
    let elsewhere = "system:serviceaccount:cd:argocd-application-controller";
    assert_eq!(written(elsewhere, &running, &ended).0, Ok(()));
    let listed = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"namespace": "argocd", "name": "argocd-application-controller"},
    });
    let mut cluster = Cluster::new();
    cluster.given(listed);
    assert_eq!(cluster.update_objects(elsewhere, running.clone(), ended), refused("concurrent-operation"));
    // It counts as stuck, or has not started yet.
    for (old, new) in [
        (operating(sync("a"), "Running", STALE), operating(Value::Null, "Running", STALE)),
        (operating(sync("a"), "Succeeded", FRESH), operating(Value::Null, "Succeeded", FRESH)),
        (operating(sync("a"), "", ""), operating(sync("b"), "", "")),
    ] {
        assert_eq!(written("bob", &old, &new).0, Ok(()), "{old}");
    }
    let message = written("bob", &running, &operating(Value::Null, "Running", FRESH)).1.concat();
    assert!(message.contains("`kubectl patch application.argoproj.io web -n argocd --type merge -p"), "{message}");
}

#[test]
fn an_interrupted_operation_is_forgotten_in_the_write_that_starts_the_next() {
    for started in [FRESH, STALE] {
        let orphan = operating(Value::Null, "Running", started);
        assert_eq!(
            written("bob", &orphan, &operating(sync("b"), "Running", started)).0,
            refused("concurrent-operation")
        );
        for user in ["bob", SERVER] {
            assert_eq!(written(user, &orphan, &operating(sync("b"), "", "")), (Ok(()), vec![]), "{user}");
        }
    }
}

/// Argo CD may report success without applying anything.
#[test]
fn a_sync_over_the_state_of_the_last_one_gets_a_warning() {
    let finished = operating(Value::Null, "Succeeded", STALE);
    let (verdict, found) = written("bob", &finished, &operating(sync("b"), "Succeeded", STALE));
    assert_eq!(verdict, Ok(()));
    assert!(found.len() == 1 && found[0].contains("`argocd app sync argocd/web`"), "{found:?}");
    assert_eq!(written(SERVER, &finished, &operating(sync("b"), "", "")), (Ok(()), vec![]));
}

#[test]
fn a_freeze_stops_what_starts_a_sync() {
    let frozen =
        "freezes: [{name: sale, reason: a sale, timeZone: UTC, from: 2026-01-01, to: 2099-01-01, namespaces: [shop]}]";
    let update = |user: &str, old: &Value, new: &Value| {
        Cluster::with_policy(frozen).update_objects(user, old.clone(), new.clone())
    };
    let at_rest = operating(Value::Null, "Succeeded", STALE);
    let started = operating(sync("b"), "", "");
    for user in ["bob", SERVER, CONTROLLER] {
        assert_eq!(update(user, &at_rest, &started), refused("freeze"), "{user}");
    }
    // The end of a sync that runs, and what its controller writes to objects.
    let running = operating(sync("a"), "Running", FRESH);
    assert_eq!(update(CONTROLLER, &running, &operating(Value::Null, "Succeeded", FRESH)), Ok(()));
    assert_eq!(update("bob", &running, &operating(sync("a"), "Terminating", FRESH)), Ok(()));
    assert_eq!(update(CONTROLLER, &config(), &with(&["data", "mode"], "next".into())), Ok(()));
    // The deletion takes the objects along only with the finalizer.
    let mut deleted = at_rest;
    assert_eq!(Cluster::with_policy(frozen).delete_object("bob", deleted.clone()), Ok(()));
    deleted["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io/background"]);
    assert_eq!(Cluster::with_policy(frozen).delete_object("bob", deleted.clone()), refused("freeze"));
    assert_eq!(Cluster::with_policy(frozen).delete_object(CONTROLLER, deleted), Ok(()));
}

#[test]
fn a_protected_application_is_not_deleted_with_its_objects() {
    const PROTECTED: &str = "interlock.dev/protected";
    let with_metadata = |finalizer: &str, annotation: Value| {
        let mut application = operating(Value::Null, "Succeeded", STALE);
        application["metadata"]["finalizers"] = json!([finalizer]);
        application["metadata"]["annotations"] = json!({PROTECTED: annotation});
        application
    };
    let cascade = "resources-finalizer.argocd.argoproj.io";
    let (on, off) = (|| json!("true"), || json!("false"));
    let delete = |policy: &str, user: &str, object: Value| Cluster::with_policy(policy).delete_object(user, object);
    for user in ["bob", SERVER, CONTROLLER] {
        assert_eq!(delete("", user, with_metadata(cascade, on())), refused("protected-release"), "{user}");
        assert_eq!(delete("", user, with_metadata(cascade, off())), Ok(()), "{user}");
        assert_eq!(delete("", user, with_metadata("other", on())), Ok(()), "{user}: its objects stay");
    }
    let policy = "protected: {namespaces: [shop]}";
    assert_eq!(delete(policy, "bob", with_metadata(cascade, off())), refused("protected-release"));
    let mut empty = with_metadata(cascade, on());
    empty["status"]["resources"] = json!([]);
    assert_eq!(delete("", "bob", empty), Ok(()));
    let unprotect =
        |user: &str| Cluster::new().update_objects(user, with_metadata(cascade, on()), with_metadata(cascade, off()));
    assert_eq!(unprotect("bob"), refused("protected-release"));
    assert_eq!(unprotect(CONTROLLER), Ok(()), "it writes what is in Git");
}

/// Whoever may write an Application may write its status, and the status says which objects are guarded.
#[test]
fn people_do_not_write_what_an_application_lists() {
    let listed = application(json!({}), false);
    let mut emptied = listed.clone();
    emptied["status"]["resources"] = json!([]);
    assert_eq!(written("bob", &listed, &emptied).0, refused("forged-status"));
    for user in [CONTROLLER, SERVER] {
        assert_eq!(written(user, &listed, &emptied), (Ok(()), vec![]), "{user}");
    }
    let mut renamed = listed.clone();
    renamed["spec"]["project"] = "shop".into();
    assert_eq!(written("bob", &listed, &renamed), (Ok(()), vec![]));
}

#[test]
fn a_protected_application_is_not_edited_so_that_it_prunes() {
    let annotated = |spec: Value| {
        let mut object = application(spec, false);
        object["metadata"]["annotations"] = json!({"interlock.dev/protected": "true"});
        object
    };
    let source = |path: &str, revision: &str| json!({"repoURL": "git", "path": path, "targetRevision": revision});
    let spec = |namespace: &str, source: Value, prune: bool| {
        json!({
            "destination": {"namespace": namespace}, "source": source, "syncPolicy": {"automated": {"prune": prune}},
        })
    };
    let edit = |user: &str, before: Value, after: Value| {
        Cluster::new().update_objects(user, annotated(before), annotated(after))
    };
    let before = || spec("shop", source("web", "v1"), true);
    for (what, after) in [
        ("destination", spec("shops", source("web", "v1"), true)),
        ("source", spec("shop", source("webs", "v1"), true)),
    ] {
        assert_eq!(edit("bob", before(), after.clone()), refused("protected-release"), "{what}");
        assert_eq!(edit(CONTROLLER, before(), after), Ok(()), "{what}");
    }
    assert_eq!(edit("bob", before(), spec("shop", source("web", "v2"), true)), Ok(()));
    // A sync by hand may prune too.
    assert_eq!(edit("bob", before(), spec("shops", source("web", "v1"), false)), refused("protected-release"));
    assert_eq!(edit("bob", before(), spec("shop", source("web", "v1"), false)), Ok(()));
    assert_eq!(edit("bob", spec("shops", source("web", "v1"), false), before()), refused("protected-release"));
}

#[test]
fn a_namespace_stays_for_a_protected_application() {
    let delete = |namespace: &str, protected: &str| {
        let mut object = application(json!({"destination": {"namespace": "shop"}}), false);
        object["metadata"]["annotations"] = json!({"interlock.dev/protected": protected});
        let mut cluster = cluster(object);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        cluster.delete_cluster_scoped("alice", namespace)
    };
    assert_eq!(delete("shop", "true"), refused("protected-release"));
    assert_eq!(delete("shop", "false"), Ok(()));
    assert_eq!(delete("argocd", "true"), Ok(()), "without the finalizer, its objects stay");
}

#[test]
fn a_fresh_sync_is_ended_by_its_holder() {
    let held = |at: &str| {
        let mut running = operating(sync("a"), "Running", at);
        running["status"]["operationState"]["operation"] =
            json!({"info": [{"name": "interlock.dev/holder", "value": "bob"}]});
        running
    };
    let end = |user: &str, at: &str| {
        let mut after = held(at);
        after["status"]["operationState"]["phase"] = "Terminating".into();
        Cluster::new().update_objects(user, held(at), after)
    };
    assert_eq!(end("alice", FRESH), refused("concurrent-operation"));
    for user in ["bob", SERVER, CONTROLLER] {
        assert_eq!(end(user, FRESH), Ok(()), "{user}");
    }
    assert_eq!(end("alice", STALE), Ok(()));
    // Without a holder, everybody ends it.
    let unknown = |phase: &str| operating(sync("a"), phase, FRESH);
    assert_eq!(Cluster::new().update_objects("alice", unknown("Running"), unknown("Terminating")), Ok(()));
    let removed = {
        let mut removed = held(FRESH);
        removed["operation"] = Value::Null;
        removed
    };
    let of_alice = Cluster::new().findings("alice", Some(held(FRESH)), Some(removed.clone())).concat();
    assert!(of_alice.contains("its sync is running, held by bob") && !of_alice.contains("to end it now"), "{of_alice}");
    let of_bob = Cluster::new().findings("bob", Some(held(FRESH)), Some(removed)).concat();
    assert!(of_bob.contains("Terminating"), "{of_bob}");
}

#[test]
fn the_holder_of_a_sync_is_stamped_and_cannot_be_forged() {
    let with_info = |info: Value| {
        let mut application = application(json!({}), false);
        application["operation"] = json!({"sync": {}, "info": info});
        application
    };
    let holder = |user: &str| json!([{"name": "interlock.dev/holder", "value": user}]);
    let judged = |old: Value, new: Value| Cluster::new().judged("alice", Some(old), new);
    let started = judged(application(json!({}), false), with_info(holder("bob")));
    assert!(started.allowed, "the stamp is overwritten: {:?}", started.findings);
    let patch = serde_json::to_value(started.patch.unwrap()).unwrap();
    assert_eq!(patch, json!([{"op": "add", "path": "/operation/info", "value": holder("alice")}]));
    let forged = |old: Value, new: Value| Cluster::new().update_unstamped("alice", old, new);
    let start = || application(json!({}), false);
    assert_eq!(forged(start(), with_info(holder("bob"))), refused("forged-stamp"));
    assert_eq!(forged(start(), with_info(holder("alice"))), Ok(()));
    assert_eq!(forged(start(), with_info(json!([]))), Ok(()), "a lost stamp is no reason to refuse");
    assert_eq!(forged(with_info(holder("bob")), with_info(holder("alice"))), refused("forged-stamp"));
    assert_eq!(forged(with_info(holder("bob")), with_info(holder("bob"))), Ok(()));
}

#[test]
fn the_options_that_keep_objects_stay_on_a_protected_application() {
    let annotated = |options: &[&str]| {
        let mut object = application(json!({"syncPolicy": {"syncOptions": options}}), false);
        object["metadata"]["annotations"] = json!({"interlock.dev/protected": "true"});
        object
    };
    let edit = |user: &str, before: &[&str], after: &[&str]| {
        Cluster::new().update_objects(user, annotated(before), annotated(after))
    };
    for kept in ["Prune=confirm", "Delete=confirm", "Prune=false"] {
        assert_eq!(edit("bob", &["CreateNamespace=true", kept], &[]), refused("protected-release"), "{kept}");
        assert_eq!(edit("bob", &[kept], &[kept, "CreateNamespace=true"]), Ok(()), "{kept}");
    }
    assert_eq!(edit(CONTROLLER, &["Prune=confirm"], &[]), Ok(()));

    let optional = |options: &str| with(&["metadata", "annotations", OPTIONS], options.into());
    let edit = |user: &str, before: &str, after: &str| {
        cluster(annotated(&[])).update_objects(user, optional(before), optional(after))
    };
    let robot = "system:serviceaccount:ci:robot";
    let holds = |verdict: Verdict| verdict.is_err_and(|rules| rules.contains(&"protected-release"));
    assert!(holds(edit(robot, "Replace=true,Prune=confirm", "Replace=true")));
    assert!(!holds(edit(robot, "Replace=true", "Replace=false")));
    assert_eq!(edit(CONTROLLER, "Prune=confirm", ""), Ok(()));
    assert!(holds(cluster(annotated(&[])).delete_object(robot, config())));
    assert_eq!(cluster(annotated(&[])).delete_object(CONTROLLER, config()), Ok(()));
    assert!(!holds(synced().delete_object(robot, config())), "it is not protected");
}
