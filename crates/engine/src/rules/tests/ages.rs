//! Ways out of an operation in flight, before and after it counts as stuck.

use super::scenario::{Cluster, rec};

const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
const STALE: i64 = 15 * 60;

/// Alice's upgrade to revision 6, over a deployed revision 5, has been running for this many seconds.
fn running(policy: &str, seconds: i64) -> Cluster {
    let mut cluster = Cluster::with_policy(policy);
    cluster.given_record(&rec(5, "deployed"));
    assert_eq!(cluster.create("alice", &rec(6, "pending-upgrade")), Ok(()));
    cluster.later(seconds);
    cluster
}

fn recovery(settings: &str) -> String {
    format!("rules:\n  pending-recovery: {{{settings}}}\n")
}

#[test]
fn a_rollback_waits_until_the_operation_is_stale() {
    let rollback = rec(7, "pending-rollback");
    assert_eq!(running("", STALE - 1).create("bob", &rollback), Err(vec!["pending-recovery"]));
    assert_eq!(running("", STALE - 1).create("alice", &rollback), Err(vec!["pending-recovery"]), "its holder too");
    assert_eq!(running("", STALE).create("bob", &rollback), Ok(()));
}

#[test]
fn the_policy_says_when_a_rollback_is_open() {
    let rollback = rec(7, "pending-rollback");
    for (settings, seconds, open) in [
        ("staleAfter: 30s", 29, false),
        ("staleAfter: 30s", 30, true),
        ("rollback: always", 1, true),
        ("rollback: never", STALE * 10, false),
        ("rollForwardOnly: true", STALE * 10, false),
        ("rollForwardOnly: true, rollback: always", STALE, false),
    ] {
        let verdict = running(&recovery(settings), seconds).create("bob", &rollback);
        assert_eq!(verdict.is_ok(), open, "{settings} after {seconds} s: {verdict:?}");
    }
}

#[test]
fn roll_forward_only_applies_to_people_and_not_to_managers() {
    for (policy, user, open) in
        [("", "alice", true), ("rollForwardOnly: true", "alice", false), ("rollForwardOnly: true", FLUX, true)]
    {
        let policy = if policy.is_empty() { String::new() } else { recovery(policy) };
        let mut cluster = running(&policy, 10);
        assert_eq!(cluster.update("alice", &rec(6, "pending-upgrade"), &rec(6, "failed")), Ok(()));
        let verdict = cluster.create(user, &rec(7, "pending-rollback"));
        assert_eq!(verdict.is_ok(), open, "{policy} {user}: {verdict:?}");
    }
}

#[test]
fn an_automatic_rollback_follows_its_failure_at_once() {
    let mut cluster = running("", 300);
    assert_eq!(cluster.update("alice", &rec(6, "pending-upgrade"), &rec(6, "failed")), Ok(()));
    assert_eq!(cluster.create("alice", &rec(7, "pending-rollback")), Ok(()));
}

#[test]
fn unlock_needs_the_holder_a_fellow_manager_or_a_stale_record() {
    let (pending, failed) = (rec(6, "pending-upgrade"), rec(6, "failed"));
    assert_eq!(running("", 1).update("alice", &pending, &failed), Ok(()));
    assert_eq!(running("", 1).update(FLUX, &pending, &failed), Err(vec!["pending-recovery"]));
    assert_eq!(running("", STALE - 1).update("bob", &pending, &failed), Err(vec!["pending-recovery"]));

    let mut managed = Cluster::new();
    assert_eq!(managed.create(FLUX, &rec(6, "pending-upgrade")), Ok(()));
    managed.later(1);
    let other = "system:serviceaccount:flux-system:kustomize-controller";
    assert_eq!(managed.update("alice", &pending, &failed), Err(vec!["pending-recovery"]));
    assert_eq!(managed.update(other, &pending, &failed), Ok(()));
}

#[test]
fn a_lost_stamp_is_no_reason_to_refuse_an_unlock() {
    let mut cluster = Cluster::new();
    cluster.given_record(&rec(6, "pending-upgrade"));
    assert_eq!(cluster.update("bob", &rec(6, "pending-upgrade"), &rec(6, "failed")), Ok(()));
}

#[test]
fn the_age_of_an_uninstall_counts_from_its_start() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.create("alice", &rec(6, "pending-install")), Ok(()));
    assert_eq!(cluster.update("alice", &rec(6, "pending-install"), &rec(6, "deployed")), Ok(()));
    cluster.later(100 * STALE);
    assert_eq!(cluster.update("bob", &rec(6, "deployed"), &rec(6, "uninstalling")), Ok(()));
    cluster.later(60);
    assert_eq!(cluster.create("alice", &rec(7, "pending-rollback")), Err(vec!["pending-recovery"]));
    cluster.later(STALE);
    assert_eq!(cluster.create("alice", &rec(7, "pending-rollback")), Ok(()));
}

#[test]
fn an_upgrade_may_start_below_a_dead_uninstall() {
    // Flux uninstalls the release after a failed upgrade, and is killed.
    let uninstalling = |below: &'static str, seconds: i64| {
        let mut cluster = Cluster::new();
        cluster.given_record(&rec(5, below));
        cluster.given_record(&rec(6, "failed"));
        assert_eq!(cluster.update(FLUX, &rec(6, "failed"), &rec(6, "uninstalling")), Ok(()));
        cluster.later(seconds);
        cluster
    };
    let upgrade = rec(7, "pending-upgrade");
    assert_eq!(uninstalling("deployed", 1).create(FLUX, &upgrade), Ok(()), "its run before the restart is dead");
    assert_eq!(uninstalling("deployed", STALE - 1).create("bob", &upgrade), Err(vec!["concurrent-operation"]));
    assert_eq!(uninstalling("deployed", STALE).create("bob", &upgrade), Ok(()));
    // Helm only upgrades from a deployed revision.
    assert_eq!(uninstalling("superseded", STALE).create(FLUX, &upgrade), Err(vec!["concurrent-operation"]));
    let install = rec(7, "pending-install");
    assert_eq!(uninstalling("deployed", STALE).create(FLUX, &install), Err(vec!["concurrent-operation"]));
}

#[test]
fn a_refusal_names_the_holder_the_age_and_the_way_out() {
    let message = running("", 12).refusal("CREATE", "bob", &rec(7, "pending-rollback"));
    assert!(message.contains("release shop/web, revision 7"), "{message}");
    assert!(message.contains("pending-upgrade, revision 6, held by alice for 12 s"), "{message}");
    assert!(message.contains("you can roll back 15 min after it started"), "{message}");
}
