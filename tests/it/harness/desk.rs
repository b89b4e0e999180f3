//! The real webhook behind its router, without a socket.

use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use interlock_engine::policy::Policy;
use interlock_engine::release::record::INFLATE_LIMIT;
use release_interlock::budget::Budget;
use release_interlock::judge::Judge;
use release_interlock::serve::https::metrics::HttpsMetrics;
use release_interlock::serve::https::{Limits, admission};
use release_interlock::serve::report::Reporter;
use release_interlock::serve::report::metrics::ReportMetrics;
use release_interlock::serve::webhook::Webhook;
use release_interlock::world::World;
use release_interlock::world::memory::Memory;
use serde_json::{Value, json};

use crate::harness::client::{Answer, request, send};
use crate::harness::fixtures::creation;
use ::http::{Method, StatusCode};

pub(crate) struct Desk {
    router: Router,
    pub(crate) metrics: Arc<ReportMetrics>,
}

impl Desk {
    pub(crate) fn new(world: Arc<dyn World>) -> Self {
        Self::of(Judge::new(Policy::shipped().unwrap(), world, Arc::new(Budget::new(2 * INFLATE_LIMIT))))
    }

    pub(crate) fn of(judge: Judge) -> Self {
        Self::with(|reporter| Webhook::new(judge, reporter))
    }

    /// Remembers what it admits.
    pub(crate) fn standalone(memory: Arc<Memory>) -> Self {
        let judge = Judge::new(Policy::shipped().unwrap(), memory.clone(), Arc::new(Budget::new(2 * INFLATE_LIMIT)));
        Self::with(|reporter| Webhook::standalone(judge, reporter, memory))
    }

    fn with(webhook: impl FnOnce(Reporter) -> Webhook) -> Self {
        let metrics = Arc::new(ReportMetrics::default());
        let webhook = webhook(Reporter::new(metrics.clone()));
        let router =
            admission::router(Arc::new(webhook), &Limits::default(), Arc::new(HttpsMetrics::default()), Arc::default());
        Self { router, metrics }
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        send(&self.router, request(Method::POST, path, Some("application/json"), body.into())).await
    }

    /// The answer to a review: whether it is allowed, and its message or warnings.
    pub(crate) async fn judge(&self, review: &Value) -> (bool, String) {
        let answer = self.post("/validate", review.to_string()).await;
        assert_eq!(answer.status, StatusCode::OK);
        let response = answer.json()["response"].clone();
        assert_eq!(response["uid"], review["request"]["uid"]);
        let allowed = response["allowed"].as_bool().unwrap();
        if !allowed {
            assert_eq!(
                (&response["status"]["code"], &response["status"]["reason"]),
                (&json!(403), &json!("Forbidden"))
            );
        }
        let warnings =
            response["warnings"].as_array().map(|all| all.iter().filter_map(Value::as_str).collect::<Vec<_>>());
        let message = response["status"]["message"].as_str().map(str::to_owned);
        (allowed, message.unwrap_or_else(|| warnings.unwrap_or_default().join(" ")))
    }

    pub(crate) async fn answers_the_next_honest_review(&self) {
        assert_eq!(self.judge(&creation("pending-install")).await, (true, String::new()));
    }
}
