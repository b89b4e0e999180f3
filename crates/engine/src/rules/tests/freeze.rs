//! Operations that start in a freeze are refused in every form. Running operations continue.

use serde_json::{Value, json};

use super::objects::{record, web};
use super::scenario::{Cluster, Rec, Verdict, rec};
use crate::owners::olm::rules::tests::index;

const CI: &str = "system:serviceaccount:ci:deployer";
const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
const HOUR: i64 = 3_600;

/// A freeze from one to two hours after the start of the scenario. Alice holds the first revision, which is older.
fn cluster() -> Cluster {
    let freeze = "name: sale, reason: the sale, timeZone: Europe/Berlin, from: 2026-11-21T12:00, to: 2026-11-21T13:00, \
                  namespaces: [shop], exempt: {users: [bob]}";
    let mut cluster = Cluster::with_policy(&format!("freezes: [{{{freeze}}}]\n"));
    cluster.given_record(&record(5, "deployed", "alice"));
    cluster.given(web());
    cluster
}

fn frozen() -> Cluster {
    let mut cluster = cluster();
    cluster.later(HOUR);
    cluster
}

fn refused() -> Verdict {
    Err(vec!["freeze"])
}

#[test]
fn no_operation_starts_in_a_freeze() {
    let (upgrade, rollback) = (rec(6, "pending-upgrade"), rec(6, "pending-rollback"));
    let deployed = record(5, "deployed", "alice");
    for user in ["alice", CI, FLUX] {
        assert_eq!(frozen().create(user, &upgrade), refused(), "{user}");
        assert_eq!(frozen().create(user, &rollback), refused(), "{user}");
        assert_eq!(frozen().update(user, &deployed, &deployed.to("uninstalling")), refused(), "{user}");
        assert_eq!(cluster().create(user, &upgrade), Ok(()), "{user}, before");
        let mut after = frozen();
        after.later(HOUR);
        assert_eq!(after.create(user, &upgrade), Ok(()), "{user}, after");
    }
    assert_eq!(frozen().create("bob", &upgrade), Ok(()), "exempt");
    let text = frozen().refusal("CREATE", "alice", &upgrade);
    let wanted = "Cannot start the upgrade of release shop/web, revision 6: the freeze sale is in force until 2026-11-21 13:00 \
                  Europe/Berlin (the sale). Wait until the freeze ends";
    assert!(text.starts_with(wanted), "{text}");
}

#[test]
fn an_operation_that_started_before_a_freeze_may_finish() {
    let (deployed, upgrade) = (record(5, "deployed", "alice"), rec(6, "pending-upgrade"));
    let started = || {
        let mut cluster = cluster();
        cluster.later(HOUR - 5);
        assert_eq!(cluster.create(CI, &upgrade), Ok(()));
        cluster.later(10);
        cluster
    };
    let mut succeeds = started();
    assert_eq!(succeeds.update(CI, &deployed, &deployed.to("superseded")), Ok(()));
    assert_eq!(succeeds.update(CI, &upgrade, &upgrade.to("deployed")), Ok(()));
    // `--rollback-on-failure`: the rollback follows immediately.
    let mut fails = started();
    assert_eq!(fails.update(CI, &upgrade, &upgrade.to("failed")), Ok(()));
    assert_eq!(fails.create(CI, &rec(7, "pending-upgrade")), refused(), "the next attempt is a start");
    assert_eq!(fails.create("alice", &rec(7, "pending-rollback")), refused(), "of another user");
    assert_eq!(fails.create(CI, &rec(7, "pending-rollback")), Ok(()));
    let mut later = started();
    assert_eq!(later.update(CI, &upgrade, &upgrade.to("failed")), Ok(()));
    later.later(61);
    assert_eq!(later.create(CI, &rec(7, "pending-rollback")), refused(), "a rollback of its own");
}

#[test]
fn a_first_install_that_fails_is_cleaned_up() {
    let install = record(1, "pending-install", "");
    let mut cluster = Cluster::with_policy(
        "freezes: [{name: a, reason: r, timeZone: UTC, from: 2026-11-21T10:01, to: 2026-11-21T12:00}]\n",
    );
    assert_eq!(cluster.create("alice", &install), Ok(()));
    cluster.given(web());
    cluster.later(120);
    // Somebody else's uninstall is a start, although nothing was ever deployed.
    let foreign = cluster.update("carol", &install, &install.to("uninstalling"));
    assert!(foreign.as_ref().is_err_and(|rules| rules.contains(&"freeze")), "{foreign:?}");
    // The clean-up deletes the objects that the install created, even before it updates the record.
    assert_eq!(cluster.delete_object("alice", web()), Ok(()));
    let uninstalling = install.to("uninstalling");
    assert_eq!(cluster.update("alice", &install, &uninstalling), Ok(()));
    // A second run finishes the uninstall.
    assert_eq!(cluster.update("alice", &uninstalling, &Rec { hooks_run: 1, ..uninstalling.clone() }), Ok(()));
    assert_eq!(cluster.delete("alice", &uninstalling), Ok(()));
}

