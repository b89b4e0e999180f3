#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark has no callers to report an error to")]

//! What a review costs, against two references in the same run: the floor, which does with the same libraries only what
//! nobody can avoid, and the naive way, which reads everything into `serde_json::Value`.
//!
//! The three take turns, so that a machine that slows down slows all of them; the figures to keep are the ratios.

use std::borrow::Cow;
use std::hint::black_box;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::GzDecoder;
use interlock_engine::policy::Policy;
use interlock_engine::reply;
use interlock_engine::review::Review;
use release_interlock::budget::Budget;
use release_interlock::judge::Judge;
use release_interlock::world::memory::Memory;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[path = "fixtures/reviews.rs"]
mod reviews;

use reviews::{deployment_review, record_review};

const ROUNDS: usize = 41;

fn main() {
    println!("{:<38}{:>12}{:>12}{:>12}{:>10}{:>10}", "review", "floor", "interlock", "naive", "x floor", "x naive");
    for (name, size) in [("record, 0.4 MiB JSON", 400 << 10), ("record, 8 MiB JSON", 8 << 20)] {
        let body = record_review(size);
        let sizes = format!("{name} ({:.2} MiB body)", body.len() as f64 / 1048576.0);
        compare(&sizes, &body, floor, naive);
    }
    let body = deployment_review();
    compare(&format!("ordinary object ({} KiB)", body.len() / 1024), &body, envelope, naive_object);
}

/// Times the three ways on one body and prints medians and ratios.
fn compare(name: &str, body: &[u8], floor: impl Fn(&[u8]), naive: impl Fn(&[u8])) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let budget = Arc::new(Budget::new(258 << 20));
    let judge = Judge::new(Policy::shipped().unwrap(), Arc::new(Memory::new(1 << 20)), budget);
    let ours = |body: &[u8]| {
        let review = Review::parse(body).unwrap();
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(3);
        let verdict = runtime.block_on(judge.validate(&review.request, now, deadline)).unwrap();
        assert!(verdict.outcome.allowed, "{}", verdict.outcome.message);
        black_box(reply::answer(&review.request.uid, &verdict.outcome));
    };
    // Small bodies are repeated until a sample is long enough to be timed.
    let repeat = (400_000 / body.len()).max(1);
    let sample = |way: &dyn Fn(&[u8])| {
        let start = Instant::now();
        for _ in 0..repeat {
            way(black_box(body));
        }
        start.elapsed() / u32::try_from(repeat).unwrap()
    };
    let mut samples: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        samples[0].push(sample(&floor));
        samples[1].push(sample(&ours));
        samples[2].push(sample(&naive));
    }
    let [floor, ours, naive] = samples.map(|mut all| {
        all.sort();
        all[all.len() / 2]
    });
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    println!(
        "{name:<38}{:>12}{:>12}{:>12}{:>10.2}{:>10.2}",
        micros(floor),
        micros(ours),
        micros(naive),
        ratio(ours, floor),
        ratio(naive, ours)
    );
}

fn micros(duration: Duration) -> String {
    format!("{:.1} us", duration.as_secs_f64() * 1e6)
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    request: EnvelopeRequest<'a>,
}

#[derive(Deserialize)]
struct EnvelopeRequest<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Secret<'a> {
    #[serde(borrow)]
    data: SecretData<'a>,
}

#[derive(Deserialize)]
struct SecretData<'a> {
    #[serde(borrow)]
    release: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    info: HeadInfo<'a>,
    version: u64,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
}

#[derive(Deserialize)]
struct HeadInfo<'a> {
    #[serde(borrow)]
    status: Cow<'a, str>,
}

/// The borrowed envelope alone.
fn envelope(body: &[u8]) {
    let envelope: Envelope<'_> = serde_json::from_slice(body).unwrap();
    black_box((envelope.request.uid, envelope.request.object));
}

/// Borrowed envelope and object, base64 twice, inflate into a buffer of the right size, borrowed head.
fn floor(body: &[u8]) {
    let envelope: Envelope<'_> = serde_json::from_slice(body).unwrap();
    let secret: Secret<'_> = serde_json::from_str(envelope.request.object.get()).unwrap();
    let gzip = STANDARD.decode(STANDARD.decode(secret.data.release.as_bytes()).unwrap()).unwrap();
    let size = u32::from_le_bytes(*gzip.last_chunk::<4>().unwrap()) as usize;
    let mut json = Vec::with_capacity(size + 1);
    GzDecoder::new(gzip.as_slice()).read_to_end(&mut json).unwrap();
    let head: Head<'_> = serde_json::from_slice(&json).unwrap();
    black_box((head.name, head.info.status, head.version, head.namespace));
}

fn naive(body: &[u8]) {
    let review: Value = serde_json::from_slice(body).unwrap();
    let release = review["request"]["object"]["data"]["release"].as_str().unwrap();
    let gzip = STANDARD.decode(STANDARD.decode(release).unwrap()).unwrap();
    let mut json = Vec::new();
    GzDecoder::new(gzip.as_slice()).read_to_end(&mut json).unwrap();
    let record: Value = serde_json::from_slice(&json).unwrap();
    black_box((&record["name"], &record["info"]["status"], &record["version"], &record["namespace"]));
}

fn naive_object(body: &[u8]) {
    let review: Value = serde_json::from_slice(body).unwrap();
    black_box(&review["request"]["object"]["metadata"]["labels"]);
}
