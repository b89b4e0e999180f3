//! Hostile requests get the answer of the same request without its padding, within the steps that a review may cost. So does
//! the largest legitimate request, far below them.

use std::time::Duration;

use interlock_engine::effort::Effort;
use interlock_engine::review::Review;
use release_interlock::judge::Judgement;

use crate::harness::standalone::Standalone;

#[path = "../../benches/fixtures/hostile.rs"]
mod hostile;

use hostile::{ALL, Hostile, Situation, Stage};

/// Whether a request is allowed, the rules that refuse it, and the steps that it cost.
async fn judged(situation: &Situation) -> (bool, Vec<&'static str>, u64) {
    let judge = situation.judge();
    let review = Review::parse(situation.review.as_bytes()).unwrap();
    // Not the time is bounded here, on a machine that does other things too.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(600);
    let Judgement { outcome, decision } =
        judge.validate(&review.request, Stage::default().now, deadline).await.unwrap();
    let rules = outcome.refusals().map(|judged| judged.violation.rule.as_str()).collect();
    (outcome.allowed, rules, decision.effort)
}

#[tokio::test]
async fn padding_changes_no_answer_and_costs_no_more_than_a_review_may() {
    for Hostile { name, padded, plain } in ALL.map(|request| request(&Stage::default())) {
        let (allowed, rules, effort) = judged(&padded).await;
        let (plainly_allowed, plain_rules, _) = judged(&plain).await;
        assert!(!allowed && !plainly_allowed, "{name}: {allowed} {plainly_allowed}");
        // A record that cannot be read breaks rules of its own, in place of those that need its body.
        let is_unreadable = name.contains("60 MiB");
        assert!(rules == plain_rules || is_unreadable, "{name}: {rules:?}, without padding {plain_rules:?}");
        assert!(effort <= Effort::of_review().left(), "{name}: {effort} steps");
    }
}

#[tokio::test]
async fn work_grows_with_the_text_and_never_with_its_square() {
    for (small, large) in hostile::grown() {
        let (_, _, of_small) = judged(&small.padded).await;
        let (_, _, of_large) = judged(&large.padded).await;
        assert!(of_large < 6 * of_small, "{}: {of_small} steps, four times as large: {of_large}", small.name);
    }
}

#[tokio::test]
async fn the_largest_legitimate_requests_fit_four_times() {
    for Hostile { name, padded, .. } in hostile::legitimate(&Stage::default()) {
        let (allowed, rules, effort) = judged(&padded).await;
        assert!(allowed, "{name}: {rules:?}");
        assert!(effort * 4 <= Effort::of_review().left(), "{name}: {effort} steps");
    }
}

/// The limit of a replica in the shipped manifests, in bytes.
fn memory_limit() -> u64 {
    let deployment = include_str!("../../manifests/base/deployment.yaml");
    let named = deployment.lines().filter_map(|line| line.trim().strip_prefix("memory: ")?.strip_suffix("Mi"));
    // Beside the request.
    named.map(|mebibytes| mebibytes.parse::<u64>().unwrap() << 20).max().unwrap()
}

#[tokio::test]
async fn many_users_at_a_time_leave_a_third_of_the_memory_to_spare() {
    let server = Standalone::start(&[], &[]);
    for (index, request) in ALL.iter().enumerate() {
        let stage = Stage { namespace: format!("shop-{index}"), now: jiff::Timestamp::now() };
        let padded = request(&stage).padded;
        for creation in padded.creations() {
            server.post("/validate?timeout=30s", creation, &[]).await;
        }
        let users = (0..8).map(|user| padded.review.replace("\"mallory\"", &format!("\"user-{user}\"")));
        let answers = users.map(|review| server.post("/validate?timeout=30s", review, &[]));
        for answer in futures_util::future::join_all(answers).await {
            assert!(!answer.is_empty());
        }
    }
    let (peak, limit) = (server.peak_memory(), memory_limit());
    assert!(peak <= limit / 3 * 2, "{} MiB of {} MiB", peak >> 20, limit >> 20);
}
