//! Regular expressions that tenants write, for the names of Kubernetes objects.
//!
//! These names are ASCII, so patterns are compiled without Unicode. A Unicode class compiles to thousands of states: 4 KiB of
//! `\pL` take 0.4 s and 40 MiB. Flux compiles patterns with Go's `regexp`. A pattern that only one of the two accepts is
//! unusable.

use std::sync::LazyLock;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ast::{
    self, AssertionKind, Ast, ClassSetItem, Flag, Flags, FlagsItemKind, GroupKind, HexLiteralKind, Literal,
    LiteralKind, RepetitionKind, RepetitionRange,
};

use crate::effort::{Effort, OverBudget};

/// The maximum length of a pattern. Compiling it takes at most 0.35 ms.
pub(super) const MAX_PATTERN_BYTES: usize = 1 << 10;

/// The maximum size of a compiled pattern, in bytes. Patterns for names and kinds take a few hundred.
const MAX_PROGRAM_BYTES: usize = 1 << 16;

/// The maximum nesting of groups.
const MAX_NESTING: u32 = 50;

/// The largest number in `{n,m}` that Go accepts, multiplied by the numbers of the enclosing repetitions.
const MAX_REPETITIONS: u32 = 1_000;

/// Steps to compile one byte of a pattern.
pub(super) const COMPILE_STEPS: u64 = 400;

/// Steps to match one byte of a text, per byte of the pattern.
const MATCH_STEPS: u64 = 10;

/// The maximum memory of all compiled patterns, in bytes.
const CACHE_BYTES: u64 = 8 << 20;

/// Compiled patterns, and patterns that cannot be compiled. A pattern costs the same steps if it is cached, so that a review
/// costs the same on every replica.
static COMPILED: LazyLock<Cache<Box<str>, Option<Regex>, PatternMemory>> =
    LazyLock::new(|| Cache::with_weighter(100, CACHE_BYTES, PatternMemory));

/// The result of a pattern on a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternMatch {
    /// The pattern matches the whole text.
    Matches,
    /// The pattern does not match the whole text.
    Differs,
    /// The pattern exceeds a limit, or Go does not accept it. It matches nothing.
    Unusable,
}

/// Whether a pattern matches a whole text. An empty pattern matches everything.
///
/// # Errors
/// It is more work than the review has left.
pub fn matches(pattern: &str, text: &str, effort: &Effort) -> Result<PatternMatch, OverBudget> {
    if pattern.is_empty() || (pattern == text && pattern.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        return Ok(PatternMatch::Matches);
    }
    if pattern.len() > MAX_PATTERN_BYTES {
        return Ok(PatternMatch::Unusable);
    }
    effort.take_text(pattern, COMPILE_STEPS)?;
    effort.take_text(text, MATCH_STEPS.saturating_mul(pattern.len() as u64))?;
    Ok(match compiled(pattern) {
        None => PatternMatch::Unusable,
        Some(regex) if regex.is_match(text.as_bytes()) => PatternMatch::Matches,
        Some(_) => PatternMatch::Differs,
    })
}

fn compiled(pattern: &str) -> Option<Regex> {
    if let Some(known) = COMPILED.get(pattern) {
        return known;
    }
    let compiled = compile(pattern);
    COMPILED.insert(pattern.into(), compiled.clone());
    compiled
}

fn compile(pattern: &str) -> Option<Regex> {
    let tree = ast::parse::ParserBuilder::new().nest_limit(MAX_NESTING).build().parse(pattern).ok()?;
    ast::visit(&tree, GoSyntax { repetitions: Vec::new() }).ok()?;
    RegexBuilder::new(&format!("^(?:{pattern})$"))
        .unicode(false)
        .size_limit(MAX_PROGRAM_BYTES)
        .dfa_size_limit(MAX_PROGRAM_BYTES)
        .build()
        .ok()
}

/// Weighs an entry of the cache by its memory.
#[derive(Clone)]
struct PatternMemory;

impl Weighter<Box<str>, Option<Regex>> for PatternMemory {
    fn weight(&self, pattern: &Box<str>, compiled: &Option<Regex>) -> u64 {
        // The program, and the automaton that matching builds.
        let program = if compiled.is_some() { 2 * MAX_PROGRAM_BYTES } else { 0 };
        (pattern.len() + program + 100) as u64
    }
}

/// Accepts the syntax that has the same meaning in Go and needs no Unicode.
struct GoSyntax {
    /// For each enclosing repetition, how often its content may still be repeated.
    repetitions: Vec<u32>,
}

/// A part of a pattern that Go does not accept, or that needs Unicode.
struct Unsupported;

impl ast::Visitor for GoSyntax {
    type Output = ();
    type Err = Unsupported;

    fn finish(self) -> Result<(), Unsupported> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Unsupported> {
        let is_supported = match ast {
            Ast::ClassUnicode(_) => false,
            Ast::Flags(set) => are_flags_of_go(&set.flags),
            Ast::Group(group) => match &group.kind {
                GroupKind::NonCapturing(flags) => are_flags_of_go(flags),
                GroupKind::CaptureIndex(_) => true,
                GroupKind::CaptureName { name, .. } => {
                    name.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                }
            },
            // `a**` is an error in Go.
            Ast::Repetition(repetition) => {
                let is_single = !matches!(*repetition.ast, Ast::Repetition(_));
                is_single && self.enter_repetition(largest(&repetition.op.kind))
            }
            Ast::Assertion(assertion) => is_assertion_of_go(&assertion.kind),
            Ast::Literal(literal) => is_literal_of_go(literal),
            _ => true,
        };
        if is_supported { Ok(()) } else { Err(Unsupported) }
    }

