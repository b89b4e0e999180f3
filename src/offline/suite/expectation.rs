//! The expected result of a step.

use interlock_engine::rule::RuleId;
use serde::{Deserialize, Serialize};

use crate::offline::replay::{Replayed, ReplayedViolation, ReviewResult};

/// A step with an unexpected result.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct StepFailure {
    /// From 1.
    pub step: usize,
    pub expected: String,
    pub got: String,
    /// The messages that the user would have seen.
    pub messages: Vec<String>,
}

/// `then` of a suite.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ThenFile {
    verdict: ReviewResult,
    /// A rule that was broken or undecided.
    rule: Option<RuleId>,
    mode: Option<ModeName>,
    /// A text that the message contains; `*` stands for any text.
    message: Option<String>,
}

/// The modes in which a rule is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeName {
    Enforce,
    Warn,
    Audit,
}

/// The failure of a step, if its result differs from the expectation. Without an expectation, the request must be admitted, so that
/// the next step can follow.
pub(super) fn failure(then: Option<&ThenFile>, step: usize, replayed: &Replayed) -> Option<StepFailure> {
    let (is_met, expected) = match then {
        None => (replayed.allowed, "admitted".to_owned()),
        Some(then) => (then.is_met(replayed), then.description()),
    };
    if is_met {
        return None;
    }
    let messages = replayed.violations.iter().map(|violation| violation.message.clone()).collect();
    Some(StepFailure { step, expected, got: description(replayed), messages })
}

impl ThenFile {
    /// Why an expectation always fails or never fails.
    pub(super) fn never_or_always(&self) -> Option<&'static str> {
        let Self { verdict, rule, mode, message } = self;
        if *verdict == ReviewResult::Allowed && (rule.is_some() || mode.is_some() || message.is_some()) {
            return Some("expects `allowed`, which means that no rule is broken: remove `rule`, `mode` and `message`");
        }
        message
            .as_ref()
            .filter(|pattern| matches_everything(pattern))
            .map(|_| "expects a message that every message is: name a part of the text, or remove `message`")
    }

    fn is_met(&self, replayed: &Replayed) -> bool {
        let wants_finding = self.rule.is_some() || self.mode.is_some() || self.message.is_some();
        self.verdict == ReviewResult::of(replayed)
            && (!wants_finding || replayed.violations.iter().any(|violation| self.names(violation)))
    }

    fn names(&self, violation: &ReplayedViolation) -> bool {
        self.rule.is_none_or(|rule| rule.as_str() == violation.rule)
            && self.mode.is_none_or(|mode| mode.as_str() == violation.mode)
            && self.message.as_ref().is_none_or(|pattern| holds(&violation.message, pattern))
    }

    fn description(&self) -> String {
        let Self { verdict, rule, mode, message } = self;
        let mut description = verdict.as_str().to_owned();
        if let Some(rule) = rule {
            description += &format!(" by {rule}");
        }
        if let Some(mode) = mode {
            description += &format!(" (mode {})", mode.as_str());
        }
        if let Some(message) = message {
            description += &format!(", with the message {message:?}");
        }
        description
    }
}

impl ModeName {
    fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Audit => "audit",
        }
    }
}

fn description(replayed: &Replayed) -> String {
    let rules: Vec<_> = replayed.violations.iter().map(|it| format!("{} (mode {})", it.rule, it.mode)).collect();
    let by = if rules.is_empty() { String::new() } else { format!(" by {}", rules.join(", ")) };
    format!("{}{by}", ReviewResult::of(replayed).as_str())
}

/// Whether a pattern has only stars and spaces.
fn matches_everything(pattern: &str) -> bool {
    pattern.chars().all(|letter| letter == '*' || letter.is_whitespace())
}

/// Whether a text contains the parts between the stars of a pattern, in order. Line breaks in the pattern count as spaces, so that
/// YAML may fold it.
fn holds(text: &str, pattern: &str) -> bool {
    let pattern = pattern.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rest = text;
    pattern.split('*').all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let message = "Cannot roll back shop/web: it is [failed], and this cluster only rolls forward.";
        for pattern in ["shop/web", "Cannot * it is [failed]", "only\n  rolls forward", "*", "roll*forward"] {
            assert!(holds(message, pattern), "{pattern}");
        }
        for pattern in ["shop/api", "forward*Cannot", "it is ?failed?", "forward.*."] {
            assert!(!holds(message, pattern), "{pattern}");
        }
    }
}
