//! The values of stamps, and what they record about hooks.

use std::path::Path;

use serde_json::{Value, json};

use super::scenario::{Cluster, Rec, decided, rec, start, with_facts};
use crate::memory::Objects;
use crate::object::ObjectKey;
use crate::owners::HELM_RELEASES;
use crate::policy::{Policies, Policy};
use crate::release::Stamps;
use crate::release::stamps::{CHART, DRIVER, ENDED, HOLDER, HOOKS, INTERRUPTED, PIPELINE, PROTECTED_BY, STARTED};
use crate::review::Review;
use crate::stamp::{Expected, Phase, forged};

fn stamps(values: &[(&'static str, &str)]) -> Stamps {
    Stamps::of(|key| values.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned()))
}

/// The key of the forged stamp in a write.
fn forged_key(
    (must, phase): (&[(&'static str, &str)], Phase),
    before: &[(&'static str, &str)],
    sent: &[(&'static str, &str)],
) -> Option<&'static str> {
    let expected = Expected { stamps: stamps(must), phase };
    forged(&expected, &stamps(before), &stamps(sent), None, start()).map(|(key, _)| key)
}

#[test]
fn a_time_may_differ_by_two_minutes_of_clock_skew() {
    let must = [(STARTED, "2026-11-21T10:00:00Z")];
    for (sent, forged) in [
        ("2026-11-21T09:58:00Z", None),
        ("2026-11-21T10:02:00Z", None),
        ("2026-11-21T09:57:59Z", Some(STARTED)),
        ("2026-11-21T10:02:01Z", Some(STARTED)),
    ] {
        assert_eq!(forged_key((&must, Phase::Starts), &[], &[(STARTED, sent)]), forged, "{sent}");
    }
}

#[test]
fn only_an_existing_note_may_be_outdated() {
    let note = |note| [(INTERRUPTED, note)];
    assert_eq!(forged_key((&[], Phase::Keeps), &note("a-1@1"), &note("a-1@1")), None);
    assert_eq!(forged_key((&[], Phase::Keeps), &note("a-1@1"), &note("a-2@1")), Some(INTERRUPTED));
    assert_eq!(forged_key((&[], Phase::Keeps), &[], &note("a-1@1")), Some(INTERRUPTED));
    // The holder of the previous operation is not the holder of this one.
    let (alice, bob) = ([(HOLDER, "alice")], [(HOLDER, "bob")]);
    assert_eq!(forged_key((&alice, Phase::Starts), &bob, &bob), Some(HOLDER));
    assert_eq!(forged_key((&alice, Phase::Starts), &bob, &alice), None);
}

#[test]
fn an_operation_starts_with_no_stamp_of_an_end() {
    for (key, forged) in [
        (CHART, None),
        (PIPELINE, Some(PIPELINE)),
        (INTERRUPTED, Some(INTERRUPTED)),
        (ENDED, Some(ENDED)),
        (HOOKS, Some(HOOKS)),
    ] {
        assert_eq!(forged_key((&[], Phase::Starts), &[], &[(key, "x")]), forged, "{key}");
    }
    assert_eq!(forged_key((&[], Phase::Keeps), &[], &[(CHART, "x")]), Some(CHART));
}

/// The rules that refuse a write of a record while the mutating half is out of service.
fn unstamped(user: &str, old: Option<&Rec>, new: &Rec) -> Vec<&'static str> {
    unstamped_under(&Policies::from(Policy::shipped().unwrap()), user, old, new)
}

/// Like [`unstamped`], with other policies.
fn unstamped_under(policies: &Policies, user: &str, old: Option<&Rec>, new: &Rec) -> Vec<&'static str> {
    unstamped_among(&Objects::new(1 << 20), policies, user, old, new)
}

/// Like [`unstamped_under`], in a cluster with other objects.
fn unstamped_among(
    objects: &Objects,
    policies: &Policies,
    user: &str,
    old: Option<&Rec>,
    new: &Rec,
) -> Vec<&'static str> {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let request = json!({
        "uid": "u", "operation": operation, "name": new.name(), "namespace": "shop",
        "object": new.object(), "oldObject": old.map(Rec::object),
        "kind": {"group": "", "version": "v1", "kind": new.kind},
        "resource": {"group": "", "version": "v1", "resource": "secrets"}, "userInfo": {"username": user},
    });
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
    let review = Review::parse(body.as_bytes()).unwrap();
    let found = with_facts(&review.request, policies, |facts, policy| {
        decided(facts, policy, |query| objects.answer(query, facts.effort))
    });
    found.iter().map(|found| found.violation.rule.as_str()).collect()
}

#[test]
fn a_forged_stamp_is_refused_while_the_mutating_half_is_down() {
    const VELERO: &str = "system:serviceaccount:velero:velero";
    let running = rec(1, "pending-install");
    let of_alice = running.clone().annotated(HOLDER, "alice");
    let none: [&str; 0] = [];
    assert_eq!(unstamped("alice", None, &running), none, "lost");
    assert_eq!(unstamped("alice", None, &of_alice), none);
    assert_eq!(unstamped("bob", None, &of_alice), ["forged-stamp"]);
    assert_eq!(unstamped("bob", Some(&running), &of_alice), ["forged-stamp"]);
    // A restore tool creates records with the stamps from their backup, and changes none.
    assert_eq!(unstamped(VELERO, None, &of_alice), none);
    assert_eq!(unstamped(VELERO, Some(&running), &of_alice), ["forged-stamp"]);
}

#[test]
fn a_new_record_inherits_what_protects_the_release_and_invents_nothing() {
    const STAMP: &str = "HelmRelease/shop/web/u1";
    let objects = Objects::new(1 << 20);
    let deployed = rec(1, "deployed").annotated(PROTECTED_BY, STAMP);
    objects.put(ObjectKey::new("", "Secret", "shop", &deployed.name()), deployed.object().to_string());
    let policies = Policies::from(Policy::shipped().unwrap());
    let upgrade = rec(2, "pending-upgrade").annotated(HOLDER, "alice");
    for (stamp, verdict) in [(STAMP, &[][..]), ("HelmRelease/shop/web/u2", &["forged-stamp"])] {
        let new = upgrade.clone().annotated(PROTECTED_BY, stamp);
        assert_eq!(unstamped_among(&objects, &policies, "alice", None, &new), verdict, "{stamp}");
    }
    let other = rec(1, "deployed").annotated(PROTECTED_BY, "HelmRelease/shop/web/u2");
    assert_eq!(unstamped_among(&objects, &policies, "alice", Some(&deployed), &other), ["forged-stamp"]);
}

/// The validating half sees the stamp later than the mutating half wrote it: what has changed since stops nobody.
#[test]
fn a_false_driver_is_refused_and_one_that_has_changed_since_is_not() {
    const DEPLOYER: &str = "system:serviceaccount:shop:deployer";
    const CONTROLLER: &str = "system:serviceaccount:flux-system:helm-controller";
    let named = |name: &str| format!("HelmRelease/shop/{name}/uid/2");
    let (none, forged): ([&str; 0], _) = ([], ["forged-stamp"]);
    for (user, account, stamp, wanted) in [
        (DEPLOYER, "deployer", named("web"), &none[..]),
        // Flux works as its controller only for a HelmRelease that names no account.
        (CONTROLLER, "", named("web"), &none[..]),
        (CONTROLLER, "deployer", named("web"), &forged[..]),
        (DEPLOYER, "other", named("web"), &forged[..]),
        ("alice", "deployer", named("web"), &forged[..]),
        (DEPLOYER, "deployer", "HelmRelease/shop/web".to_owned(), &forged[..]),
        // The account changed between the two halves, or the HelmRelease is gone or another one.
        (DEPLOYER, "other", "HelmRelease/shop/web/uid/1".to_owned(), &none[..]),
        (DEPLOYER, "other", "HelmRelease/shop/web/former/2".to_owned(), &none[..]),
        (DEPLOYER, "other", named("gone"), &none[..]),
    ] {
        let objects = Objects::new(1 << 20);
        let helm_release = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "web", "namespace": "shop", "uid": "uid", "generation": 2},
            "spec": {"serviceAccountName": account},
        });
        objects.put(ObjectKey::new(HELM_RELEASES.0, HELM_RELEASES.1, "shop", "web"), helm_release.to_string());
        let running = rec(1, "pending-install").annotated(HOLDER, user).annotated(DRIVER, &stamp);
        let policies = Policies::from(Policy::shipped().unwrap());
        assert_eq!(unstamped_among(&objects, &policies, user, None, &running), wanted, "{user} {account} {stamp}");
    }
    // No operation starts with it later.
    let deployed = rec(1, "deployed");
    assert_eq!(unstamped(DEPLOYER, Some(&deployed), &deployed.clone().annotated(DRIVER, &named("web"))), forged);
}

