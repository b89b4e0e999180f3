//! A whole AdmissionReview: parsed, stamped, judged and answered, in a small world.
//!
//! Input: a scene, whose last line is the review.

use interlock_engine::decide::ReviewFailure;
use interlock_engine::effort::Effort;
use interlock_engine::outcome::Outcome;
use interlock_engine::reply::{allow_with_patch, answer};
use interlock_engine::review::{Review, head_of};
use release_interlock::judge::NotJudged;
use serde_json::Value;

use super::Input;
use super::scene::{Scene, no_deadline, wait};

/// The limits of a warning that the API server passes on, and of a message.
const MAX_WARNING_CHARS: usize = 120;
const MAX_MESSAGE_BYTES: usize = 8 * 1024;

pub fn run(input: &[u8]) -> Input {
    let _whatever = (Review::parse(input).is_ok(), head_of(input).is_some());
    let Some(scene) = Scene::read(input) else { return Input::Foreign };
    let (judge, body) = (scene.judge(), scene.review.as_bytes());
    let request = match wait(judge.parse(body, no_deadline())) {
        Ok(review) => review.request,
        Err(NotJudged::Failed(why)) => panic!("nobody else waits for a core: {why:?}"),
        Err(NotJudged::Malformed(bad)) => {
            is_printable(&bad.to_string());
            return if serde_json::from_str::<Value>(scene.review).is_ok() { Input::Own } else { Input::Foreign };
        }
    };
    let head = head_of(body);
    assert!(head.is_none_or(|head| head.uid == request.uid && head.operation == request.operation), "another head");
    let patch = wait(judge.mutate(&request, scene.now, no_deadline()));
    if let Ok(patch) = &patch {
        let reply = parsed(&allow_with_patch(&request.uid, patch.as_ref()));
        assert_eq!(reply["response"]["uid"], *request.uid);
    }
    let judged = || wait(judge.validate(&request, scene.now, no_deadline()));
    match (judged(), judged()) {
        (Ok(one), Ok(other)) => {
            assert!(one.decision.effort <= Effort::of_review().left());
            assert_eq!(one.outcome, other.outcome, "the same review, judged twice");
            is_answerable(&request.uid, &one.outcome);
        }
        (one, other) => {
            assert_eq!(one.map(|_| ()), other.map(|_| ()));
            assert!(patch.is_err(), "an object is stamped that cannot be judged");
        }
    }
    for why in [ReviewFailure::Late, ReviewFailure::Busy] {
        is_answerable(&request.uid, &judge.undecided(&request.head(), why).outcome);
    }
    Input::Own
}

/// Whether an outcome makes a reply that the API server takes.
fn is_answerable(uid: &str, outcome: &Outcome) {
    let reply = parsed(&answer(uid, outcome));
    assert_eq!(reply["response"]["uid"], *uid);
    assert_eq!(reply["response"]["allowed"], outcome.allowed);
    assert_eq!(outcome.allowed, outcome.code == 200, "{}", outcome.code);
    assert_eq!(outcome.allowed, outcome.message.is_empty());
    assert!(outcome.message.len() <= MAX_MESSAGE_BYTES, "{} bytes", outcome.message.len());
    is_printable(&outcome.message);
    for warning in &outcome.warnings {
        assert!(warning.chars().count() <= MAX_WARNING_CHARS, "{warning}");
        is_printable(warning);
    }
}

fn parsed(reply: &[u8]) -> Value {
    serde_json::from_slice(reply).expect("a reply is JSON")
}

fn is_printable(text: &str) {
    assert!(!text.contains(char::is_control), "{text:?}");
}
