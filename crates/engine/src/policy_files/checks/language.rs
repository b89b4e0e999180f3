//! Sets of texts as automata, to compare the texts that a glob matches with the possible values of a field.

use std::collections::HashSet;

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::util::syntax;
use regex_automata::{Anchored, MatchKind};

/// The memory of one automaton, in bytes. An automaton of names up to 253 characters has about 100 KiB.
const MAX_BYTES: usize = 4 << 20;

/// The most pairs of states that one comparison visits.
const MAX_PAIRS: usize = 200_000;

/// A set of texts.
#[derive(Debug)]
pub(super) struct Language {
    automaton: dense::DFA<Vec<u32>>,
    start: StateID,
}

impl Language {
    /// The texts that match one of these expressions completely; `None` if that needs too much memory.
    pub(super) fn of<P: AsRef<str>>(expressions: &[P]) -> Option<Self> {
        let config = dense::Config::new()
            .start_kind(StartKind::Anchored)
            // Every match ends at the end of the text, so that no match hides another.
            .match_kind(MatchKind::All)
            .accelerate(false)
            .dfa_size_limit(Some(MAX_BYTES))
            .determinize_size_limit(Some(MAX_BYTES));
        // The syntax with which globset compiles its globs.
        let syntax = syntax::Config::new().utf8(false).dot_matches_new_line(true);
        let mut builder = dense::Builder::new();
        builder
            .configure(config)
            .syntax(syntax)
            .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(MAX_BYTES)));
        let automaton = builder.build_many(expressions).ok()?;
        let start = automaton.start_state(&start::Config::new().anchored(Anchored::Yes)).ok()?;
        Some(Self { automaton, start })
    }

    /// Whether the set has a text.
    pub(super) fn contains(&self, text: &str) -> bool {
        let end = text.bytes().fold(self.start, |state, byte| self.automaton.next_state(state, byte));
        self.accepts(end)
    }

    /// Whether both sets have a text in common. True if that cannot be decided within bounds.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.has_pair(other, |accepts, other_accepts| accepts && other_accepts).unwrap_or(true)
    }

    /// Whether the set has every text of another set. False if that cannot be decided within bounds.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.has_pair(other, |accepts, other_accepts| other_accepts && !accepts).is_some_and(|found| !found)
    }

    fn accepts(&self, state: StateID) -> bool {
        self.automaton.is_match_state(self.automaton.next_eoi_state(state))
    }

    /// Whether a text leads to a wanted pair of verdicts, of this set and the other; `None` if there are too many pairs
    /// of states.
    fn has_pair(&self, other: &Self, is_wanted: fn(bool, bool) -> bool) -> Option<bool> {
        // Both callers search for texts of the other set. A dead state accepts nothing more.
        let wants_others_alone = is_wanted(false, true);
        let letters = self.letters(other);
        let first = (self.start, other.start);
        let (mut seen, mut waiting) = (HashSet::from([first]), vec![first]);
        while let Some((state, other_state)) = waiting.pop() {
            if is_wanted(self.accepts(state), other.accepts(other_state)) {
                return Some(true);
            }
            for letter in &letters {
                let next =
                    (self.automaton.next_state(state, *letter), other.automaton.next_state(other_state, *letter));
                let may_lead_on = !other.automaton.is_dead_state(next.1)
                    && (wants_others_alone || !self.automaton.is_dead_state(next.0));
                if may_lead_on && seen.insert(next) {
                    waiting.push(next);
                }
            }
            if seen.len() > MAX_PAIRS {
                return None;
            }
        }
        Some(false)
    }

    /// One byte for all bytes that neither automaton distinguishes.
    fn letters(&self, other: &Self) -> Vec<u8> {
        let (classes, other_classes) = (self.automaton.byte_classes(), other.automaton.byte_classes());
        let mut seen = HashSet::new();
        (0..=u8::MAX).filter(|byte| seen.insert((classes.get(*byte), other_classes.get(*byte)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use globset::Glob;

    use super::*;

    fn globs(globs: &[&str]) -> Language {
        let expressions: Vec<_> = globs.iter().map(|glob| Glob::new(glob).unwrap().regex().to_owned()).collect();
        Language::of(&expressions).unwrap()
    }

    #[test]
    fn a_glob_meets_what_it_can_match() {
        let names = Language::of(&["^[a-z]([-a-z]{0,61}[a-z])?$"]).unwrap();
        for (glob, meets) in [
            ("shop", true),
            ("*", true),
            ("s?op-*", true),
            ("{Shop,shop}", true),
            ("[A-Zs]hop", true),
            ("Shop", false),
            ("*/*", false),
            ("shop-", false),
            ("", false),
            ("{Shop,sho_p}*", false),
            ("[!a-z]*", false),
            (&"x".repeat(63), true),
            (&"x".repeat(64), false),
        ] {
            assert_eq!(globs(&[glob]).meets(&names), meets, "{glob}");
        }
    }

    #[test]
    fn globs_cover_others_together() {
        for (wide, narrow, covers) in [
            (&["*"][..], &["shop", "sh*"][..], true),
            (&["sh*", "ap?"], &["shop-*", "api"], true),
            (&["[a-m]*", "[!a-m]*", ""], &["*"], true),
            (&["sh*"], &["*op"], false),
            (&["shop"], &["sh*"], false),
            (&["a", "b"], &["a", "c"], false),
        ] {
            assert_eq!(globs(wide).covers(&globs(narrow)), covers, "{wide:?} {narrow:?}");
        }
        assert!(globs(&["sh*"]).contains("shop\n") && !globs(&["sh*"]).contains("api"));
    }

    #[test]
    fn a_glob_that_grows_without_bound_is_no_answer() {
        let glob = Glob::new(&format!("*a{}", "?".repeat(200))).unwrap();
        assert!(Language::of(&[glob.regex()]).is_none());
    }
}
