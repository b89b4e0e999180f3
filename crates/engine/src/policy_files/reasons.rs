//! The pattern that the reasons of new overrides must match, with its example.

use super::file::{OverridesFile, Spanned};
use super::problem::Problems;
use crate::policy::ReasonPattern;

/// The lengths of a reason that the definition of ReleaseOverrides allows, in characters.
const REASON_CHARS: std::ops::RangeInclusive<usize> = 5..=500;

/// The pattern of a file without problems.
pub(super) fn of_file(file: &OverridesFile) -> Option<ReasonPattern> {
    ReasonPattern::new(file.reason_pattern.value()?, file.reason_example.value()?).ok()
}

/// Reports a pattern without an example, and an example that would be refused.
pub(super) fn check(file: &OverridesFile, problems: &mut Problems<'_>) {
    match (file.reason_pattern.as_ref(), file.reason_example.as_ref()) {
        (Some(pattern), None) => problems.at(
            pattern.key,
            "`reasonPattern` needs `reasonExample`, a reason that matches it: a refusal shows the example",
        ),
        // A wrong pattern is already reported.
        (None, Some(example)) if problems.is_empty() => {
            problems.at(example.key, "`reasonExample` needs `reasonPattern`, the regular expression that it matches");
        }
        (Some(_), Some(example)) => check_example(file, example, problems),
        (None, _) => {}
    }
}

fn check_example(file: &OverridesFile, example: &Spanned<String>, problems: &mut Problems<'_>) {
    let length = example.value.chars().count();
    if !REASON_CHARS.contains(&length) {
        let (least, most) = (REASON_CHARS.start(), REASON_CHARS.end());
        problems.at(example.span, format!("the example has {length} characters; a reason has {least} to {most}"));
    }
    if let Some(pattern) = of_file(file).filter(|pattern| !pattern.matches(&example.value)) {
        let message =
            format!("the example does not match `{}`, so that an override with it would be refused", pattern.as_str());
        problems.at(example.span, message);
    }
}

#[cfg(test)]
mod tests;
