//! Protected releases cannot be uninstalled. Everything else remains allowed.

use serde_json::{Value, json};

use super::objects::{record, web};
use super::scenario::{Cluster, Rec, Verdict, rec};
use crate::owners::olm::rules::tests::index;
use crate::release::stamps::TARGET_NAMESPACE;

const CI: &str = "system:serviceaccount:ci:deployer";
const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
const OPERATOR: &str = "system:serviceaccount:olmv1-system:operator-controller-controller-manager";
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
const PROTECTED: &str = "protected: {releases: [w*], namespaces: [shop]}\nrules:\n  manual-delete: {mode: 'off'}\n";

fn deployed(policy: &str) -> Cluster {
    let mut cluster = Cluster::with_policy(policy);
    cluster.given_record(&record(5, "deployed", ""));
    cluster
}

#[test]
fn neither_records_nor_objects_of_a_protected_release_may_go() {
    for user in ["alice", CI, FLUX] {
        let mut cluster = deployed(PROTECTED);
        let record = record(5, "deployed", "");
        for to in ["uninstalling", "uninstalled"] {
            let refused = cluster.update(user, &record, &record.to(to)).unwrap_err();
            assert!(refused.contains(&"protected-release"), "{user} {to}: {refused:?}");
        }
        assert_eq!(cluster.delete_object(user, web()), Err(vec!["protected-release"]), "{user}");
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

/// The labels of Flux lead to records that are elsewhere. Without them, the object could be deleted next.
#[test]
fn an_object_keeps_the_labels_that_lead_to_its_records() {
    let mut stored = record(5, "deployed", FLUX).object();
    stored["metadata"]["namespace"] = "records".into();
    let mut declared = helm_release(json!({}));
    declared["status"]["storageNamespace"] = "records".into();
    let labelled = || {
        let mut object = web();
        object["metadata"]["labels"]["helm.toolkit.fluxcd.io/name"] = "web".into();
        object["metadata"]["labels"]["helm.toolkit.fluxcd.io/namespace"] = "shop".into();
        object
    };
    for (user, kept) in [("alice", true), (CI, true), (FLUX, false)] {
        let mut cluster =
            Cluster::with_policy("protected: {namespaces: [records]}\nrules:\n  manual-delete: {mode: 'off'}\n");
        cluster.given(stored.clone());
        cluster.given(declared.clone());
        cluster.given(labelled());
        assert_eq!(cluster.delete_object(user, labelled()), refused(), "{user}");
        let stripped = cluster.update_objects(user, labelled(), web());
        assert_eq!(stripped, if kept { refused() } else { Ok(()) }, "{user}");
    }
}

#[test]
fn releases_that_the_policy_does_not_name_may_be_uninstalled() {
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
        assert_eq!(cluster.delete_object(FLUX, web()), Err(vec!["protected-release"]), "{policy}");
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
    assert_eq!(shop("web"), Err(vec!["protected-release"]));
    assert_eq!(shop("api"), Ok(()));
}

#[test]
fn the_holder_of_an_operation_uninstalls_it_no_more_than_others() {
    let mut cluster = deployed(PROTECTED);
    cluster.given_record(&record(6, "pending-upgrade", "alice"));
    assert_eq!(cluster.delete_object("alice", web()), Err(vec!["protected-release"]), "it is still declared");
    // A revision that declares nothing removes the object.
    let mut cluster = deployed(PROTECTED);
    cluster.given_record(&rec(6, "pending-upgrade").annotated("interlock.dev/holder", "alice"));
    assert_eq!(cluster.delete_object("alice", web()), Ok(()), "the upgrade drops it");
    // The same for an annotated namespace.
    let annotated_home = || {
        let mut cluster = deployed("rules:\n  manual-delete: {mode: 'off'}\n");
        cluster.given(annotated(namespace()));
        cluster
    };
    let mut cluster = annotated_home();
    cluster.given_record(&record(6, "pending-upgrade", "alice"));
    assert_eq!(cluster.delete_object("alice", web()), refused());
    let mut cluster = annotated_home();
    cluster.given_record(&rec(6, "pending-upgrade").annotated("interlock.dev/holder", "alice"));
    assert_eq!(cluster.delete_object("alice", web()), Ok(()));
}

#[test]
fn a_failed_install_over_a_kept_history_may_be_cleaned_up() {
    for status in ["pending-install", "failed"] {
        let mut cluster = Cluster::with_policy(PROTECTED);
        cluster.given_record(&record(4, "superseded", ""));
        cluster.given_record(&record(5, "uninstalled", ""));
        let first = record(6, status, "alice");
        cluster.given_record(&first);
        assert_eq!(cluster.update("alice", &first, &first.to("uninstalling")), Ok(()), "{status}");
        assert_eq!(cluster.delete_object("alice", web()), Ok(()), "{status}");
    }
}

#[test]
fn a_person_does_not_hand_an_object_of_a_protected_release_to_the_garbage_collector() {
    let edited = |user: &str, field: &str, value: Value| {
        let policy = format!("{PROTECTED}  manual-edit: {{mode: 'off'}}\n");
        let mut object = web();
        object["metadata"][field] = value;
        deployed(&policy).update_objects(user, web(), object)
    };
    let owner = || json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "1"}]);
    assert_eq!(edited("alice", "ownerReferences", owner()), refused());
    assert_eq!(edited("alice", "ownerReferences", json!([])), Ok(()));
    // Cluster API and other operators adopt objects.
    assert_eq!(edited(CI, "ownerReferences", owner()), Ok(()));
    // Owner references that the chart declares are allowed.
    let manifest =
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  ownerReferences: [{uid: '1'}]\n";
    let mut cluster = Cluster::with_policy(&format!("{PROTECTED}  manual-edit: {{mode: 'off'}}\n"));
    cluster.given_record(&Rec { manifest, ..rec(5, "deployed") });
    let mut object = web();
    object["metadata"]["ownerReferences"] = owner();
    assert_eq!(cluster.update_objects("alice", web(), object), Ok(()));
}

