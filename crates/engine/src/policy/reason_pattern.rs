//! The pattern for the reason of a new override.

use regex::{Regex, RegexBuilder};

/// The maximum length of a pattern, in bytes. A pattern for a ticket takes about thirty.
pub(crate) const MAX_PATTERN_BYTES: usize = 1 << 10;

/// The maximum size of a compiled pattern, in bytes. `\w{2,10}` takes half of it, because `\w` is a letter of any script.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

/// The maximum length of a reason that is compared, in bytes. The definition of ReleaseOverrides allows 500 characters.
const MAX_REASON_BYTES: usize = 2_000;

/// A regular expression that must match a part of the reason of a new override, like `grep -E` and Go's `MatchString`. To match
/// the entire reason, use `^` and `$`. Patterns are compiled with the policy, never during a review.
#[derive(Debug, Clone)]
pub struct ReasonPattern {
    regex: Regex,
    /// A reason that matches. It is shown to refused users.
    pub example: String,
}

impl ReasonPattern {
    /// Compiles a pattern with its example.
    ///
    /// # Errors
    /// Why the pattern cannot be used, on one line.
    pub(crate) fn new(pattern: &str, example: impl Into<String>) -> Result<Self, String> {
        Ok(Self { regex: compiled(pattern)?, example: example.into() })
    }

    /// Whether a reason matches.
    #[must_use]
    pub fn matches(&self, reason: &str) -> bool {
        reason.len() <= MAX_REASON_BYTES && self.regex.is_match(reason)
    }

    /// The pattern as in the policy.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }
}

impl PartialEq for ReasonPattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() && self.example == other.example
    }
}

impl Eq for ReasonPattern {}

/// Compiles a pattern within the limits.
///
/// # Errors
/// Why the pattern cannot be used, on one line.
pub(crate) fn compiled(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(format!("it has {} bytes, and at most {MAX_PATTERN_BYTES} are allowed", pattern.len()));
    }
    let built = RegexBuilder::new(pattern).size_limit(MAX_PROGRAM_BYTES).dfa_size_limit(MAX_PROGRAM_BYTES).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            "it is too large once compiled; repeat less, for example `[0-9]{1,6}`".to_owned()
        }
        // The first lines show the position in the pattern. The last line has the error.
        error => {
            let drawn = error.to_string();
            drawn.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_anywhere_unless_it_is_anchored() {
        let matches = |pattern: &str, reason: &str| ReasonPattern::new(pattern, "").unwrap().matches(reason);
        assert!(matches("[A-Z]{2,10}-[0-9]+", "OPS-12: roll back the image"));
        assert!(matches("[A-Z]{2,10}-[0-9]+", "see OPS-12"));
        assert!(!matches("^[A-Z]{2,10}-[0-9]+", "see OPS-12"));
        assert!(!matches("^OPS-[0-9]+$", "OPS-12: roll back the image"));
        assert!(!matches("OPS", "ops 12") && matches("(?i)OPS", "ops 12"));
    }

    #[test]
    fn usual_patterns_compile_and_hostile_ones_are_refused() {
        for pattern in [
            r"\b[A-Z]{2,10}-\d{1,6}\b",
            r"\w{2,10}-\d{1,6}",
            r"^(?:INC|CHG)\d{7}\b",
            r"(?i)https://tickets\.example\.com/\S+",
        ] {
            assert!(compiled(pattern).is_ok(), "{pattern}: {:?}", compiled(pattern));
        }
        for (pattern, wanted) in [
            (r"(\w{100}){100}", "too large once compiled"),
            (&*"a".repeat(MAX_PATTERN_BYTES + 1), "it has 1025 bytes, and at most 1024 are allowed"),
            ("OPS-[0-9", "unclosed character class"),
            ("(?=OPS)", "look-around"),
            (r"\p{Nonsense}", "Unicode property not found"),
        ] {
            let error = compiled(pattern).unwrap_err();
            assert!(error.contains(wanted) && error.lines().count() == 1, "{pattern}: {error}");
        }
        assert!(compiled(&"a".repeat(MAX_PATTERN_BYTES)).is_ok());
    }

    #[test]
    fn a_reason_that_cannot_be_stored_matches_nothing() {
        let pattern = ReasonPattern::new("a", "a").unwrap();
        assert!(pattern.matches(&"a".repeat(MAX_REASON_BYTES)) && !pattern.matches(&"a".repeat(MAX_REASON_BYTES + 1)));
    }
}
