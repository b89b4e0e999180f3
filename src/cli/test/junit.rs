//! Results as JUnit XML, which CI systems read. Written by hand: these few elements do not justify a crate.

use std::fmt::Write;

use super::suite_run::{SuiteRun, chain};
use crate::offline::suite::{CaseResult, StepFailure};

/// Renders all suites.
pub(super) fn report(run: &[SuiteRun]) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"interlock\">\n");
    for run in run {
        suite(&mut xml, run);
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn suite(xml: &mut String, SuiteRun { file, cases, error }: &SuiteRun) {
    let name = escaped(&file.display().to_string());
    let failed = cases.iter().filter(|case| !case.failures.is_empty()).count();
    let errors = usize::from(error.is_some());
    let seconds: f64 = cases.iter().map(|case| case.took.as_secs_f64()).sum();
    let tests = cases.len() + errors;
    // Writing to a string cannot fail.
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failed}\" errors=\"{errors}\" time=\"{seconds:.3}\">"
    );
    for CaseResult { name: case, line, failures, took } in cases {
        let (case, seconds) = (escaped(case), took.as_secs_f64());
        let _ = write!(
            xml,
            "    <testcase classname=\"{name}\" name=\"{case}\" file=\"{name}\" line=\"{line}\" time=\"{seconds:.3}\">"
        );
        for StepFailure { step, expected, got, messages } in failures {
            let message = escaped(&format!("step {step}: expected {expected}, got {got}"));
            let _ = write!(xml, "<failure message=\"{message}\">{}</failure>", escaped(&messages.join("\n")));
        }
        xml.push_str("</testcase>\n");
    }
    if let Some(error) = error {
        let message = escaped(&chain(error));
        let _ = writeln!(
            xml,
            "    <testcase classname=\"{name}\" name=\"suite\"><error message=\"{message}\"/></testcase>"
        );
    }
    xml.push_str("  </testsuite>\n");
}

/// Escapes text for XML, and replaces characters that XML does not allow.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            _ if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}