#[test]
fn metadata_is_judged_in_a_write_of_the_status_too() {
    let policy = format!("{PROTECTED}  manual-edit: {{mode: 'off'}}\n");
    let mut stripped = web();
    stripped["metadata"]["labels"] = json!({"app": "web"});
    assert_eq!(deployed(&policy).update_through("status", CI, web(), stripped), refused());
    let mut ready = web();
    ready["status"] = json!({"readyReplicas": 2});
    assert_eq!(deployed(&policy).update_through("status", CI, web(), ready), Ok(()));
    for sub_resource in ["status", "finalize"] {
        let mut cluster = deployed("rules: {}");
        let off = cluster.update_through(sub_resource, CI, annotated(namespace()), namespace());
        assert_eq!(off, refused(), "{sub_resource}");
        let kept = cluster.update_through(sub_resource, CI, annotated(namespace()), annotated(namespace()));
        assert_eq!(kept, Ok(()), "{sub_resource}");
    }
}

#[test]
fn a_failed_first_install_may_be_uninstalled() {
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
fn an_uninstall_that_nobody_admitted_deletes_no_objects() {
    // No stamp: nobody admitted this uninstall.
    let unseen = record(5, "uninstalling", "");
    let mut cluster = Cluster::with_policy(PROTECTED);
    cluster.given_record(&unseen);
    assert_eq!(cluster.delete_object(FLUX, web()), refused());
    assert_eq!(cluster.update(FLUX, &unseen, &unseen.to("uninstalled")), Ok(()), "nothing of it is left");
    // This uninstall was admitted: by an override, or before the release was protected.
    let begun = record(5, "uninstalling", "alice");
    let mut cluster = Cluster::with_policy(PROTECTED);
    cluster.given_record(&begun);
    assert_eq!(cluster.delete_object("alice", web()), Ok(()));
    assert_eq!(cluster.update("alice", &begun, &begun.to("uninstalled")), Ok(()));
    assert_eq!(cluster.delete("alice", &begun.to("uninstalled")), Ok(()));
}

#[test]
fn a_manager_may_not_delete_the_base_record() {
    let recorded = record(5, "deployed", FLUX);
    let older = record(4, "deployed", FLUX);
    for (policy, verdict) in [(PROTECTED, refused()), ("rules: {}", Ok(()))] {
        let mut cluster = Cluster::with_policy(policy);
        cluster.given_record(&older);
        cluster.given_record(&recorded);
        assert_eq!(cluster.delete(FLUX, &recorded), verdict, "{policy}");
        assert_eq!(cluster.delete(FLUX, &older), Ok(()), "{policy}");
    }
    let alices = record(5, "deployed", "alice");
    let mut cluster = Cluster::with_policy(PROTECTED);
    cluster.given_record(&alices);
    assert_eq!(cluster.delete("alice", &alices), Err(vec!["protected-release", "record-deletion"]));
}

pub(super) fn refused() -> Verdict {
    Err(vec!["protected-release"])
}

const ANNOTATION: &str = "interlock.dev/protected";

pub(super) fn annotated(mut object: Value) -> Value {
    object["metadata"]["annotations"][ANNOTATION] = "true".into();
    object
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {}, "annotations": {}}})
}

