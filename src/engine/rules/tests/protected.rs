//! What the policy protects is not uninstalled, and everything else about it goes on.

use serde_json::{Value, json};

use super::names::{PROTECTED_RELEASE, RECORD_DELETION, RETARGET};
use super::objects::{record, web};
use super::olm::index;
use super::scenario::{Cluster, Verdict, rec};

const CI: &str = "system:serviceaccount:ci:deployer";
const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
const PROTECTED: &str = "protected: {releases: [w*], namespaces: [shop]}\nrules:\n  manual-delete: {mode: 'off'}\n";

fn deployed(policy: &str) -> Cluster {
    let mut cluster = Cluster::with_policy(policy);
    cluster.given_record(&record(5, "deployed", ""));
    cluster
}

#[test]
fn nobody_uninstalls_a_protected_release_at_either_door() {
    for user in ["alice", CI, FLUX] {
        let mut cluster = deployed(PROTECTED);
        let record = record(5, "deployed", "");
        for to in ["uninstalling", "uninstalled"] {
            let refused = cluster.update(user, &record, &record.to(to)).unwrap_err();
            assert!(refused.contains(&PROTECTED_RELEASE), "{user} {to}: {refused:?}");
        }
        assert_eq!(cluster.delete_object(user, web()), Err(vec![PROTECTED_RELEASE]), "{user}");
    }
    assert_eq!(deployed(PROTECTED).delete_object(COLLECTOR, web()), Ok(()));
}

#[test]
fn an_object_of_a_protected_release_does_not_change_its_owner() {
    let policy = format!("{PROTECTED}  manual-edit: {{mode: 'off'}}\n");
    let edited = |change: fn(&mut Value)| {
        let mut object = web();
        change(&mut object["metadata"]);
        deployed(&policy).update_objects(CI, web(), object)
    };
    assert_eq!(edited(|it| it["labels"] = json!({"app": "web"})), refused());
    assert_eq!(edited(|it| it["annotations"] = json!({})), refused());
    assert_eq!(edited(|it| it["annotations"]["meta.helm.sh/release-name"] = "thief".into()), refused());
    assert_eq!(edited(|it| it["annotations"]["meta.helm.sh/release-namespace"] = "bar".into()), refused());
    assert_eq!(edited(|it| it["labels"]["helm.toolkit.fluxcd.io/name"] = "web".into()), Ok(()));
    assert_eq!(edited(|it| it["labels"]["team"] = "blue".into()), Ok(()));
}

#[test]
fn what_the_policy_does_not_name_is_uninstalled() {
    for policy in ["releases: [other]", "namespaces: [other]", "releases: [web], namespaces: [other]"] {
        let mut cluster = deployed(&format!("protected: {{{policy}}}\nrules: {{}}\n"));
        let record = record(5, "deployed", "");
        assert_eq!(cluster.update(FLUX, &record, &record.to("uninstalling")), Ok(()), "{policy}");
        assert_eq!(cluster.delete_object(FLUX, web()), Ok(()), "{policy}");
    }
}

#[test]
fn a_list_that_is_left_out_matches_any_release() {
    for policy in ["releases: [web]", "namespaces: [shop]"] {
        let mut cluster = deployed(&format!("protected: {{{policy}}}\nrules: {{}}\n"));
        assert_eq!(cluster.delete_object(FLUX, web()), Err(vec![PROTECTED_RELEASE]), "{policy}");
    }
}

#[test]
fn a_namespace_adds_releases_of_its_own() {
    let shop = |releases: &str| {
        let mut cluster = Cluster::with_policies(
            "protected: {releases: [other]}\nrules: {}\n",
            Some(&format!("protected: {{releases: [{releases}]}}")),
        );
        cluster.given_record(&record(5, "deployed", ""));
        cluster.delete_object(FLUX, web())
    };
    assert_eq!(shop("web"), Err(vec![PROTECTED_RELEASE]));
    assert_eq!(shop("api"), Ok(()));
}

#[test]
fn the_holder_of_an_operation_uninstalls_it_no_more_than_others() {
    let mut cluster = deployed(PROTECTED);
    cluster.given_record(&record(6, "pending-upgrade", "alice"));
    assert_eq!(cluster.delete_object("alice", web()), Err(vec![PROTECTED_RELEASE]), "it is still declared");
    // A revision that declares nothing drops the object.
    let mut cluster = deployed(PROTECTED);
    cluster.given_record(&rec(6, "pending-upgrade").annotated("interlock.dev/holder", "alice"));
    assert_eq!(cluster.delete_object("alice", web()), Ok(()), "the upgrade drops it");
}

