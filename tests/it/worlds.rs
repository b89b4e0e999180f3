//! Worlds that do not answer: the API server is unreachable, refuses, or takes too long.

use std::sync::Arc;

use interlock_engine::evidence::{Answer, Query, Question};
use interlock_engine::release::History;
use release_interlock::budget::Budget;
use release_interlock::world::kubernetes::Cluster;
use release_interlock::world::{AnswerFuture, QueryBudget, World};

use crate::harness::desk::Desk;
use crate::harness::fixtures::{body, creation, gzip, review, secret};

struct Silent;

impl World for Silent {
    fn answer_for<'w>(&'w self, _: &'w Query, _: QueryBudget<'w>) -> AnswerFuture<'w> {
        Box::pin(std::future::pending())
    }
}

struct Refusing;

impl World for Refusing {
    fn answer_for<'w>(&'w self, _: &'w Query, _: QueryBudget<'w>) -> AnswerFuture<'w> {
        Box::pin(std::future::ready(Answer::Unavailable("the API server answered 403: no".to_owned())))
    }
}

/// Knows only that the release has no other records.
struct HalfBlind;

impl World for HalfBlind {
    fn answer_for<'w>(&'w self, query: &'w Query, _: QueryBudget<'w>) -> AnswerFuture<'w> {
        let answer = match query {
            Query::History(it) => it.answered(History::default()),
            _ => Answer::Unavailable("the API server answered 403: no".to_owned()),
        };
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test]
async fn a_refusal_stands_whatever_else_cannot_be_read() {
    let desk = Desk::new(Arc::new(HalfBlind));
    let mut pending = secret("pending-upgrade", &gzip(body("pending-upgrade").as_bytes()));
    pending["metadata"]["creationTimestamp"] = jiff::Timestamp::now().to_string().into();
    let (allowed, message) = desk.judge(&review("DELETE", Some(&pending), None)).await;
    assert!(!allowed && message.contains("may still be running") && message.contains("could not be run"), "{message}");
}

/// The CREATE of a record is refused with the reason. Other writes are admitted with a warning.
async fn undecided(desk: &Desk, reason: &str) {
    let (allowed, message) = desk.judge(&creation("pending-install")).await;
    assert!(!allowed && message.contains(reason) && message.contains("Could not check "), "{message}");
    let record = |status: &str| secret(status, &gzip(body(status).as_bytes()));
    let (pending, deployed) = (record("pending-upgrade"), record("deployed"));
    let (allowed, warning) = desk.judge(&review("UPDATE", Some(&pending), Some(&deployed))).await;
    assert!(allowed && warning.contains("Could not check "), "{warning}");
    let (allowed, warning) = desk.judge(&review("DELETE", Some(&deployed), None)).await;
    assert!(allowed && warning.contains("Could not check "), "{warning}");
    // Rules without queries still decide.
    let (allowed, message) = desk.judge(&review("UPDATE", Some(&record("superseded")), Some(&deployed))).await;
    assert!(!allowed && message.contains("[illegal-transition]"), "{message}");
    assert!(desk.judge(&review("UPDATE", Some(&deployed), Some(&record("superseded")))).await.0);
}

#[tokio::test]
async fn an_api_server_that_refuses_leaves_rules_undecided() {
    undecided(&Desk::new(Arc::new(Refusing)), "the API server answered 403: no").await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_takes_too_long_leaves_rules_undecided() {
    undecided(&Desk::new(Arc::new(Silent)), "the API server did not answer in time").await;
}

#[tokio::test]
async fn an_api_server_that_cannot_be_reached_leaves_rules_undecided() {
    // A port that was free a moment ago, so nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut config = kube::Config::new(format!("http://127.0.0.1:{port}").parse().unwrap());
    config.default_retry = false;
    let client = kube::Client::try_from(config).unwrap();
    let cluster = Cluster::new(client, Arc::new(Budget::new(1 << 20)));
    undecided(&Desk::new(Arc::new(cluster)), "the API server did not answer").await;
}
