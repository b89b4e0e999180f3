//! The checks of the runbook, as users see them.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::deletion::deployment;
use super::scenario::{Rec, rec, start, with_facts};
use crate::decide::{Step, decide};
use crate::evidence::{Answer, Evidence, Query};
use crate::facts::Facts;
use crate::memory::Objects;
use crate::object::ObjectKey;
use crate::policy::Policy;
use crate::review::Review;
use crate::rules::{RunbookCheck, RunbookCheckName, RunbookResult, inspect};
use crate::violation::ViolationKind;

/// A pending upgrade with a Job for a hook.
fn pending() -> Rec {
    let record = rec(6, "pending-upgrade").annotated("interlock.dev/holder", "alice");
    let mut body = record.body();
    body["hooks"] = json!([{"name": "migrate", "kind": "Job", "manifest": "metadata: {name: migrate}"}]);
    Rec { payload: Some(record.encoded(&body)), ..record }
}

fn job(active: u64) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate", "namespace": "shop"}, "status": {"active": active}})
}

/// The deletion of one record, alone or with others.
struct Deletion<'d> {
    record: &'d Rec,
    alone: bool,
    objects: &'d [Value],
    /// Seconds since the start.
    after: i64,
}

/// Judges a deletion. `lost` selects the queries without an answer.
fn judged<T>(
    Deletion { record, alone, objects, after }: Deletion<'_>,
    lost: fn(&Query) -> bool,
    judge: impl Fn(&Facts<'_>, &Policy, &Evidence, Timestamp) -> Result<T, Query>,
) -> T {
    let cluster = Objects::new(1 << 20);
    for object in objects.iter().chain([&record.object()]) {
        let text = object.to_string();
        let raw = serde_json::value::RawValue::from_string(text.clone()).unwrap();
        cluster.put(ObjectKey::of_object(raw.as_ref().into()).unwrap(), text);
    }
    let request = json!({
        "uid": "u", "operation": "DELETE", "name": alone.then(|| record.name()), "namespace": "shop",
        "oldObject": record.object(), "kind": {"group": "", "version": "v1", "kind": record.kind},
        "resource": {"group": "", "version": "v1", "resource": "secrets"}, "userInfo": {"username": "bob"},
    });
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
    let review = Review::parse(body.as_bytes()).unwrap();
    let now: Timestamp = start().checked_add(SignedDuration::from_secs(after)).unwrap();
    with_facts(&review.request, &Policy::shipped().unwrap().into(), |facts, policy| {
        let mut evidence = Evidence::default();
        loop {
            match judge(facts, policy, &evidence, now) {
                Ok(judged) => return judged,
                Err(query) if lost(&query) => evidence.add(query, Answer::Unavailable("no answer".to_owned())),
                Err(query) => {
                    let answer = cluster.answer(&query, facts.effort);
                    evidence.add(query, answer);
                }
            }
        }
    })
}

/// Runs the checks for the deletion of a record.
fn checks(record: &Rec, objects: &[Value], after: i64, lost: fn(&Query) -> bool) -> Vec<RunbookCheck> {
    judged(Deletion { record, alone: true, objects, after }, lost, inspect)
}

fn failing(checks: &[RunbookCheck]) -> Vec<RunbookCheckName> {
    checks.iter().filter(|check| !check.passed()).map(|check| check.name).collect()
}

const STALE: i64 = 15 * 60;

#[test]
fn all_passing_checks_are_listed_with_their_evidence() {
    let objects = [rec(5, "deployed").object(), deployment(10, 10, "True"), job(0)];
    let checks = checks(&pending(), &objects, STALE, |_| false);
    let text: Vec<_> = checks.iter().map(|check| (check.name.as_str(), check.evidence.as_str())).collect();
    assert_eq!(
        text,
        [
            ("alone", "only this record is deleted"),
            ("stale", "held by alice, 15 min old; counts as stuck after 15 min"),
            ("no-lease", "neither nelm nor werf holds a lease"),
            ("pending-body", "its label and its body say that it is pending"),
            ("healthy", "Deployment shop/web: 10 of 10 available, 10 updated, Available, Progressing"),
            ("no-hook-runs", "Job shop/migrate is not running"),
        ]
    );
    assert_eq!(failing(&checks), []);
    assert!(checks.iter().all(|check| check.name.to_string() == check.name.as_str()));
}

#[test]
fn a_failing_check_does_not_hide_the_others() {
    let objects = [rec(5, "deployed").object(), deployment(10, 5, "False"), job(2)];
    let checks = checks(&pending(), &objects, STALE - 1, |_| false);
    let wanted = [RunbookCheckName::Stale, RunbookCheckName::Healthy, RunbookCheckName::NoHookRuns];
    assert_eq!(failing(&checks), wanted);
    let last = checks.last().unwrap();
    assert_eq!(
        last.result,
        RunbookResult::Failed("Job shop/migrate of a hook is still running with 2 active pods".to_owned())
    );
    let seen = &checks[checks.len() - 2].evidence;
    assert_eq!(seen, "Deployment shop/web: 5 of 10 available, 10 updated, Available, not Progressing");
}

#[test]
fn a_check_without_data_does_not_pass() {
    let objects = [rec(5, "deployed").object(), deployment(10, 10, "True")];
    let checks = checks(&pending(), &objects, STALE, |query| {
        matches!(query, Query::HelmReleases { .. } | Query::Object(_) | Query::Workloads(_))
    });
    assert_eq!(
        failing(&checks),
        [RunbookCheckName::Stale, RunbookCheckName::PendingBody, RunbookCheckName::NoHookRuns]
    );
    assert!(
        checks
            .iter()
            .filter(|check| !check.passed())
            .all(|it| it.result == RunbookResult::Unknown("no answer".to_owned()))
    );
    let json = serde_json::to_value(&checks[1]).unwrap();
    assert_eq!(
        (&json["check"], &json["holds"], &json["why"]),
        (&"stale".into(), &"unknown".into(), &"no answer".into())
    );
}

#[test]
fn one_failing_check_is_enough_for_a_refusal() {
    let record = pending();
    let found = |alone: bool| {
        let deletion = Deletion { record: &record, alone, objects: &[rec(5, "deployed").object()], after: STALE };
        let lost = |query: &Query| matches!(query, Query::HelmReleases { .. });
        let found = judged(deletion, lost, |facts, policy, evidence, now| match decide(facts, policy, evidence, now) {
            Step::Ask(query) => Err(query),
            Step::Done(judged) => Ok(judged),
        });
        let of_rule = found.into_iter().find(|judged| judged.violation.rule.as_str() == "pending-recovery");
        of_rule.map(|judged| (judged.violation.kind, judged.violation.sentence)).unwrap()
    };
    let (kind, sentence) = found(false);
    assert_eq!(kind, ViolationKind::Refused);
    let ends = "not alone by its name; the other checks could not be run (no answer).";
    assert!(sentence.ends_with(ends), "{sentence}");
    assert_eq!(found(true).0, ViolationKind::Unavailable);
}
