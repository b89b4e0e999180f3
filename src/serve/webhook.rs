//! The webhook as the reviewer of the server: judges and reports a review, and returns the reply.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use interlock_engine::memory::AdmittedWrite;
use interlock_engine::reply;
use interlock_engine::review::{Review, head_of};
use tokio::time::Instant;

use super::https::{Answer, BoxFuture, Endpoint, HttpReply, ReviewFailure, Reviewer};
use super::report::Reporter;
use crate::budget::Peer;
use crate::judge::{Call, Judge, Judgement, NotJudged};
use crate::log_limit::CLIENT_LOG_LIMIT;
use crate::world::kubernetes::clock::ServerClock;
use crate::world::memory::Memory;

/// The answer to a body without a readable head of a review.
const HEADLESS: &[u8] = b"the review was not judged, and its head cannot be read\n";

/// Judges and reports reviews.
pub struct Webhook {
    judge: Judge,
    reporter: Reporter,
    memory: Option<Arc<Memory>>,
    clock: Arc<ServerClock>,
}

impl Webhook {
    /// A webhook for a cluster.
    #[must_use]
    pub fn new(judge: Judge, reporter: Reporter) -> Self {
        Self { judge, reporter, memory: None, clock: Arc::default() }
    }

    /// A standalone webhook, which applies admitted requests to the world in memory.
    #[must_use]
    pub fn standalone(judge: Judge, reporter: Reporter, memory: Arc<Memory>) -> Self {
        Self { memory: Some(memory), ..Self::new(judge, reporter) }
    }

    /// Sets the clock for decisions.
    #[must_use]
    pub fn with_clock(self, clock: Arc<ServerClock>) -> Self {
        Self { clock, ..self }
    }

    async fn review(&self, endpoint: Endpoint, body: &Bytes, call: Call) -> Result<Answer, NotJudged> {
        let Review { request, .. } = self.judge.parse(body, call).await?;
        match endpoint {
            Endpoint::Validate => {
                let judgement = self.judge.validate(&request, self.clock.now(), call).await?;
                Ok(self.answer_with(&request.uid, judgement, || AdmittedWrite::of(&request, body)))
            }
            Endpoint::Mutate => {
                let patch = self.judge.mutate(&request, self.clock.now(), call).await?;
                Ok(decided(reply::allow_with_patch(&request.uid, patch.as_ref())))
            }
        }
    }

    /// The answer of a judgement. When the answer is sent, the decision is reported, and the write is applied to the memory if there is one.
    fn answer_with(&self, uid: &str, judgement: Judgement, write: impl FnOnce() -> Option<AdmittedWrite>) -> Answer {
        let Judgement { outcome, decision } = judgement;
        let memory = self.memory.clone().filter(|_| outcome.allowed);
        let admitted = memory.and_then(|memory| Some((memory, write()?)));
        let (reporter, clock) = (self.reporter.clone(), Arc::clone(&self.clock));
        let delivered = Box::new(move || {
            if let Some((memory, write)) = admitted {
                remember(memory, write);
            }
            reporter.report(decision, clock.now());
        });
        Answer { delivered: Some(delivered), ..decided(reply::answer(uid, &outcome)) }
    }
}

impl Reviewer for Webhook {
    fn answer(&self, endpoint: Endpoint, body: Bytes, peer: Peer, deadline: Instant) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            match self.review(endpoint, &body, Call { deadline, peer }).await {
                Ok(answer) => answer,
                Err(NotJudged::Failed(why)) => self.undecided(endpoint, &body, peer, why),
                Err(NotJudged::Malformed(error)) => {
                    let kind = "a body is not a review";
                    if let Some(suppressed) = CLIENT_LOG_LIMIT.admit(kind) {
                        tracing::warn!(?endpoint, %error, suppressed, "{kind}");
                    }
                    HttpReply { status: StatusCode::BAD_REQUEST, body: reply::bad_request(&error) }.into()
                }
            }
        })
    }

    fn undecided(&self, endpoint: Endpoint, body: &Bytes, peer: Peer, why: ReviewFailure) -> Answer {
        let Some(head) = head_of(body) else {
            // The API server accepts no reply without the uid, so the failure policy decides.
            let kind = "the head of a review cannot be read";
            if let Some(suppressed) = CLIENT_LOG_LIMIT.admit(kind) {
                tracing::warn!(?endpoint, suppressed, "{kind}");
            }
            return HttpReply { status: StatusCode::BAD_REQUEST, body: HEADLESS.into() }.into();
        };
        match endpoint {
            Endpoint::Mutate => decided(reply::allow_with_patch(&head.uid, None)),
            Endpoint::Validate => {
                let is_late = why == ReviewFailure::Late;
                let reason = if is_late { self.judge.out_of_time(&head, body.len(), peer) } else { why };
                let judgement = self.judge.undecided(&head, reason);
                // A body that caused a panic is not parsed again.
                self.answer_with(&head.uid, judgement, || {
                    (why != ReviewFailure::Failed).then(|| AdmittedWrite::unparsed(body.clone()))
                })
            }
        }
    }
}