#[test]
fn the_namespace_of_a_protected_release_cannot_be_deleted() {
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
    assert_eq!(
        cluster.update_objects(CI, annotated(namespace()), namespace()),
        refused(),
        "a pipeline would delete next"
    );
    let message = cluster.findings("alice", Some(annotated(namespace())), Some(namespace())).concat();
    assert!(message.contains(": managers and controllers of the policy remove it"), "{message}");
    assert_eq!(cluster.update_objects(FLUX, annotated(namespace()), namespace()), Ok(()), "as Git has it");
    // The namespace is now stored without the annotation.
    assert_eq!(cluster.delete_object("alice", namespace()), Ok(()));
}

/// HelmRelease apps/web, which has installed release shop/web.
pub(super) fn helm_release(spec: Value) -> Value {
    let snapshot = json!({"name": "web", "namespace": "shop", "status": "deployed", "chartName": "nginx"});
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {}}, "spec": spec,
        "status": {"storageNamespace": "shop", "history": [snapshot]},
    })
}

#[test]
fn only_a_suspended_helm_release_may_be_deleted() {
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
    let message = deployed(PROTECTED).findings("alice", Some(awake.clone()), None).concat();
    assert!(message.contains("suspend it first (`kubectl patch helmrelease web -n shop"), "{message}");
    let mut cluster = deployed("rules: {}");
    cluster.given(annotated(namespace()));
    let message = cluster.findings("alice", Some(awake.clone()), None).concat();
    assert!(message.contains("the annotation interlock.dev/protected of Namespace shop protects it"), "{message}");
    assert_eq!(cluster.delete_object("alice", awake), refused(), "its home is annotated");
}

#[test]
fn an_annotated_helm_release_protects_its_release() {
    let cluster = |helm_release: Value| {
        let mut cluster = deployed("rules:\n  manual-delete: {mode: 'off'}\n");
        cluster.given(helm_release);
        cluster
    };
    let installed = || annotated(helm_release(json!({})));
    let mut never = installed();
    never["status"] = json!({});
    let mut elsewhere = installed();
    elsewhere["spec"]["kubeConfig"] = json!({"secretRef": {"name": "prod"}});
    let record = record(5, "deployed", "");
    for (helm_release, verdict) in
        [(installed(), refused()), (helm_release(json!({})), Ok(())), (never, Ok(())), (elsewhere, Ok(()))]
    {
        let shown = helm_release.to_string();
        assert_eq!(cluster(helm_release.clone()).delete_object(CI, web()), verdict, "{shown}");
        let start = cluster(helm_release.clone()).update(CI, &record, &record.to("uninstalling"));
        assert_eq!(start, verdict, "{shown}");
    }
    // The HelmRelease is deleted with its namespace.
    assert_eq!(cluster(installed()).delete_object("alice", namespace()), refused());
    // Also if Flux would keep the release of a suspended one: its records and objects are in the namespace. And if the status has
    // forgotten the release, but not the records.
    let mut asleep = installed();
    asleep["spec"]["suspend"] = true.into();
    let mut cleared = installed();
    cleared["status"] = json!({});
    for helm_release in [asleep, cleared] {
        assert_eq!(cluster(helm_release.clone()).delete_object("alice", namespace()), refused(), "{helm_release}");
        let mut empty = Cluster::new();
        empty.given(helm_release.clone());
        let goes = helm_release["status"] == json!({});
        assert_eq!(empty.delete_object("alice", namespace()).is_ok(), goes, "{helm_release}");
    }
}

