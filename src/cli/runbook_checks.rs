//! Prints the runbook's checks for people.

use interlock_engine::rules::{RunbookCheck, RunbookResult};

use super::table::{RED, YELLOW, painted, printable};

/// One check per line.
pub(super) fn checks(checks: &[RunbookCheck], coloured: bool) -> String {
    let lines = checks.iter().map(|RunbookCheck { name, evidence, result }| {
        let (mark, colour, why) = match result {
            RunbookResult::Passed => ("ok  ", None, ""),
            RunbookResult::Failed(_) => ("FAIL", Some(RED), ""),
            RunbookResult::Unknown(why) => ("?   ", Some(YELLOW), why.as_str()),
        };
        let mark = painted(mark, colour.filter(|_| coloured));
        let why = if why.is_empty() { String::new() } else { format!(": {}", printable(why)) };
        format!("  {mark}  {:<14}  {}{why}\n", name.as_str(), printable(evidence))
    });
    lines.collect()
}