/// An upgrade by this user that starts a minute before the freeze. Revisions 5 and 6 declare the same objects.
fn upgraded(user: &str) -> (Cluster, Rec) {
    let (mut cluster, upgrade) = (cluster(), record(6, "pending-upgrade", ""));
    cluster.later(HOUR - 60);
    assert_eq!(cluster.create(user, &upgrade), Ok(()));
    cluster.later(90);
    (cluster, upgrade)
}

#[test]
fn an_uninstall_is_no_remedy_if_a_revision_was_deployed() {
    for user in ["alice", CI, FLUX] {
        let (mut running, upgrade) = upgraded(user);
        assert_eq!(running.update(user, &upgrade, &upgrade.to("uninstalling")), refused(), "{user}, its own");
        assert_eq!(running.delete_object(user, web()), refused(), "{user}, its own");
        let (mut failed, upgrade) = upgraded(user);
        let record = upgrade.to("failed");
        assert_eq!(failed.update(user, &upgrade, &record), Ok(()));
        assert_eq!(failed.update(user, &record, &record.to("uninstalling")), refused(), "{user}, failed");
        assert_eq!(failed.delete_object(user, web()), refused(), "{user}, failed");
        // `--cleanup-on-fail` deletes only the objects that the upgrade created.
        let mut made = web();
        made["metadata"]["name"] = "made".into();
        assert_eq!(failed.delete_object(user, made), Ok(()), "{user}, failed");
        assert_eq!(failed.create(user, &rec(7, "pending-rollback")), Ok(()), "{user}, failed");
        // A user who may end the operation may still not uninstall the release.
        let (mut stuck, upgrade) = upgraded(CI);
        stuck.later(1_000);
        assert_eq!(stuck.update(user, &upgrade, &upgrade.to("uninstalling")), refused(), "{user}, stuck");
        assert!(stuck.delete_object(user, web()).unwrap_err().contains(&"freeze"), "{user}, stuck");
    }
}

#[test]
fn an_uninstall_from_before_a_freeze_may_be_finished() {
    let mut cluster = cluster();
    let deployed = record(5, "deployed", "alice");
    let (begun, again) = (deployed.to("uninstalling"), Rec { hooks_run: 1, ..deployed.to("uninstalling") });
    assert_eq!(cluster.update(CI, &deployed, &begun), Ok(()));
    cluster.later(HOUR);
    assert_eq!(cluster.update("alice", &begun, &again), Ok(()), "it is stuck");
    assert_eq!(cluster.delete_object("alice", web()), Ok(()));
    assert_eq!(cluster.delete("alice", &again), Ok(()));
}

#[test]
fn a_namespace_freeze_covers_cluster_scoped_objects() {
    const ROLE: &str =
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\nrules: []\n";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [],
        "metadata": {
            "name": "web", "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
        },
    });
    let freeze = "name: own, reason: r, timeZone: UTC, from: 2026-11-21T10:00, to: 2026-11-21T12:00";
    let deleted = |freeze: String| {
        let mut cluster = Cluster::with_policies(
            "rules: {manual-delete: {cases: {only: []}}}\n",
            Some(&format!("freezes: [{{{freeze}}}]")),
        );
        cluster.given_record(&Rec { manifest: ROLE, ..record(5, "deployed", "alice") });
        [CI, FLUX].map(|user| cluster.delete_cluster_scoped(user, role.clone()))
    };
    assert_eq!(deleted(freeze.to_owned()), [Err(vec!["freeze", "manual-delete"]), refused()]);
    assert_eq!(deleted(format!("{freeze}, releases: [other]")), [Err(vec!["manual-delete"]), Ok(())]);
}

#[test]
fn an_extension_is_frozen_with_the_namespace_of_its_objects() {
    const OPERATOR: &str = "system:serviceaccount:olmv1-system:operator-controller-controller-manager";
    let policy = |namespace: &str| {
        format!(
            "freezes: [{{name: a, reason: r, timeZone: UTC, from: 2026-11-21T09:00, to: 2026-11-21T12:00, \
             namespaces: [{namespace}]}}]\nrules: {{}}\n"
        )
    };
    let mut upgrade = rec(6, "pending-upgrade");
    let mut body = upgrade.body();
    body["namespace"] = "apps".into();
    upgrade.payload = Some(upgrade.encoded(&body));
    // The records of both releases are in namespace shop.
    let by_olm = |namespace: &str, index: Value| {
        let mut cluster = Cluster::with_policy(&policy(namespace));
        cluster.given(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "web"}, "spec": {"namespace": "apps"},
        }));
        cluster.create_object(OPERATOR, index).err().is_some_and(|rules| rules.contains(&"freeze"))
    };
    assert!(by_olm("apps", index(&upgrade, &[])) && !by_olm("shop", index(&upgrade, &[])));
    // The rest of the record, with the namespace, is in another Secret.
    assert!(by_olm("apps", index(&upgrade, &["rest"])) && !by_olm("shop", index(&upgrade, &["rest"])));
    assert_eq!(Cluster::with_policy(&policy("apps")).create(CI, &upgrade), Ok(()));
    assert_eq!(Cluster::with_policy(&policy("shop")).create(CI, &upgrade), refused());
}

