//! Results as JUnit XML, for CI systems. Written by hand, because these few elements do not justify a crate.

use std::fmt::Write;

use interlock_engine::text::{MAX_MESSAGE_BYTES, printable_lines};

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

/// Escapes text for XML and limits its length. Replaces unprintable characters and characters that XML does not allow.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len().min(MAX_MESSAGE_BYTES));
    for character in printable_lines(text, MAX_MESSAGE_BYTES).chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use interlock_engine::text::is_printable;

    use super::*;

    #[test]
    fn a_hostile_suite_gives_a_valid_and_bounded_file() {
        let hostile = format!("\u{1b}[2J\u{0}\u{fffe}\u{202e}<a b=\"'&]]>\n\t{}", "x".repeat(1 << 20));
        let failure =
            StepFailure { step: 1, expected: hostile.clone(), got: hostile.clone(), messages: vec![hostile.clone()] };
        let case = CaseResult { name: hostile, line: 3, failures: vec![failure], took: Duration::ZERO };
        let xml = report(&[SuiteRun { file: PathBuf::from("a\u{1b}.test.yaml"), cases: vec![case], error: None }]);
        // Escapes make the text a little longer.
        assert!(xml.len() < 4 * MAX_MESSAGE_BYTES, "{} bytes", xml.len());
        assert!(xml.split('\n').all(is_printable));
        let document = roxmltree::Document::parse(&xml).unwrap();
        let failure = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
        assert!(failure.text().unwrap().starts_with("\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}<a b=\"'&]]>\n xxx"));
    }
}
