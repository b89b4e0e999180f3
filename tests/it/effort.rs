//! Hostile requests get the answer of the same request without its padding, within the steps that a review may cost. So does
//! the largest legitimate request, far below them.

use std::time::Duration;

use release_interlock::engine::effort::Effort;
use release_interlock::engine::review::Review;
use release_interlock::judge::Judgement;

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
