//! What an object loses is noted with its verdict, before the reply.

use std::sync::atomic::{AtomicUsize, Ordering};

use interlock_engine::object::ObjectKey;

use super::*;
use crate::world::{LossVerdict, NoteFuture};

/// A world in which another replica notes something before the first of our notes, or no note can be written.
struct Contested {
    memory: Memory,
    notes: AtomicUsize,
    can_write: bool,
}

impl World for Contested {
    fn answer_for<'w>(&'w self, query: &'w Query, budget: QueryBudget<'w>) -> AnswerFuture<'w> {
        self.memory.answer_for(query, budget)
    }

    fn note_loss<'w>(&'w self, verdict: LossVerdict<'w>) -> NoteFuture<'w> {
        if !self.can_write {
            return Box::pin(async { Err("the API server answered 500".to_owned()) });
        }
        let is_first = self.notes.fetch_add(1, Ordering::Relaxed) == 0;
        Box::pin(async move {
            if is_first {
                assert_eq!(self.memory.note_loss(LossVerdict { admitted: true, ..verdict }).await, Ok(true));
            }
            self.memory.note_loss(verdict).await
        })
    }
}

fn contested(can_write: bool) -> Contested {
    let memory = Memory::new(1 << 20).noting_losses();
    let entries: Vec<_> =
        ["a", "b", "c", "d"].iter().map(|name| json!({"id": format!("shop_{name}__ConfigMap")})).collect();
    let kustomization = json!({
        "metadata": {"name": "shop", "namespace": "team"}, "status": {"inventory": {"entries": entries}},
    });
    memory
        .put(ObjectKey::new("kustomize.toolkit.fluxcd.io", "Kustomization", "team", "shop"), kustomization.to_string());
    Contested { memory, notes: AtomicUsize::new(0), can_write }
}

/// Whether kustomize-controller may prune an object, and the message if it may not.
async fn prune(judge: &Judge, name: &str, dry_run: bool) -> (bool, String) {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": "shop",
            "labels": {"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "team"},
        },
    });
    let body = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "DELETE", "name": name, "namespace": "shop", "dryRun": dry_run,
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "userInfo": {"username": "system:serviceaccount:flux-system:kustomize-controller"}, "oldObject": object,
        },
    });
    let (body, deadline) = (body.to_string(), Instant::now() + Duration::from_secs(3));
    let review = judge.parse(body.as_bytes(), deadline).await.unwrap();
    let judgement = judge.validate(&review.request, Timestamp::UNIX_EPOCH, deadline).await.unwrap();
    (judgement.outcome.allowed, judgement.outcome.message + &judgement.outcome.warnings.concat())
}

fn judge(world: Contested) -> (Judge, Arc<Contested>) {
    let world = Arc::new(world);
    (
        Judge::new(Policy::shipped().unwrap(), Arc::clone(&world) as Arc<dyn World>, Arc::new(Budget::new(1 << 20))),
        world,
    )
}

#[tokio::test]
async fn a_verdict_on_what_holds_no_longer_is_given_again() {
    let (judge, world) = judge(contested(true));
    assert_eq!(prune(&judge, "a", false).await, (true, String::new()));
    assert_eq!(world.notes.load(Ordering::Relaxed), 2);
    assert!(prune(&judge, "b", false).await.0);
    let (allowed, message) = prune(&judge, "c", false).await;
    assert!(!allowed && message.contains("[dropped-inventory]"), "{message}");
}

#[tokio::test]
async fn a_dry_run_is_not_noted() {
    let (judge, world) = judge(contested(true));
    for name in ["a", "b", "c", "d"] {
        assert!(prune(&judge, name, true).await.0);
    }
    assert_eq!(world.notes.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn what_cannot_be_noted_is_not_judged() {
    let (judge, _) = judge(contested(false));
    let (allowed, message) = prune(&judge, "a", false).await;
    assert!(allowed && message.contains("Could not check ConfigMap shop/a: the API server answered 500"), "{message}");
}
