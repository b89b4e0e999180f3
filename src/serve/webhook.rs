//! The webhook as the server's reviewer: a body in, a judged and reported reply out.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;
use tokio::time::Instant;

use super::https::{BoxFuture, Endpoint, Reply, Reviewer};
use super::report::Reporter;
use crate::engine::facts::storing_kind;
use crate::engine::review::{BadReview, Operation, Review, uid_of};
use crate::engine::{overrides, reply, sveltos};
use crate::judge::Judge;
use crate::world::memory::Memory;

/// Why the stand-in answers in place of the judge.
const PANICKED: &str = "a fault in the webhook, which its log tells more of. Please report it";

/// Judges what the server receives.
pub struct Webhook {
    judge: Judge,
    reporter: Reporter,
    learns: Option<Arc<Memory>>,
}

impl Webhook {
    /// A webhook in front of a cluster, which remembers by itself.
    #[must_use]
    pub fn new(judge: Judge, reporter: Reporter) -> Self {
        Self { judge, reporter, learns: None }
    }

    /// A webhook in front of nothing: the judge's world learns from what is admitted.
    #[must_use]
    pub fn standalone(judge: Judge, reporter: Reporter, memory: Arc<Memory>) -> Self {
        Self { judge, reporter, learns: Some(memory) }
    }

    async fn validate(&self, body: &[u8], deadline: Instant) -> Result<Vec<u8>, BadReview> {
        let review = Review::parse(body)?;
        let verdict = self.judge.validate(&review.request, Timestamp::now(), deadline).await?;
        if let Some(memory) = self.learns.as_ref().filter(|_| verdict.outcome.allowed) {
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
    fn answer(&self, endpoint: Endpoint, body: Bytes, deadline: Instant) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            let answered = match endpoint {
                Endpoint::Validate => self.validate(&body, deadline).await,
                Endpoint::Mutate => self.mutate(&body, deadline).await,
            };
            match answered {
                Ok(body) => Reply { status: StatusCode::OK, body },
                Err(error) => {
                    tracing::warn!(?endpoint, %error, "a body was no review");
                    Reply { status: StatusCode::BAD_REQUEST, body: reply::bad_request(&error) }
                }
            }
        })
    }

    fn panicked(&self, endpoint: Endpoint, body: &[u8]) -> Reply {
        let uid = uid_of(body).unwrap_or_default();
        let body = match endpoint {
            Endpoint::Mutate => reply::allow_with_patch(&uid, None),
            Endpoint::Validate => reply::undecided(&uid, !is_gate(body), PANICKED),
        };
        Reply { status: StatusCode::OK, body }
    }
}

/// Whether a review is of a kind that is refused when it cannot be judged: the CREATE of what may be a record, commits of
/// Sveltos, and overrides, which open rules for a while.
fn is_gate(body: &[u8]) -> bool {
    Review::parse(body).is_ok_and(|review| {
        let (request, kind) = (&review.request, &review.request.kind);
        let is_commit = kind.group == sveltos::LIB_GROUP && kind.kind == sveltos::CONFIGURATION_GROUP;
        let is_override = kind.group == overrides::GROUP && kind.kind == overrides::KIND;
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
            is_gate(review.to_string().as_bytes())
        };
        assert!(gate(overrides::GROUP, overrides::KIND) && gate(sveltos::LIB_GROUP, sveltos::CONFIGURATION_GROUP));
        assert!(!gate("apps", "Deployment"));
    }
}
