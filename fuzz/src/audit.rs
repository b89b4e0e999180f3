//! Audit logs and recordings, line by line, as `interlock replay` reads them.
//!
//! Input: the lines of a log.

use release_interlock::offline::replay::Replay;

use super::Input;
use super::scene::{shipped, wait};

/// No more lines than a scene needs: each may hold a record.
const MAX_LINES: usize = 32;

pub fn run(input: &[u8]) -> Input {
    let Ok(text) = std::str::from_utf8(input) else { return Input::Foreign };
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).take(MAX_LINES).collect();
    let (as_recorded, read) = replayed(&lines, true);
    assert_eq!(as_recorded, replayed(&lines, true).0, "the same log, replayed twice");
    let _whatever = replayed(&lines, false);
    if read > 0 { Input::Own } else { Input::Foreign }
}

/// What a replay prints of some lines, and how many of them could be read.
fn replayed(lines: &[&str], as_recorded: bool) -> (Vec<String>, usize) {
    let mut replay = Replay::new(shipped(), as_recorded);
    let (mut printed, mut read) = (Vec::new(), 0);
    for (index, line) in lines.iter().enumerate() {
        match wait(replay.line(index + 1, line)) {
            Ok(results) => {
                read += 1;
                printed.extend(results.iter().map(|result| serde_json::to_string(result).expect("a result is JSON")));
            }
            Err(error) => {
                assert!(error.line == index + 1 && !error.why.is_empty(), "{error}");
                printed.push(error.to_string());
            }
        }
    }
    printed.push(format!("{:?}", (replay.gaps(), replay.now())));
    (printed, read)
}
