//! Answers of the API server, of which a part is kept while they arrive, against a tree of the whole answer.
//!
//! Input: the path of a GET, and in the next lines its answer.

use release_interlock::world::kubernetes::intake::kept_of;
use serde_json::Value;

use super::Input;
use super::json::unique;

/// The member that marks an object that was too large.
const CUT: &str = "cut";

pub fn run(input: &[u8]) -> Input {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return Input::Foreign };
    let (path, answer) = (&input[..end], &input[end + 1..]);
    let Ok(path) = std::str::from_utf8(path) else { return Input::Foreign };
    let Some(kept) = kept_of(path, [answer]) else { return Input::Foreign };
    for length in [1, 7, 1 + answer.len() / 2] {
        assert_eq!(kept_of(path, answer.chunks(length)).as_ref(), Some(&kept), "in parts of {length}");
    }
    let whole = std::str::from_utf8(answer).ok().and_then(unique);
    // A watch sends several values, and only an object is an answer.
    let Some(whole) = whole.filter(Value::is_object) else { return Input::Own };
    let kept = kept.expect("an answer in JSON");
    let part: Value = serde_json::from_slice(&kept).expect("what is kept is JSON");
    assert!(is_part(&part, &whole), "{part} is no part of {whole}");
    if !has_cut(&part) {
        assert_eq!(kept_of(path, [kept.as_slice()]), Some(Ok(kept)), "what is kept is kept again");
    }
    Input::Own
}

/// Whether something is left of a value if members and items are taken away.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part.iter().all(|(name, part)| {
            name == CUT && *part == Value::Bool(true) || whole.get(name).is_some_and(|whole| is_part(part, whole))
        }),
        (Value::Array(part), Value::Array(whole)) => {
            let mut whole = whole.iter();
            part.iter().all(|part| whole.any(|whole| is_part(part, whole)))
        }
        _ => part == whole,
    }
}

fn has_cut(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key(CUT) || members.values().any(has_cut),
        Value::Array(items) => items.iter().any(has_cut),
        _ => false,
    }
}