/// The shipped policy with one pipeline of jobs.
fn with_pipeline(name: &str) -> Policies {
    let shipped = include_str!("../../../../../policies/cluster.yaml");
    let text = format!("{shipped}pipelines:\n  - {{name: {name}, users: ['job-*'], holder: pipeline}}\n");
    Policies::from(Policy::parse(&text, Path::new("cluster.yaml")).unwrap())
}

#[test]
fn a_forged_pipeline_is_refused_and_that_of_the_policy_before_a_reload_is_not() {
    let none: [&str; 0] = [];
    let running = rec(1, "pending-install");
    let held = running.clone().annotated(HOLDER, "job-1");
    let stamped = |pipeline: &str| held.clone().annotated(PIPELINE, pipeline);
    let old = with_pipeline("old");
    let start = |policies: &Policies, record: &Rec| unstamped_under(policies, "job-1", None, record);
    assert_eq!(start(&old, &stamped("old")), none);
    assert_eq!(start(&old, &held), none, "a lost stamp");
    assert_eq!(start(&old, &stamped("new")), ["forged-stamp"]);
    assert_eq!(unstamped_under(&old, "alice", None, &running.clone().annotated(PIPELINE, "old")), ["forged-stamp"]);
    // Another replica stamped with the policy that this replica has just replaced.
    let new = with_pipeline("new").following(&old);
    assert_eq!(start(&new, &stamped("new")), none);
    assert_eq!(start(&new, &stamped("old")), none);
    assert_eq!(start(&new, &stamped("other")), ["forged-stamp"]);
    let none_left = Policies::from(Policy::shipped().unwrap()).following(&old);
    assert_eq!(start(&none_left, &stamped("old")), none);
    // An operation in flight keeps its first stamp, even if the policy changes.
    let ends = |before: &Rec, pipeline: &str| {
        let after = before.to("failed").annotated(PIPELINE, pipeline);
        unstamped_under(&new, "job-2", Some(before), &after)
    };
    assert_eq!(ends(&stamped("new"), "new"), none);
    assert_eq!(ends(&stamped("new"), "old"), ["forged-stamp"]);
    assert_eq!(ends(&stamped("ancient"), "new"), ["pending-recovery", "forged-stamp"]);
}

