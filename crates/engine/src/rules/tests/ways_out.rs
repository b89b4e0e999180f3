//! Follows the printed way out of a refusal literally. It must end in a deployed release, or in no release.

use serde_json::json;

use super::deletion::deployment;
use super::scenario::{Cluster, Rec, rec};
use crate::owners::olm::rules::tests::index;

const STALE: i64 = 15 * 60;
const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
const FLEET: &str = "system:serviceaccount:cattle-fleet-system:fleet-agent";
const KLIPPER: &str = "system:serviceaccount:shop:helm-web";
const CI: &str = "system:serviceaccount:ci:deployer";
const OPERATOR: &str = "system:serviceaccount:olmv1-system:operator-controller-controller-manager";

/// Alice's operation over a record, or over none.
fn dead(policy: &str, below: Option<&'static str>, status: &'static str) -> Cluster {
    let mut cluster = Cluster::with_policy(policy);
    cluster.given(deployment(10, 10, "True"));
    if let Some(below) = below {
        cluster.given_record(&rec(5, below));
    }
    let record = rec(6, status);
    if status == "uninstalling" {
        cluster.given_record(&rec(6, "deployed"));
        assert_eq!(cluster.update("alice", &rec(6, "deployed"), &record), Ok(()));
    } else {
        assert_eq!(cluster.create("alice", &record), Ok(()));
    }
    cluster
}

/// Follows the way out of a refused upgrade: does as this user what the text says, which must be admitted.
fn follow(dead: impl Fn() -> Cluster, user: &str, text: &str, (below, status): (Option<&'static str>, &'static str)) {
    let (record, mut cluster) = (rec(6, status), dead());
    if text.contains("Roll back with `helm rollback web 5 -n shop`") {
        assert_eq!(cluster.create(user, &rec(7, "pending-rollback")), Ok(()), "{text}");
        assert_eq!(cluster.update(user, &rec(7, "pending-rollback"), &rec(7, "deployed")), Ok(()), "{text}");
        return;
    }
    if text.contains("Run `helm uninstall web -n shop`, ") {
        let again = Rec { hooks_run: 1, ..record.to("uninstalling") };
        assert_eq!(cluster.update(user, &record, &again), Ok(()), "{text}");
        for record in below.map(|below| rec(5, below)).into_iter().chain([again]) {
            assert_eq!(cluster.delete(user, &record), Ok(()), "{text}");
        }
        return;
    }
    assert!(text.contains("Run `interlock unstick shop/web`, ") && text.contains("Then run the "), "{text}");
    assert_eq!(cluster.delete(user, &record), Ok(()), "{text}");
    assert_eq!(cluster.create(user, &rec(6, "pending-upgrade")), Ok(()), "{text}");
    assert_eq!(cluster.update(user, &rec(5, "deployed"), &rec(5, "superseded")), Ok(()), "{text}");
    assert_eq!(cluster.update(user, &rec(6, "pending-upgrade"), &rec(6, "deployed")), Ok(()), "{text}");
}

#[test]
fn the_way_out_of_a_refused_upgrade_works_for_every_user() {
    for policy in ["", "rules:\n  pending-recovery: {rollForwardOnly: true}\n"] {
        for (below, status) in [
            (Some("deployed"), "pending-upgrade"),
            (Some("superseded"), "pending-upgrade"),
            (Some("failed"), "pending-upgrade"),
            (Some("deployed"), "pending-rollback"),
            (None, "pending-install"),
            (None, "uninstalling"),
            (Some("superseded"), "uninstalling"),
        ] {
            for user in ["alice", "bob", CI, FLUX, FLEET, KLIPPER] {
                let stale = || {
                    let mut cluster = dead(policy, below, status);
                    cluster.later(STALE);
                    cluster
                };
                let text = stale().refusal("CREATE", user, &rec(7, "pending-upgrade"));
                assert!(text.contains("[concurrent-operation]") && text.contains("counts as stuck"), "{text}");
                follow(stale, user, &text, (below, status));
            }
        }
    }
}

