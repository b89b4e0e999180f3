//! Reviews while no core is free.

mod losses;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use interlock_engine::evidence::Knowledge;
use serde_json::{Value, json};

use super::steps::{BODY_STEPS, ORDINARY_BODY_BYTES};
use super::*;
use crate::budget::Price;
use crate::world::memory::Memory;
use crate::world::{AnswerFuture, QueryBudget};

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

/// Why the rules are undecided about a review, if they are. No core is free, and so many steps may wait for one.
async fn undecided(body: &str, waiting: usize) -> Result<Option<ViolationKind>, ReviewFailure> {
    let budget = Arc::new(Budget::without_cores(1 << 20, waiting));
    let judge = Judge::new(Policy::shipped().unwrap(), Arc::new(Memory::new(0)), budget);
    let deadline = Instant::now() + Duration::from_secs(3);
    let review = match judge.parse(body.as_bytes(), deadline).await {
        Err(NotJudged::Failed(why)) => return Err(why),
        parsed => parsed.unwrap(),
    };
    let judgement = judge.validate(&review.request, Timestamp::UNIX_EPOCH, deadline).await.unwrap();
    let kind =
        judgement.decision.findings.iter().map(|finding| finding.kind).find(|kind| *kind != ViolationKind::Refused);
    if let Some(kind) = kind {
        // An overloaded review is never admitted.
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

/// The longest body of a record whose review is small.
const SMALL_BODY: usize = 50_000_000 / BODY_STEPS as usize - (16 << 10);

#[tokio::test(start_paused = true)]
async fn without_a_turn_only_a_small_update_is_undecided() {
    for (review, kind) in [
        (record("UPDATE", SMALL_BODY), ViolationKind::Late),
        // Takes longer than a small review may.
        (record("UPDATE", 2 * SMALL_BODY), ViolationKind::Overloaded),
        // Their clients try again.
        (record("CREATE", SMALL_BODY), ViolationKind::Overloaded),
        (record("DELETE", 1), ViolationKind::Overloaded),
    ] {
        for waiting in [0, 100] {
            assert_eq!(undecided(&review, waiting).await, Ok(Some(kind)), "{waiting} {}", &review[..120]);
        }
    }
    for waiting in [0, 100] {
        assert_eq!(undecided(&edit(ORDINARY_BYTES), waiting).await, Err(ReviewFailure::Busy));
    }
}

/// An API server that does not answer.
struct Silent;

impl World for Silent {
    fn answer_for<'w>(&'w self, _: &'w Query, _: QueryBudget<'w>) -> AnswerFuture<'w> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_api_server_leaves_only_small_reviews_undecided() {
    for (review, kind) in
        [(edit(1), Some(ViolationKind::Late)), (edit(ORDINARY_BYTES), Some(ViolationKind::Overloaded))]
    {
        let judge = Judge::new(Policy::shipped().unwrap(), Arc::new(Silent), Arc::new(Budget::new(256 << 20)));
        let deadline = Instant::now() + Duration::from_secs(3);
        let review = judge.parse(review.as_bytes(), deadline).await.unwrap();
        let judgement = judge.validate(&review.request, Timestamp::UNIX_EPOCH, deadline).await.unwrap();
        assert_eq!(judgement.decision.findings.first().map(|finding| finding.kind), kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_takes_a_turn_even_in_a_small_review() {
    let budget = Budget::without_cores(1 << 20, 0);
    let call = Call { deadline: Instant::now() + Duration::from_secs(3), peer: Peer::Known };
    let steps = Steps::new(&budget, "alice", call, 1);
    assert_eq!(steps.run(|| ()).await, Ok(()));
    steps.note(&Answer::Known(Knowledge::Object("x".repeat(200 << 10))));
    assert_eq!(steps.run(|| ()).await, Err(ReviewFailure::Late));
}

#[tokio::test(start_paused = true)]
async fn a_user_whose_step_does_not_end_is_refused() {
    let text = record("UPDATE", SMALL_BODY);
    let review = Review::parse(text.as_bytes()).unwrap();
    for (user, why) in [("alice", ReviewFailure::Busy), ("bob", ReviewFailure::Late)] {
        let budget = Arc::new(Budget::without_cores(1 << 20, 100));
        let judge = Judge::new(Policy::shipped().unwrap(), Arc::new(Memory::new(0)), Arc::clone(&budget));
        let mut step = Box::pin(budget.work(Flow::of(Peer::Known, user), Price::of_steps(0), || ()));
        // The first poll yields to the caller, and the second waits for a turn.
        for _ in 0..2 {
            assert!(step.as_mut().now_or_never().is_none());
        }
        assert_eq!(judge.out_of_time(&review.request.head(), 1, Peer::Known), why, "{user}");
        assert_eq!(judge.out_of_time(&review.request.head(), ORDINARY_BYTES + 1, Peer::Known), ReviewFailure::Busy);
        drop(step);
        let _held = budget.grant(Flow::of(Peer::Known, user), 1).await;
        assert_eq!(judge.out_of_time(&review.request.head(), 1, Peer::Known), why, "{user}");
    }
}