fn decided(body: Vec<u8>) -> Answer {
    HttpReply { status: StatusCode::OK, body }.into()
}

/// Stores a write. Another task applies the write, after the task of the connection has sent the reply.
fn remember(memory: Arc<Memory>, write: AdmittedWrite) {
    if memory.admit(write) {
        tokio::spawn(async move { memory.settle() });
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::owners::sveltos;
    use interlock_engine::policy::Policy;
    use interlock_engine::release_override;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::budget::Budget;
    use crate::serve::report::metrics::ReportMetrics;
    use crate::serve::report::refusals::LastRefusals;

    fn webhook(reporter: Reporter) -> Webhook {
        let judge = Judge::new(Policy::shipped().unwrap(), Arc::new(Memory::new(0)), Arc::new(Budget::new(0)));
        Webhook::new(judge, reporter)
    }

    fn reporter() -> Reporter {
        Reporter::new(Arc::new(ReportMetrics::default()))
    }

    /// A review of a request whose object cannot be parsed.
    fn unreadable(operation: &str, group: &str, kind: &str, user: &str) -> Bytes {
        let kind = json!({"group": group, "version": "v1", "kind": kind});
        let head = json!({
            "uid": "u", "operation": operation, "name": "web", "namespace": "shop", "kind": kind,
            "resource": {"group": group, "version": "v1", "resource": "things"}, "userInfo": {"username": user},
        });
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": head});
        // The object is not parsed, so it need not be JSON.
        review.to_string().replacen("}}}", r#"},"object":{{{"#, 1).into()
    }

    /// Whether a request that was not judged is allowed, and the message to the user.
    fn undecided(operation: &str, group: &str, kind: &str, user: &str, why: ReviewFailure) -> (bool, String) {
        let body = unreadable(operation, group, kind, user);
        let Answer { reply, .. } = webhook(reporter()).undecided(Endpoint::Validate, &body, Peer::Known, why);
        assert_eq!(reply.status, StatusCode::OK);
        let reply: Value = serde_json::from_slice(&reply.body).unwrap();
        let response = &reply["response"];
        assert_eq!(response["uid"], "u");
        let message = response["status"]["message"].as_str().or(response["warnings"][0].as_str());
        (response["allowed"].as_bool().unwrap(), message.unwrap_or_default().to_owned())
    }

    #[test]
    fn what_opens_rules_is_refused_when_it_cannot_be_judged() {
        let (ours, override_kind) = (release_override::GROUP, release_override::KIND);
        let commit = (sveltos::LIB_GROUP, sveltos::CONFIGURATION_GROUP);
        for (operation, (group, kind), allowed, warned) in [
            ("CREATE", (ours, override_kind), false, true),
            ("UPDATE", (ours, override_kind), false, true),
            ("DELETE", (ours, override_kind), true, true),
            ("CREATE", commit, false, true),
            ("DELETE", commit, true, true),
            ("CREATE", ("", "Secret"), false, true),
            ("UPDATE", ("", "Secret"), true, true),
            ("UPDATE", ("apps", "Deployment"), true, true),
            ("UPDATE", ("helm.toolkit.fluxcd.io", "HelmRelease"), true, true),
            // No rule is about this object.
            ("CREATE", ("apps", "Deployment"), true, false),
        ] {
            let got = undecided(operation, group, kind, "alice", ReviewFailure::Late);
            assert_eq!((got.0, !got.1.is_empty()), (allowed, warned), "{operation} {kind}: {}", got.1);
        }
    }

    #[test]
    fn unjudged_answers_name_the_reason_and_allow_clean_up() {
        for (why, reason) in [
            (ReviewFailure::Late, "the review did not finish in time"),
            (ReviewFailure::Busy, "Interlock had no time for it beside other reviews"),
            (ReviewFailure::Failed, "internal error"),
        ] {
            let (_, message) = undecided("CREATE", "", "Secret", "alice", why);
            assert!(message.contains(reason) && message.contains("[concurrent-operation]"), "{message}");
        }
        let collector = "system:serviceaccount:kube-system:namespace-controller";
        let commit = sveltos::CONFIGURATION_GROUP;
        assert_eq!(
            undecided("CREATE", sveltos::LIB_GROUP, commit, collector, ReviewFailure::Busy),
            (true, String::new())
        );
    }
    #[test]
    fn a_refusal_is_kept_with_its_time_by_the_clock_of_the_reviews() {
        let refusals = Arc::<LastRefusals>::default();
        let webhook = webhook(reporter().with_refusals(Some(refusals.clone())))
            .with_clock(Arc::new(ServerClock::ahead_by(3_600)));
        let before = Timestamp::now();
        let body = unreadable("CREATE", "", "Secret", "alice");
        webhook.undecided(Endpoint::Validate, &body, Peer::Known, ReviewFailure::Late).delivered.unwrap()();
        let ahead = refusals.newest()[0].at.duration_since(before).as_secs();
        assert!((3_600..3_660).contains(&ahead), "{ahead} s ahead");
    }
}