#[test]
fn flux_may_remedy_its_own_failure_at_any_time() {
    let upgrade = rec(6, "pending-upgrade");
    let mut cluster = cluster();
    assert_eq!(cluster.create(FLUX, &upgrade), Ok(()));
    assert_eq!(cluster.update(FLUX, &upgrade, &upgrade.to("failed")), Ok(()));
    cluster.later(HOUR + 600);
    assert_eq!(cluster.create(FLUX, &rec(7, "pending-upgrade")), refused());
    assert_eq!(cluster.create(FLUX, &rec(7, "pending-rollback")), Ok(()));
}

#[test]
fn the_deletions_of_an_uninstall_that_was_refused_are_refused() {
    // `manual-delete` only audits service accounts, and does not apply to managers.
    assert_eq!(frozen().delete_object(CI, web()), Err(vec!["freeze", "manual-delete"]));
    assert_eq!(frozen().delete_object(FLUX, web()), refused());
    assert_eq!(frozen().delete_object("alice", web()), Err(vec!["freeze", "manual-delete"]));
    assert_eq!(frozen().delete_object("bob", web()), Err(vec!["manual-delete"]), "exempt from the freeze alone");
    assert_eq!(frozen().delete_object("system:serviceaccount:kube-system:generic-garbage-collector", web()), Ok(()));
    // Deleting the record instead is refused too.
    assert_eq!(frozen().delete(CI, &record(5, "deployed", "alice")), Err(vec!["record-deletion"]));
    // If a user may start an uninstall, its deletions are allowed too.
    let deployed = record(5, "deployed", "alice");
    let mut exempt = frozen();
    assert_eq!(exempt.update("bob", &deployed, &deployed.to("uninstalling")), Ok(()));
    assert_eq!(exempt.delete_object("bob", web()), Ok(()));
}

#[test]
fn operations_start_only_in_a_window_that_allows_them() {
    let mut cluster = Cluster::with_policy(
        "freezes: [{name: hours, reason: office hours, timeZone: UTC, effect: allowOnly, weekdays: [monday], from: \"09:00\", \
         to: \"17:00\", releases: [\"w*\"]}]\n",
    );
    cluster.given_record(&rec(5, "deployed"));
    let upgrade = rec(6, "pending-upgrade");
    let text = cluster.refusal("CREATE", "alice", &upgrade);
    assert!(text.contains("the freeze hours is in force until 2026-11-23 09:00 UTC (office hours)"), "{text}");
    cluster.later(47 * HOUR);
    assert_eq!(cluster.create("alice", &upgrade), Ok(()));
}

#[test]
fn a_deletion_in_a_freeze_is_reported_by_both_rules() {
    let text = frozen().findings("alice", Some(web()), None);
    assert!(
        text.iter().any(|text| text.contains("[freeze]")) && text.iter().any(|text| text.contains("[manual-delete]")),
        "{text:?}"
    );
}

/// What makes Flux uninstall a release, if a person does it. A controller that applies a whole stage must not stop.
#[test]
fn people_let_flux_uninstall_nothing_in_a_freeze() {
    let helm_release = |spec: Value| {
        let snapshot = json!({"name": "web", "namespace": "shop", "status": "deployed", "chartName": "web"});
        json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "web", "namespace": "shop"},
            "spec": spec, "status": {"storageNamespace": "shop", "history": [snapshot]},
        })
    };
    let (live, suspended) = (helm_release(json!({})), helm_release(json!({"suspend": true})));
    for (user, verdict) in [("alice", refused()), ("bob", Ok(())), (CI, Ok(())), (FLUX, Ok(()))] {
        let mut cluster = frozen();
        cluster.given(live.clone());
        assert_eq!(cluster.delete_object(user, live.clone()), verdict, "{user}");
    }
    let mut cluster = frozen();
    assert_eq!(cluster.delete_object("alice", suspended), Ok(()), "Flux keeps the release");
    let mut dying = live.clone();
    dying["metadata"]["deletionTimestamp"] = "2026-11-21T09:59:00Z".into();
    assert_eq!(cluster.delete_object("alice", dying), Ok(()));
    assert_eq!(cluster.update_objects("alice", live.clone(), helm_release(json!({"interval": "5m"}))), Ok(()));
    let retargeted = cluster.update_objects("alice", live.clone(), helm_release(json!({"releaseName": "other"})));
    assert_eq!(retargeted, Err(vec!["freeze", "retarget"]));
    let text = cluster.findings("alice", Some(live), None).concat();
    assert!(text.contains("Flux would uninstall release shop/web: the freeze sale is in force until"), "{text}");
}