    fn visit_post(&mut self, ast: &Ast) -> Result<(), Unsupported> {
        if matches!(ast, Ast::Repetition(_)) {
            self.repetitions.pop();
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Unsupported> {
        match item {
            // Go treats `[` in a class as that character.
            ClassSetItem::Unicode(_) | ClassSetItem::Bracketed(_) => Err(Unsupported),
            ClassSetItem::Literal(literal) if !is_literal_of_go(literal) => Err(Unsupported),
            ClassSetItem::Range(range) if !is_literal_of_go(&range.start) || !is_literal_of_go(&range.end) => {
                Err(Unsupported)
            }
            _ => Ok(()),
        }
    }

    fn visit_class_set_binary_op_pre(&mut self, _: &ast::ClassSetBinaryOp) -> Result<(), Unsupported> {
        Err(Unsupported)
    }
}

impl GoSyntax {
    /// Enters a repetition, and returns whether Go accepts it at this place.
    fn enter_repetition(&mut self, times: u32) -> bool {
        let left = self.repetitions.last().copied().unwrap_or(MAX_REPETITIONS);
        self.repetitions.push(left / times.max(1));
        times <= left
    }
}

/// Go has no `\<`, `\>` and `\b{start}`. In Go they mean these characters, and a boundary followed by a text.
fn is_assertion_of_go(kind: &AssertionKind) -> bool {
    use AssertionKind::{EndLine, EndText, NotWordBoundary, StartLine, StartText, WordBoundary};
    matches!(kind, StartLine | EndLine | StartText | EndText | WordBoundary | NotWordBoundary)
}

/// Go has no `\u`.
fn is_literal_of_go(literal: &Literal) -> bool {
    match &literal.kind {
        LiteralKind::HexFixed(kind) | LiteralKind::HexBrace(kind) => *kind == HexLiteralKind::X,
        _ => true,
    }
}

fn are_flags_of_go(flags: &Flags) -> bool {
    flags.items.iter().all(|item| match item.kind {
        FlagsItemKind::Negation => true,
        FlagsItemKind::Flag(flag) => match flag {
            Flag::CaseInsensitive | Flag::MultiLine | Flag::DotMatchesNewLine | Flag::SwapGreed => true,
            Flag::Unicode | Flag::CRLF | Flag::IgnoreWhitespace => false,
        },
    })
}

fn largest(kind: &RepetitionKind) -> u32 {
    match kind {
        RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => 1,
        RepetitionKind::Range(RepetitionRange::Exactly(count) | RepetitionRange::AtLeast(count)) => *count,
        RepetitionKind::Range(RepetitionRange::Bounded(_, most)) => *most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> PatternMatch {
        matches(pattern, text, &Effort::of_review()).unwrap()
    }

    #[test]
    fn patterns_match_as_in_go() {
        use PatternMatch::{Differs, Matches};
        for (pattern, text, wanted) in [
            ("web-.*", "web-1", Matches),
            ("web-.*", "web", Differs),
            ("[^a]+", "web", Matches),
            ("[^a]+", "api", Differs),
            ("(?i)WEB", "web", Matches),
            ("(?i:w)eb", "Web", Matches),
            ("(?U)w+", "www", Matches),
            (r"\w+\d{2}", "web12", Matches),
            ("[[:alpha:]]+", "web", Matches),
            ("web|api", "api", Matches),
            ("we", "web", Differs),
            ("(?P<n>w)eb", "web", Matches),
            ("a{1000}", "a", Differs),
            ("ü", "web", Differs),
        ] {
            assert_eq!(found(pattern, text), wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_over_a_limit_is_unusable() {
        let long = "a|".repeat(MAX_PATTERN_BYTES);
        let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        for pattern in [
            long.as_str(),
            deep.as_str(),
            r"(?i)\pL",
            r"\p{Greek}",
            r"(?u)\pL",
            "(?u)web",
            "(?u:w)eb",
            "(?x)web",
            r"[\pL]",
            "[a-z&&[^b]]",
            "a{1001}",
            r"(\w{100}){100}",
            "web(",
            "w**",
            "(a{100}){11}",
            r"\<web\>",
            r"\b{start}web",
            r"\u0077eb",
            r"[\U00000077]eb",
            "(?P<a.b>web)",
        ] {
            assert_eq!(found(pattern, "web"), PatternMatch::Unusable, "{pattern:.20}");
        }
    }

    #[test]
    fn a_pattern_costs_the_same_whether_it_is_cached_or_not() {
        let cost = || {
            let effort = Effort::of_review();
            matches("cached-(a|b)+", "cached-a", &effort).unwrap();
            effort.used()
        };
        assert_eq!(cost(), cost());
        assert!(cost() > 0);
    }
}