/// The namespace has only the objects. Records and declaration are elsewhere.
#[test]
fn a_namespace_stays_for_what_is_declared_elsewhere() {
    let elsewhere = |object: Value| {
        let mut object = object;
        object["metadata"]["namespace"] = "apps".into();
        object
    };
    let records = || elsewhere(record(5, "deployed", FLUX).annotated(TARGET_NAMESPACE, "shop").object());
    let declared = || {
        let mut object = elsewhere(helm_release(json!({"targetNamespace": "shop", "storageNamespace": "apps"})));
        object["status"]["storageNamespace"] = "apps".into();
        object
    };
    for (helm_release, verdict) in [(annotated(declared()), refused()), (declared(), Ok(()))] {
        let mut cluster = Cluster::new();
        cluster.given(records());
        cluster.given(helm_release);
        assert_eq!(cluster.delete_object("alice", namespace()), verdict);
    }
    // Nobody proves a release by naming the namespace in a record of their own.
    let mut claimed = Cluster::new();
    claimed.given(elsewhere(record(5, "deployed", "mallory").annotated(TARGET_NAMESPACE, "shop").object()));
    claimed.given(annotated(declared()));
    assert_eq!(claimed.delete_object("alice", namespace()), Ok(()));
}

#[test]
fn an_acknowledgement_does_not_allow_a_protected_retarget() {
    let moved = |mut object: Value| {
        object["spec"] = json!({"releaseName": "site"});
        object["metadata"]["annotations"]["interlock.dev/allow-retarget"] = "shop/site".into();
        object
    };
    let old = helm_release(json!({}));
    assert_eq!(deployed(PROTECTED).update_objects("alice", old.clone(), moved(old.clone())), refused());
    assert_eq!(deployed("rules: {}").update_objects("alice", old.clone(), moved(old.clone())), Ok(()));
    let unasked = helm_release(json!({"releaseName": "site"}));
    let both = Err(vec!["protected-release", "retarget"]);
    assert_eq!(deployed(PROTECTED).update_objects("alice", old.clone(), unasked), both);
    let values = helm_release(json!({"values": {"replicas": 3}}));
    assert_eq!(deployed(PROTECTED).update_objects("alice", old.clone(), values), Ok(()));
    let (marked, plain) = (annotated(old.clone()), old);
    for (user, verdict) in [("alice", refused()), (CI, refused()), (FLUX, Ok(()))] {
        assert_eq!(deployed("rules: {}").update_objects(user, marked.clone(), plain.clone()), verdict, "{user}");
    }
}

fn extension() -> Value {
    json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": "web", "annotations": {}}, "spec": {"namespace": "shop"},
    })
}

/// The record of an extension in OLM's own namespace.
fn olm_record(status: &'static str, target_namespace: Option<&str>) -> Value {
    let record = record(5, status, OPERATOR);
    let record = target_namespace
        .into_iter()
        .fold(record, |record, target| record.annotated("interlock.dev/target-namespace", target));
    let mut object = index(&record, &[]);
    object["metadata"]["namespace"] = "olmv1-system".into();
    object
}

/// An object of the extension.
fn olm_object() -> Value {
    let mut object = web();
    object["metadata"]["labels"]["olm.operatorframework.io/owner-name"] = "web".into();
    object
}

