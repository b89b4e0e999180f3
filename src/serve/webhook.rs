//! The webhook as the server's reviewer: takes a body, and returns the reply of a judged and reported review.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;
use tokio::time::Instant;

use super::https::{BoxFuture, Endpoint, HttpReply, Reviewer};
use super::report::Reporter;
use crate::engine::facts::storing_kind;
use crate::engine::review::{BadReview, Operation, Review, uid_of};
use crate::engine::{release_override, reply, sveltos};
use crate::judge::Judge;
use crate::world::memory::Memory;

/// The reason in the answer to a review that panicked.
const PANIC_REASON: &str = "an internal error of the webhook, whose log has the details. Please report it";

/// Judges and reports reviews.
pub struct Webhook {
    judge: Judge,
    reporter: Reporter,
    memory: Option<Arc<Memory>>,
}

impl Webhook {
    /// A webhook in front of a cluster.
    #[must_use]
    pub fn new(judge: Judge, reporter: Reporter) -> Self {
        Self { judge, reporter, memory: None }
    }

    /// A standalone webhook: admitted requests are applied to the world in memory.
    #[must_use]
    pub fn standalone(judge: Judge, reporter: Reporter, memory: Arc<Memory>) -> Self {
        Self { judge, reporter, memory: Some(memory) }
    }

    async fn validate(&self, body: &[u8], deadline: Instant) -> Result<Vec<u8>, BadReview> {
        let review = Review::parse(body)?;
        let verdict = self.judge.validate(&review.request, Timestamp::now(), deadline).await?;
        if let Some(memory) = self.memory.as_ref().filter(|_| verdict.outcome.allowed) {
            memory.apply(&review.request);
        }
        self.reporter.report(verdict.decision);
        Ok(reply::answer(&review.request.uid, &verdict.outcome))
    }

    async fn mutate(&self, body: &[u8], deadline: Instant) -> Result<Vec<u8>, BadReview> {
        let review = Review::parse(body)?;
        let patch = self.judge.mutate(&review.request, Timestamp::now(), deadline).await?;
        Ok(reply::allow_with_patch(&review.request.uid, patch.as_ref()))
    }
}

impl Reviewer for Webhook {
    fn answer(&self, endpoint: Endpoint, body: Bytes, deadline: Instant) -> BoxFuture<'_, HttpReply> {
        Box::pin(async move {
            let answered = match endpoint {
                Endpoint::Validate => self.validate(&body, deadline).await,
                Endpoint::Mutate => self.mutate(&body, deadline).await,
            };
            match answered {
                Ok(body) => HttpReply { status: StatusCode::OK, body },
                Err(error) => {
                    tracing::warn!(?endpoint, %error, "a body is not a review");
                    HttpReply { status: StatusCode::BAD_REQUEST, body: reply::bad_request(&error) }
                }
            }
        })
    }

    fn panicked(&self, endpoint: Endpoint, body: &[u8]) -> HttpReply {
        let uid = uid_of(body).unwrap_or_default();
        let body = match endpoint {
            Endpoint::Mutate => reply::allow_with_patch(&uid, None),
            Endpoint::Validate => reply::undecided(&uid, !fails_closed(body), PANIC_REASON),
        };
        HttpReply { status: StatusCode::OK, body }
    }
}

/// Whether a review must be denied when it cannot be judged: the CREATE of a possible record, commits of Sveltos, and
/// overrides, which open rules for a while.
fn fails_closed(body: &[u8]) -> bool {
    Review::parse(body).is_ok_and(|review| {
        let (request, kind) = (&review.request, &review.request.kind);
        let is_commit = kind.group == sveltos::LIB_GROUP && kind.kind == sveltos::CONFIGURATION_GROUP;
        let is_override = kind.group == release_override::GROUP && kind.kind == release_override::KIND;
        is_commit || is_override || (request.operation == Operation::Create && storing_kind(request).is_some())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_opens_rules_is_refused_when_it_cannot_be_judged() {
        let gate = |group: &str, kind: &str| {
            let kind = json!({"group": group, "version": "v1", "kind": kind});
            let request = json!({
                "uid": "u", "operation": "CREATE", "name": "web", "namespace": "shop", "kind": kind,
                "resource": {"group": group, "version": "v1", "resource": "things"}, "userInfo": {"username": "alice"},
                "object": {"metadata": {"name": "web"}},
            });
            let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
            fails_closed(review.to_string().as_bytes())
        };
        assert!(
            gate(release_override::GROUP, release_override::KIND)
                && gate(sveltos::LIB_GROUP, sveltos::CONFIGURATION_GROUP)
        );
        assert!(!gate("apps", "Deployment"));
    }
}
