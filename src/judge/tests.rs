//! Reviews while no core is free.

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

/// The update of a record, however small.
fn record() -> String {
    let object = |status: &str| {
        let labels = json!({"owner": "helm", "name": "web", "status": status, "version": "1"});
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": {"release": ""},
            "metadata": {"name": "sh.helm.release.v1.web.v1", "namespace": "shop", "labels": labels},
        })
    };
    review("UPDATE", &json!({"group": "", "version": "v1", "kind": "Secret"}), &object("deployed"), &object("failed"))
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
    // A flood of the same user admits nothing that a rule would refuse.
    let is_flooded = kind == Some(ViolationKind::Overloaded);
    assert_eq!(judgement.outcome.allowed, !is_flooded, "{}", judgement.outcome.message);
    Ok(kind)
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_review_needs_no_turn() {
    let started = Instant::now();
    for waiting in [0, 100] {
        assert_eq!(undecided(&edit(1), waiting).await, Ok(None));
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_record_and_a_large_object_are_undecided_if_no_turn_comes() {
    let started = Instant::now();
    assert_eq!(undecided(&record(), 0).await, Ok(Some(ViolationKind::Overloaded)));
    assert_eq!(undecided(&edit(ORDINARY_BYTES), 0).await, Err(Unjudged::Busy));
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(undecided(&record(), 100).await, Ok(Some(ViolationKind::Late)));
    assert_eq!(undecided(&edit(ORDINARY_BYTES), 100).await, Err(Unjudged::Late));
    assert_eq!(started.elapsed(), Duration::from_secs(6));
}