#[test]
fn the_holder_may_delete_a_stuck_record_despite_its_workloads() {
    let mut cluster =
        dead("rules:\n  pending-recovery: {rollForwardOnly: true}\n", Some("deployed"), "pending-upgrade");
    cluster.given(deployment(10, 1, "False"));
    cluster.later(STALE);
    let record = rec(6, "pending-upgrade");
    let text = cluster.refusal("DELETE", "bob", &record);
    assert!(text.contains("alice may delete it as soon as it counts as stuck"), "{text}");
    assert_eq!(cluster.delete("alice", &record), Ok(()));
    assert_eq!(cluster.create("bob", &record), Ok(()));
}

#[test]
fn a_request_is_admitted_after_the_wait_that_its_refusal_names() {
    type Try = fn(&mut Cluster, &str) -> Option<String>;
    let tries: [(&str, Try); 4] = [
        ("pending-upgrade", |cluster, user| text(cluster, "UPDATE", user, "pending-upgrade", Some("failed"))),
        ("pending-upgrade", |cluster, user| text(cluster, "UPDATE", user, "pending-upgrade", Some("uninstalling"))),
        ("uninstalling", |cluster, user| text(cluster, "UPDATE", user, "uninstalling", Some("uninstalled"))),
        ("uninstalling", |cluster, user| text(cluster, "DELETE", user, "uninstalling", None)),
    ];
    for (status, attempt) in tries {
        for user in ["bob", CI, FLUX, FLEET, KLIPPER] {
            let mut cluster = dead("", Some("superseded"), status);
            let refusal = attempt(&mut cluster, user).unwrap();
            assert!(refusal.contains("anyone can") && refusal.contains("15 min after it started"), "{refusal}");
            cluster.later(STALE);
            assert_eq!(attempt(&mut cluster, user), None, "{status} {user}");
        }
    }
}

/// The refusal of a write of revision 6; `None` if it is admitted.
fn text(
    cluster: &mut Cluster,
    operation: &str,
    user: &str,
    from: &'static str,
    to: Option<&'static str>,
) -> Option<String> {
    let record = rec(6, from);
    let found = match to {
        Some(to) => cluster.messages_for(user, record.object(), record.to(to).object()),
        None if cluster.delete(user, &record).is_ok() => String::new(),
        None => cluster.refusal(operation, user, &record),
    };
    (!found.is_empty()).then_some(found)
}

#[test]
fn the_refusal_of_a_deletion_does_not_send_people_back_to_it() {
    let superseded = rec(5, "superseded").annotated("interlock.dev/holder", "alice");
    let mut cluster = Cluster::new();
    cluster.given_record(&superseded);
    let text = cluster.refusal("DELETE", "bob", &superseded);
    assert!(
        text.contains("`helm upgrade web CHART -n shop`. To remove it, run `helm uninstall web -n shop`"),
        "{text}"
    );
    assert!(!text.contains("delete one superseded"), "{text}");
    // An uninstall may still need it.
    let mut cluster = dead("", Some("superseded"), "uninstalling");
    let text = cluster.refusal("DELETE", "bob", &rec(5, "superseded"));
    assert!(text.contains("Wait until that operation ends.") && !text.contains("delete one"), "{text}");
}

#[test]
fn messages_to_olm_do_not_mention_helm() {
    let pending = rec(6, "pending-upgrade").annotated("interlock.dev/holder", OPERATOR);
    let mut cluster = Cluster::new();
    cluster.given(index(&pending, &[]));
    cluster.later(STALE);
    let refused = cluster.findings(OPERATOR, None, Some(index(&rec(7, "pending-upgrade"), &[]))).concat();
    assert!(refused.contains("let OLM try again") && refused.contains("`interlock unstick shop/web`"), "{refused}");
    let mut deployed = index(&rec(6, "deployed"), &[]);
    deployed["metadata"]["annotations"] = json!({"interlock.dev/holder": "alice"});
    let refusals = [refused, Cluster::new().findings("bob", Some(deployed), None).concat()];
    for refused in refusals {
        assert!(!refused.contains("`helm") && !refused.contains("oll back"), "{refused}");
    }
    assert_eq!(cluster.delete_object("bob", index(&pending, &[])), Ok(()));
}
