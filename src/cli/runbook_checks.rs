//! Prints the runbook's checks for people.

use interlock_engine::rules::{RunbookCheck, RunbookResult};

use super::table::{PLAIN, RED, YELLOW, printable};

/// One check per line.
pub(super) fn checks(checks: &[RunbookCheck], coloured: bool) -> String {
    let lines = checks.iter().map(|RunbookCheck { name, evidence, result }| {
        let (mark, colour, why) = match result {
            RunbookResult::Passed => ("ok  ", None, ""),
            RunbookResult::Failed(_) => ("FAIL", Some(RED), ""),
            RunbookResult::Unknown(why) => ("?   ", Some(YELLOW), why.as_str()),
        };
        let colour = colour.filter(|_| coloured);
        let (on, off) = (colour.unwrap_or_default(), colour.map_or("", |_| PLAIN));
        let why = if why.is_empty() { String::new() } else { format!(": {}", printable(why)) };
        format!("  {on}{mark}{off}  {:<14}  {}{why}\n", name.as_str(), printable(evidence))
    });
    lines.collect()
}
