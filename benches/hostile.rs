#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark has no callers to report an error to")]

//! What hostile requests cost: time and steps, as multiples of the same request without its padding. A request is judged from
//! its bytes on, as the webhook does, in front of a cluster in memory.
//!
//! Padded and plain requests take turns, so that a machine that slows down slows both. `tests/it/effort.rs` holds the steps to
//! their bounds; the times belong here.

use std::hint::black_box;
use std::time::{Duration, Instant};

use interlock_engine::review::Review;
use release_interlock::judge::{Judge, Judgement};

#[path = "fixtures/hostile.rs"]
mod hostile;

use hostile::{ALL, Hostile, Stage};

const ROUNDS: usize = 5;

fn main() {
    println!(
        "{:<36}{:>10}{:>12}{:>12}{:>10}{:>10}{:>9}",
        "request", "body", "padded", "plain", "x plain", "Msteps", "ns/step"
    );
    let stage = Stage::default();
    for Hostile { name, padded, plain } in ALL.map(|request| request(&stage)) {
        let (padded_judge, plain_judge) = (padded.judge(), plain.judge());
        let (mut long, mut short) = (Vec::new(), Vec::new());
        let mut steps = 0;
        for _ in 0..ROUNDS {
            let (time, used) = timed(&padded_judge, &padded.review);
            long.push(time);
            steps = used;
            short.push(timed(&plain_judge, &plain.review).0);
        }
        let (long, short) = (median(long), median(short));
        println!(
            "{name:<36}{:>6} KiB{:>9.1} ms{:>9.3} ms{:>10.0}{:>10.1}{:>9.2}",
            padded.review.len() >> 10,
            long.as_secs_f64() * 1e3,
            short.as_secs_f64() * 1e3,
            long.as_secs_f64() / short.as_secs_f64(),
            steps as f64 / 1e6,
            long.as_secs_f64() * 1e9 / steps as f64
        );
    }
}

fn timed(judge: &Judge, review: &str) -> (Duration, u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let started = Instant::now();
    let judged = runtime.block_on(async {
        let review = Review::parse(review.as_bytes()).unwrap();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        let Judgement { outcome, decision } =
            judge.validate(&review.request, Stage::default().now, deadline).await.unwrap();
        assert!(!outcome.allowed);
        decision.effort
    });
    (started.elapsed(), black_box(judged))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