fn hook(name: &str, manifest: &str, run: u64) -> Value {
    json!({"name": name, "kind": "Job", "path": name, "manifest": manifest, "events": ["test"], "last_run": run})
}

fn with_hooks(record: &Rec, hooks: &[Value]) -> Rec {
    let mut body = record.body();
    body["hooks"] = hooks.into();
    Rec { payload: Some(record.encoded(&body)), ..record.clone() }
}

#[test]
fn a_filtered_test_may_omit_hooks_and_restore_them() {
    let record = rec(4, "deployed");
    let [all, filtered, evil, whole, fewer] = [
        vec![hook("a", "x", 0), hook("b", "y", 0)],
        vec![hook("a", "x", 1)],
        vec![hook("a", "evil", 1)],
        vec![hook("a", "x", 1), hook("b", "y", 0)],
        vec![hook("a", "x", 0)],
    ]
    .map(|hooks| with_hooks(&record, &hooks));
    let mut cluster = Cluster::new();
    cluster.given_record(&all);
    let refused = Err(vec!["record-tampering"]);
    assert_eq!(cluster.update("alice", &all, &evil), refused, "another hook");
    assert_eq!(cluster.update("alice", &all, &fewer), refused, "none of them runs");
    let superseded = |hooks: &[Value]| with_hooks(&record.to("superseded"), hooks);
    assert_eq!(cluster.update("alice", &all, &superseded(&[hook("a", "x", 1)])), refused, "no test ends a revision");
    assert_eq!(cluster.update("alice", &all, &filtered), Ok(()));
    let other = with_hooks(&record, &[hook("a", "x", 1), hook("b", "evil", 0)]);
    assert_eq!(cluster.update("alice", &filtered, &other), refused, "not the same ones");
    // A test that is killed leaves them out for good.
    let uninstalling = with_hooks(&record.to("uninstalling"), &[hook("a", "x", 1)]);
    let mut killed = Cluster::new();
    killed.given_record(&all);
    assert_eq!(killed.update("alice", &all, &filtered), Ok(()));
    let warned = killed.judged("alice", Some(filtered.object()), uninstalling.object());
    assert!(warned.allowed && warned.warnings.concat().contains("lacks hooks"), "{warned:?}");
    assert_eq!(cluster.update("alice", &filtered, &whole), Ok(()));
    // The omitted hooks are back. No others may be added.
    assert_eq!(cluster.update("alice", &whole, &other), refused);
}

#[test]
fn an_unlock_may_change_only_the_date_of_a_record() {
    let running = rec(4, "pending-upgrade").annotated(HOLDER, "alice");
    let failed = running.to("failed");
    let later = Rec { lived: "2026-11-21T09:30:00Z", ..failed.clone() };
    let unlock = |after: &Rec| {
        let mut cluster = Cluster::new();
        cluster.given_record(&running);
        cluster.update("alice", &running, after)
    };
    assert_eq!(unlock(&failed), Ok(()));
    assert_eq!(unlock(&later), Ok(()));
    let refused = Err(vec!["record-tampering"]);
    assert_eq!(unlock(&Rec { manifest: "---\nkind: Service\nmetadata: {name: web}\n", ..later.clone() }), refused);
    assert_eq!(unlock(&Rec { config: json!({"replicas": 9}), ..later.clone() }), refused);
    // A promotion keeps the date. So does a repeated write.
    assert_eq!(unlock(&Rec { lived: later.lived, ..running.to("deployed") }), refused);
    assert_eq!(unlock(&Rec { lived: later.lived, ..running.clone() }), refused);
}