#[test]
fn the_home_of_an_extension_is_the_namespace_of_its_objects() {
    let policy = |namespace: &str| {
        format!("protected: {{namespaces: [{namespace}]}}\nrules:\n  manual-delete: {{mode: 'off'}}\n")
    };
    for stamp in [Some("shop"), None] {
        let cluster = |namespace: &str| {
            let mut cluster = Cluster::with_policy(&policy(namespace));
            cluster.given(olm_record("deployed", stamp));
            cluster.given(extension());
            cluster
        };
        for (namespace, verdict) in [("shop", refused()), ("olmv1-system", Ok(()))] {
            let start = cluster(namespace).update_objects(
                OPERATOR,
                olm_record("deployed", stamp),
                olm_record("uninstalling", stamp),
            );
            assert_eq!(start, verdict, "{namespace} {stamp:?}");
        }
    }
    let cluster = |policy: &str| {
        let mut cluster = Cluster::with_policy(policy);
        cluster.given(olm_record("deployed", Some("shop")));
        cluster
    };
    assert_eq!(cluster(&policy("shop")).delete_object(CI, olm_object()), refused());
    assert_eq!(cluster(&policy("olmv1-system")).delete_object(CI, olm_object()), Ok(()));
    // The objects are deleted with the namespace, and the records with OLM's namespace.
    let mut olm = namespace();
    olm["metadata"]["name"] = "olmv1-system".into();
    for namespace in [namespace(), olm.clone()] {
        assert_eq!(cluster(&policy("shop")).delete_object("alice", namespace.clone()), refused(), "{namespace}");
    }
    assert_eq!(cluster(&policy("other")).delete_object("alice", namespace()), Ok(()));
    let annotated_home = |extension: Value| {
        let mut cluster = cluster("rules: {}");
        cluster.given(annotated(namespace()));
        cluster.delete_object("alice", extension)
    };
    assert_eq!(annotated_home(extension()), refused());
}

#[test]
fn a_strangers_record_does_not_protect_a_namespace() {
    let mut strangers = olm_record("deployed", Some("shop"));
    strangers["metadata"]["namespace"] = "evil".into();
    strangers["metadata"]["annotations"]["interlock.dev/holder"] = "mallory".into();
    let mut cluster = Cluster::with_policy(PROTECTED);
    cluster.given(strangers);
    assert_eq!(cluster.delete_object("alice", namespace()), Ok(()));
}

#[test]
fn the_records_that_an_extension_left_behind_protect_nothing() {
    let cluster = |status: Value| {
        let mut cluster = Cluster::with_policy(PROTECTED);
        cluster.given(olm_record("deployed", Some("shop")));
        let mut extension = extension();
        extension["status"] = status;
        cluster.given(extension);
        cluster
    };
    assert_eq!(cluster(json!({})).delete_object(CI, olm_object()), refused());
    let migrated = json!({"activeRevisions": [{"name": "web-1"}]});
    assert_eq!(cluster(migrated).delete_object(CI, olm_object()), Ok(()));
}

/// OLM installs it as revisions: no record names the namespace.
#[test]
fn a_namespace_stays_for_the_revisions_of_an_extension() {
    let mut revised = extension();
    revised["status"]["activeRevisions"] = json!([{"name": "web-1"}]);
    let mut elsewhere = annotated(revised.clone());
    elsewhere["spec"]["namespace"] = "bar".into();
    for (policy, extension, verdict) in [
        ("rules: {}", annotated(revised.clone()), refused()),
        ("protected: {namespaces: [shop]}", revised.clone(), refused()),
        ("rules: {}", revised, Ok(())),
        ("rules: {}", elsewhere, Ok(())),
        ("rules: {}", annotated(extension()), Ok(())),
    ] {
        let mut cluster = Cluster::with_policy(policy);
        cluster.given(extension.clone());
        assert_eq!(cluster.delete_object("alice", namespace()), verdict, "{policy}: {extension}");
    }
}

