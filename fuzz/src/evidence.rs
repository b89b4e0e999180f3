//! `decide` with the same evidence in another order, and asked for one by one.
//!
//! Input: a scene, whose last line is the review.

use interlock_engine::decide::{Step, decide};
use interlock_engine::effort::Effort;
use interlock_engine::evidence::{Answer, Evidence, Query};
use interlock_engine::facts::{Facts, RequestObjects, Subject};
use interlock_engine::outcome::WeighedViolation;
use interlock_engine::review::Review;
use release_interlock::world::World;

use super::Input;
use super::scene::{Scene, wait};

/// The most queries of a review. A decision asks for each thing once.
const MAX_QUERIES: usize = 200;

pub fn run(input: &[u8]) -> Input {
    let Some(scene) = Scene::read(input) else { return Input::Foreign };
    let Ok(Review { request }) = Review::parse(scene.review.as_bytes()) else { return Input::Foreign };
    let Ok(objects) = RequestObjects::read(&request) else { return Input::Foreign };
    let payloads = objects.payloads(request.operation);
    let bodies = payloads.inflate(&Effort::of_review());
    let policy = scene.policy(request.namespace());
    let step = |evidence: &Evidence| {
        let effort = Effort::of_review();
        let facts = Facts::of(&request, &objects, &bodies, &effort);
        // No rule decides about an override or a Freeze.
        if matches!(facts.subject, Subject::Own(_)) { None } else { Some(decide(&facts, policy, evidence, scene.now)) }
    };
    let mut asked: Vec<(Query, Answer)> = Vec::new();
    let decided = loop {
        match step(&evidence(asked.iter())) {
            None => return Input::Own,
            Some(Step::Done(judged)) => break judged,
            Some(Step::Ask(query)) => {
                assert!(!asked.iter().any(|(known, _)| *known == query), "asked again: {query:?}");
                assert!(asked.len() < MAX_QUERIES, "{query:?}");
                let answer = wait(scene.memory.answer(&query));
                asked.push((query, answer));
            }
        }
    };
    let done = |evidence: &Evidence| match step(evidence) {
        Some(Step::Done(judged)) => judged,
        other => panic!("all evidence is there, and the step is {other:?}"),
    };
    let same = |other: Vec<WeighedViolation>| assert_eq!(decided, other, "the order of the evidence decides");
    same(done(&evidence(asked.iter().rev())));
    for turn in 0..asked.len().min(4) {
        same(done(&evidence(asked[turn..].iter().chain(&asked[..turn]))));
    }
    Input::Own
}

fn evidence<'e>(answers: impl Iterator<Item = &'e (Query, Answer)>) -> Evidence {
    let mut evidence = Evidence::default();
    answers.for_each(|(query, answer)| evidence.add(query.clone(), answer.clone()));
    evidence
}