#[test]
fn a_first_install_that_failed_is_uninstalled() {
    for status in ["pending-install", "failed"] {
        let mut cluster = Cluster::with_policy(PROTECTED);
        let first = record(1, status, "alice");
        cluster.given_record(&first);
        assert_eq!(cluster.update("alice", &first, &first.to("uninstalling")), Ok(()), "{status}");
        assert_eq!(cluster.delete_object("alice", web()), Ok(()), "{status}");
    }
}

#[test]
fn history_is_pruned() {
    let mut cluster = deployed(PROTECTED);
    cluster.given_record(&rec(4, "superseded"));
    assert_eq!(cluster.delete("alice", &rec(4, "superseded")), Ok(()));
}

#[test]
fn what_began_while_the_webhook_was_away_ends_there() {
    // No stamp: nobody let this uninstall through.
    let unseen = record(5, "uninstalling", "");
    let mut cluster = Cluster::with_policy(PROTECTED);
    cluster.given_record(&unseen);
    assert_eq!(cluster.delete_object(FLUX, web()), refused());
    assert_eq!(cluster.update(FLUX, &unseen, &unseen.to("uninstalled")), Ok(()), "nothing of it is left");
    // And this one was let through, by an override or before the release was protected.
    let begun = record(5, "uninstalling", "alice");
    let mut cluster = Cluster::with_policy(PROTECTED);
    cluster.given_record(&begun);
    assert_eq!(cluster.delete_object("alice", web()), Ok(()));
    assert_eq!(cluster.update("alice", &begun, &begun.to("uninstalled")), Ok(()));
    assert_eq!(cluster.delete("alice", &begun.to("uninstalled")), Ok(()));
}

#[test]
fn a_manager_keeps_the_record_that_the_release_rests_on() {
    let ours = record(5, "deployed", FLUX);
    let older = record(4, "deployed", FLUX);
    for (policy, verdict) in [(PROTECTED, refused()), ("rules: {}", Ok(()))] {
        let mut cluster = Cluster::with_policy(policy);
        cluster.given_record(&older);
        cluster.given_record(&ours);
        assert_eq!(cluster.delete(FLUX, &ours), verdict, "{policy}");
        assert_eq!(cluster.delete(FLUX, &older), Ok(()), "{policy}");
    }
    let alices = record(5, "deployed", "alice");
    let mut cluster = Cluster::with_policy(PROTECTED);
    cluster.given_record(&alices);
    assert_eq!(cluster.delete("alice", &alices), Err(vec![PROTECTED_RELEASE, RECORD_DELETION]));
}

fn refused() -> Verdict {
    Err(vec![PROTECTED_RELEASE])
}

const ANNOTATION: &str = "interlock.dev/protected";

fn annotated(mut object: Value) -> Value {
    object["metadata"]["annotations"][ANNOTATION] = "true".into();
    object
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {}, "annotations": {}}})
}

#[test]
fn the_namespace_of_a_protected_release_stays() {
    for user in ["alice", CI, FLUX] {
        assert_eq!(deployed(PROTECTED).delete_object(user, namespace()), refused(), "{user}");
    }
    assert_eq!(deployed("protected: {releases: [other]}\nrules: {}").delete_object("alice", namespace()), Ok(()));
    assert_eq!(deployed("rules: {}").delete_object("alice", namespace()), Ok(()));
    assert_eq!(deployed("rules: {}").delete_object("alice", annotated(namespace())), refused());
    let mut empty = Cluster::with_policy(PROTECTED);
    empty.given_record(&record(1, "failed", "alice"));
    assert_eq!(empty.delete_object("alice", namespace()), Ok(()), "nothing was ever deployed");
    assert_eq!(empty.delete_object("alice", annotated(namespace())), Ok(()));
}

#[test]
fn an_annotated_namespace_protects_every_release_in_it() {
    let mut cluster = deployed("rules:\n  manual-delete: {mode: 'off'}\n");
    cluster.given(annotated(namespace()));
    let deployed = record(5, "deployed", "");
    assert_eq!(cluster.update(CI, &deployed, &deployed.to("uninstalling")), refused());
    for user in ["alice", CI, FLUX] {
        assert_eq!(cluster.delete_object(user, web()), refused(), "{user}");
    }
    assert_eq!(cluster.update_objects("alice", annotated(namespace()), namespace()), refused());
    assert_eq!(cluster.update_objects("alice", namespace(), annotated(namespace())), Ok(()));
    let mut off = annotated(namespace());
    off["metadata"]["annotations"][ANNOTATION] = "false".into();
    assert_eq!(cluster.update_objects("alice", annotated(namespace()), off), refused());
    assert_eq!(cluster.update_objects(CI, annotated(namespace()), namespace()), Ok(()), "as Git has it");
    // It is stored without the annotation now.
    assert_eq!(cluster.delete_object("alice", namespace()), Ok(()));
}