#[test]
fn the_extension_of_a_protected_release_cannot_be_deleted() {
    let extension = extension();
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

#[test]
fn what_others_are_made_from_is_protected_by_its_annotation() {
    let object = |group: &str, kind: &str, annotations: &Value, spec: &Value| {
        json!({
            "apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec,
            "metadata": {"name": "shops", "namespace": "shop", "annotations": annotations},
        })
    };
    let (annotated, none) = (json!({crate::object::PROTECTED: "true"}), json!({}));
    for (group, kind) in [
        ("argoproj.io", "ApplicationSet"),
        ("argoproj.io", "AppProject"),
        ("source.toolkit.fluxcd.io", "GitRepository"),
        ("source.toolkit.fluxcd.io", "OCIRepository"),
    ] {
        let stored = || object(group, kind, &annotated, &none);
        assert_eq!(Cluster::new().delete_object("alice", stored()), Err(vec!["protected-release"]), "{kind}");
        let bare = || object(group, kind, &none, &none);
        assert_eq!(Cluster::new().delete_object("alice", bare()), Ok(()), "{kind}");
        let unprotect = |user: &str| Cluster::new().update_objects(user, stored(), bare());
        assert_eq!(unprotect("alice"), Err(vec!["protected-release"]), "{kind}");
        assert_eq!(unprotect("system:serviceaccount:flux-system:kustomize-controller"), Ok(()), "{kind}");
    }
    // What an ApplicationSet generates is protected by its template, or by its destination.
    let set = |spec: Value| object("argoproj.io", "ApplicationSet", &none, &spec);
    let delete =
        |spec: Value| Cluster::with_policy("protected: {namespaces: [prod]}").delete_object("alice", set(spec));
    let template = json!({"metadata": {"annotations": annotated}});
    let to = |namespace: &str| json!({"spec": {"destination": {"namespace": namespace}}});
    assert_eq!(delete(json!({"template": template})), Err(vec!["protected-release"]));
    assert_eq!(delete(json!({"template": to("prod")})), Err(vec!["protected-release"]));
    assert_eq!(delete(json!({"template": to("{{.path.basename}}")})), Ok(()));
    let preserving = json!({"preserveResourcesOnDeletion": true});
    assert_eq!(delete(json!({"template": template, "syncPolicy": preserving})), Ok(()), "the objects stay");
}

#[test]
fn the_marks_of_other_guards_count_if_the_policy_honours_them() {
    const HONOURED: &str = "rules:\n  manual-delete: {mode: 'off'}\n  protected-release: {honourPeerMarks: true}\n";
    let marked = |mut object: Value, map: &str, key: &str, value: &str| {
        object["metadata"][map][key] = value.into();
        object
    };
    let delete = |policy: &str, user: &str, mark: (&str, &str, &str)| {
        deployed(policy).delete_object(user, marked(web(), mark.0, mark.1, mark.2))
    };
    let kruise = ("labels", "policy.kruise.io/delete-protection", "Always");
    let gardener = |value| ("annotations", "confirmation.gardener.cloud/deletion", value);
    let helm = |value| ("annotations", "helm.sh/resource-policy", value);
    for mark in [kruise, gardener("false"), helm("keep")] {
        assert_eq!(delete(HONOURED, "alice", mark), refused(), "{mark:?}");
        assert_eq!(delete(HONOURED, CI, mark), refused(), "{mark:?}");
        assert_eq!(delete(HONOURED, COLLECTOR, mark), Ok(()), "{mark:?}");
        let unheeded = delete("rules:\n  manual-delete: {mode: 'off'}\n", "alice", mark);
        assert_eq!(unheeded, Ok(()), "{mark:?}");
    }
    for mark in [gardener("true"), helm("delete"), ("annotations", kruise.1, kruise.2)] {
        assert_eq!(delete(HONOURED, "alice", mark), Ok(()), "{mark:?}");
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "empty", "labels": {}}});
    let of_namespace = |value| {
        let object = marked(namespace.clone(), kruise.0, kruise.1, value);
        Cluster::with_policy(HONOURED).delete_cluster_scoped("alice", object)
    };
    assert_eq!(of_namespace("Always"), refused());
    assert_eq!(of_namespace("Never"), Ok(()));
}
