//! Reviews while no core is free.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use serde_json::{Value, json};

use super::*;
use crate::world::memory::Memory;

/// An edit of a Deployment of the release web, with an annotation of so many bytes.
fn edit(bytes: usize) -> String {
    let object = |image: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"image": image},
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "d1", "labels": {"app.kubernetes.io/managed-by": "Helm"},
                "annotations": {
                    "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop",
                    "padding": " ".repeat(bytes),
                },
            },
        })
    };
    review("UPDATE", &json!({"group": "apps", "version": "v1", "kind": "Deployment"}), &object("old"), &object("new"))
}

/// The write of a pending record whose body claims to be so many bytes of JSON.
fn record(operation: &str, bytes: usize) -> String {
    let body = [&[0x1f, 0x8b, 0x08][..], &u32::try_from(bytes).unwrap().to_le_bytes()].concat();
    let object = |status: &str| {
        let labels = json!({"owner": "helm", "name": "web", "status": status, "version": "1"});
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
            "data": {"release": STANDARD.encode(STANDARD.encode(&body))},
            "metadata": {"name": "sh.helm.release.v1.web.v1", "namespace": "shop", "labels": labels},
        })
    };
    let secret = json!({"group": "", "version": "v1", "kind": "Secret"});
    review(operation, &secret, &object("pending-upgrade"), &object("failed"))
}

fn review(operation: &str, kind: &Value, old: &Value, new: &Value) -> String {
    let request = json!({
        "uid": "u", "operation": operation, "name": new["metadata"]["name"], "namespace": "shop", "kind": kind,
        "resource": {"group": kind["group"], "version": "v1", "resource": "things"}, "userInfo": {"username": "alice"},
        "object": new, "oldObject": old,
    });
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

/// Why the rules are undecided about a review, if they are, where so many steps may wait for a core that never comes.
async fn undecided(body: &str, waiting: usize) -> Result<Option<ViolationKind>, Unjudged> {
    let budget = Arc::new(Budget::without_cores(1 << 20, waiting));
    let judge = Judge::new(Policy::shipped().unwrap(), Arc::new(Memory::new(0)), budget);
    let deadline = Instant::now() + Duration::from_secs(3);
    let review = judge.parse(body.as_bytes(), deadline).await?.unwrap();
    let judgement = judge.validate(&review.request, Timestamp::UNIX_EPOCH, deadline).await.unwrap();
    let kind =
        judgement.decision.findings.iter().map(|finding| finding.kind).find(|kind| *kind != ViolationKind::Refused);
    if let Some(kind) = kind {
        // A flood of the same user admits nothing that a rule would refuse.
        assert_eq!(judgement.outcome.allowed, kind != ViolationKind::Overloaded, "{}", judgement.outcome.message);
    }
    Ok(kind)
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_review_needs_no_turn() {
    let started = Instant::now();
    for waiting in [0, 100] {
        for review in [edit(1), record("UPDATE", ORDINARY_BODY_BYTES), record("DELETE", 0)] {
            assert_eq!(undecided(&review, waiting).await, Ok(None), "{waiting}");
        }
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_large_review_is_undecided_if_no_turn_comes() {
    let started = Instant::now();
    let records = [record("UPDATE", ORDINARY_BODY_BYTES + 1), record("DELETE", 1)];
    for record in &records {
        assert_eq!(undecided(record, 0).await, Ok(Some(ViolationKind::Overloaded)));
    }
    assert_eq!(undecided(&edit(ORDINARY_BYTES), 0).await, Err(Unjudged::Busy));
    assert_eq!(started.elapsed(), Duration::ZERO);
    for record in &records {
        assert_eq!(undecided(record, 100).await, Ok(Some(ViolationKind::Late)));
    }
    assert_eq!(undecided(&edit(ORDINARY_BYTES), 100).await, Err(Unjudged::Late));
    assert_eq!(started.elapsed(), Duration::from_secs(9));
}

#[tokio::test(start_paused = true)]
async fn what_its_own_user_sends_makes_a_late_review_open_no_guard() {
    let text = record("UPDATE", ORDINARY_BODY_BYTES + 1);
    let review = Review::parse(text.as_bytes()).unwrap();
    for (other, kind) in [("alice", ViolationKind::Overloaded), ("bob", ViolationKind::Late)] {
        let budget = Arc::new(Budget::without_cores(1 << 20, 100));
        let judge = Judge::new(Policy::shipped().unwrap(), Arc::new(Memory::new(0)), Arc::clone(&budget));
        let mut step = Box::pin(budget.work(other, || ()));
        // It lets its caller go on once, and then waits for its turn.
        for _ in 0..2 {
            assert!(step.as_mut().now_or_never().is_none());
        }
        let deadline = Instant::now() + Duration::from_secs(3);
        let judged = judge.validate(&review.request, Timestamp::UNIX_EPOCH, deadline).await.unwrap();
        // If its own step does not end, another answers for it.
        let stand_in = judge.undecided(&review.request.head(), Unjudged::Late);
        for judgement in [judged, stand_in] {
            assert!(judgement.decision.findings.iter().all(|finding| finding.kind == kind), "{other}");
            assert_eq!(judgement.outcome.allowed, kind == ViolationKind::Late, "{other}");
        }
    }
}