/// HelmRelease apps/web, which has installed release shop/web.
fn helm_release(spec: Value) -> Value {
    let snapshot = json!({"name": "web", "namespace": "shop", "status": "deployed", "chartName": "nginx"});
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {}}, "spec": spec,
        "status": {"storageNamespace": "shop", "history": [snapshot]},
    })
}

#[test]
fn the_helm_release_of_a_protected_release_stays_unless_it_is_suspended() {
    let (awake, asleep) = (helm_release(json!({})), helm_release(json!({"suspend": true})));
    for user in ["alice", CI, FLUX] {
        assert_eq!(deployed(PROTECTED).delete_object(user, awake.clone()), refused(), "{user}");
        assert_eq!(deployed("rules: {}").delete_object(user, annotated(awake.clone())), refused(), "{user}");
        assert_eq!(deployed("rules: {}").delete_object(user, awake.clone()), Ok(()), "{user}");
        assert_eq!(deployed(PROTECTED).delete_object(user, asleep.clone()), Ok(()), "{user}");
    }
    assert_eq!(deployed(PROTECTED).delete_object(COLLECTOR, awake.clone()), Ok(()));
    let mut never = awake.clone();
    never["status"]["history"][0]["status"] = "failed".into();
    assert_eq!(Cluster::with_policy(PROTECTED).delete_object("alice", never), Ok(()), "never deployed");
    let told = deployed(PROTECTED).findings("alice", Some(awake), None).concat();
    assert!(told.contains("suspend it first (`kubectl patch helmrelease web -n shop"), "{told}");
}

#[test]
fn a_retarget_of_a_protected_release_is_not_acknowledged_away() {
    let moved = |mut object: Value| {
        object["spec"] = json!({"releaseName": "site"});
        object["metadata"]["annotations"]["interlock.dev/allow-retarget"] = "shop/site".into();
        object
    };
    let old = helm_release(json!({}));
    assert_eq!(deployed(PROTECTED).update_objects("alice", old.clone(), moved(old.clone())), refused());
    assert_eq!(deployed("rules: {}").update_objects("alice", old.clone(), moved(old.clone())), Ok(()));
    let unasked = helm_release(json!({"releaseName": "site"}));
    let both = Err(vec![PROTECTED_RELEASE, RETARGET]);
    assert_eq!(deployed(PROTECTED).update_objects("alice", old.clone(), unasked), both);
    let values = helm_release(json!({"values": {"replicas": 3}}));
    assert_eq!(deployed(PROTECTED).update_objects("alice", old.clone(), values), Ok(()));
    let (marked, plain) = (annotated(old.clone()), old);
    assert_eq!(deployed("rules: {}").update_objects("alice", marked.clone(), plain.clone()), refused());
    assert_eq!(deployed("rules: {}").update_objects(CI, marked, plain), Ok(()));
}

#[test]
fn the_extension_of_a_protected_release_stays() {
    let extension = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": "web", "annotations": {}}, "spec": {"namespace": "shop"},
    });
    const OPERATOR: &str = "system:serviceaccount:olmv1-system:operator-controller-controller-manager";
    let with = |policy: &str, status: &'static str| {
        let mut cluster = Cluster::with_policy(policy);
        cluster.given(index(&record(5, status, OPERATOR), &[]));
        cluster
    };
    assert_eq!(with(PROTECTED, "deployed").delete_object("alice", extension.clone()), refused());
    assert_eq!(with(PROTECTED, "failed").delete_object("alice", extension.clone()), Ok(()));
    assert_eq!(with("rules: {}", "deployed").delete_object("alice", extension.clone()), Ok(()));
    let marked = annotated(extension.clone());
    assert_eq!(with("rules: {}", "deployed").delete_object("alice", marked.clone()), refused());
    assert_eq!(with("rules: {}", "deployed").update_objects("alice", marked.clone(), extension.clone()), refused());
    assert_eq!(with("rules: {}", "failed").update_objects("alice", marked, extension), Ok(()));
}
