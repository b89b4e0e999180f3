#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a benchmark has no callers to report an error to")]

//! What it costs to judge an edit of an object that a release manages, against reading both of its states into
//! `serde_json::Value`, which is where a comparison of values would begin.
//!
//! Timed is everything behind the envelope: marks, difference, and the rules with the answers that a warm cache gives. The
//! two ways take turns; the figures to keep are the ratios.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use interlock_engine::decide::{Step, decide};
use interlock_engine::effort::Effort;
use interlock_engine::evidence::{Answer, CandidateRecords, Evidence, Query, Question};
use interlock_engine::facts::{Facts, RecordBodies, RequestObjects};
use interlock_engine::json::RawObject;
use interlock_engine::policy::Policy;
use interlock_engine::release::stamps::HOLDER;
use interlock_engine::release::{Entry, History, Revision, Stamps, Status, Storage};
use interlock_engine::review::Review;
use jiff::Timestamp;
// For its allocator.
use release_interlock as _;
use serde_json::Value;

#[path = "fixtures/edits.rs"]
mod edits;

use edits::{Edit, deployment, wide};

const ROUNDS: usize = 41;

fn main() {
    println!("{:<44}{:>12}{:>12}{:>10}", "edit of a managed object", "values", "interlock", "x values");
    for edit in [deployment(), wide()] {
        compare(&edit);
    }
}

/// Times both ways on one edit and prints medians and their ratio.
fn compare(edit: &Edit) {
    let world = World::new(edit);
    let policy = Policy::shipped().unwrap();
    let now = "2026-11-21T10:00:00Z".parse().unwrap();
    let body = edit.review();
    let review = Review::parse(&body).unwrap();
    let request = &review.request;
    let ours = || {
        let objects = RequestObjects::read(request).unwrap();
        let bodies = RecordBodies::default();
        let effort = Effort::of_review();
        let facts = Facts::of(request, &objects, &bodies, &effort);
        let mut evidence = Evidence::default();
        let judged = loop {
            match decide(&facts, &policy, &evidence, now) {
                Step::Done(judged) => break judged,
                Step::Ask(query) => {
                    let answer = world.answer(&query);
                    evidence.add(query, answer);
                }
            }
        };
        assert!(judged.len() == 1 && judged[0].violation.message().contains(edit.field), "{judged:?}");
        black_box(judged);
    };
    let values = || {
        let read = |object: Option<RawObject<'_>>| -> Value { serde_json::from_str(object.unwrap().get()).unwrap() };
        black_box((read(request.old_object), read(request.object)));
    };
    let repeat = u32::try_from((1_000_000 / body.len()).max(1)).unwrap();
    let sample = |way: &dyn Fn()| {
        // The allocator puts off the tidying behind many small values until somebody asks for a large block.
        drop(black_box(Vec::<u8>::with_capacity(1 << 20)));
        let start = Instant::now();
        for _ in 0..repeat {
            way();
        }
        start.elapsed() / repeat
    };
    let mut samples: [Vec<Duration>; 2] = Default::default();
    for _ in 0..ROUNDS {
        samples[0].push(sample(&values));
        samples[1].push(sample(&ours));
    }
    let [values, ours] = samples.map(|mut all| {
        all.sort();
        all[all.len() / 2]
    });
    let micros = |duration: Duration| format!("{:.1} us", duration.as_secs_f64() * 1e6);
    println!(
        "{:<44}{:>12}{:>12}{:>10.2}",
        format!("{} ({} KiB body)", edit.name, body.len() >> 10),
        micros(values),
        micros(ours),
        values.as_secs_f64() / ours.as_secs_f64()
    );
}

/// What a warm cache answers: a deployed release, and the object's document.
struct World {
    candidate: CandidateRecords,
    document: Arc<Value>,
}

impl World {
    fn new(edit: &Edit) -> Self {
        let created: Timestamp = "2026-11-20T10:00:00Z".parse().unwrap();
        let mut stamps = Stamps::default();
        stamps.set(HOLDER, "ci-bot".to_owned());
        let entry = Entry {
            name: "sh.helm.release.v1.web.v7".to_owned(),
            uid: "5f0d4c63-92e5-4f7e-8a37-0d3a4b6a9c11".to_owned(),
            resource_version: "4711".to_owned(),
            revision: Revision(7),
            status: Status::Deployed,
            created: Some(created),
            stamps,
        };
        let history = History::new(vec![entry]);
        let candidate = CandidateRecords {
            storage: Storage::Secret,
            namespace: "shop".to_owned(),
            history,
            held_for_origin: false,
        };
        Self { candidate, document: Arc::new(edit.document.clone()) }
    }

    fn answer(&self, query: &Query) -> Answer {
        match query {
            Query::Release(it) => it.answered(vec![self.candidate.clone()]),
            Query::Document(it) => it.answered(Ok(Some(self.document.clone()))),
            Query::HelmReleases(it) => it.answered(Ok(Vec::new())),
            Query::Overrides(it) => it.answered(Vec::new()),
            query => panic!("a rule asks what a warm cache does not answer: {query:?}"),
        }
    }
}
