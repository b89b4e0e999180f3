//! Asks the readers of Go.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::programs::assets;

/// The answers to questions, in their order. See `tests/readers/main.go` for both.
pub(super) fn answers(questions: Vec<Value>) -> Vec<Value> {
    let mut go = Command::new(assets::go_readers()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (go.stdin.take().unwrap(), go.stdout.take().unwrap());
    let count = questions.len();
    let asking = thread::spawn(move || questions.iter().for_each(|question| writeln!(input, "{question}").unwrap()));
    let lines = BufReader::new(output).lines().map(|line| unbounded(&line.unwrap()));
    let answers: Vec<_> = lines.collect();
    asking.join().unwrap();
    assert!(go.wait().unwrap().success());
    assert_eq!(answers.len(), count);
    answers
}

/// A JSON text, however deep it is nested below the limit of serde: null then, which no answer is.
fn unbounded(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_default()
}

/// Why Go cannot read an input.
pub(super) fn error(answer: &Value) -> Option<&str> {
    answer.get("error").and_then(Value::as_str)
}
