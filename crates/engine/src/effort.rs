//! The budget of a review: every reader of text written by clients uses it up.
//!
//! A few kilobytes can expand to gigabytes of work: gzip inflates, YAML aliases repeat, lists are compared item by
//! item. Readers therefore count their work in *steps*, and stop when the budget of the review is exhausted. The budget
//! does not depend on a clock: the same review costs the same steps on every machine, and a replay reaches the same
//! verdict.
//!
//! An exhausted budget is a result, not an error. Content that cannot be compared counts as changed. A record that
//! cannot be parsed counts as unreadable. An object whose declaration cannot be found makes its rule undecided. The
//! policy refuses undecided requests by default, so that no client can open the guard with its text.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The steps of one review. A step takes about a nanosecond on a core of 2026, so a review exhausts its budget in less
/// than a second.
///
/// The largest legitimate review is the UPDATE of a record of 8 MiB whose chart is spelled differently on both sides:
/// 190 million steps. To find the document of one object among 10,000 others in 5 MiB of YAML takes 30 million.
const STEPS_OF_A_REVIEW: u64 = 800_000_000;

/// The memory for all trees of values of one review, in bytes. The largest legitimate document, a definition of 1 MiB,
/// takes less than half of it.
const TREE_BYTES_OF_A_REVIEW: u64 = 48 << 20;

/// The memory of a part of a tree, in bytes: any value, such as an item of a list; a map with its first members; a
/// further member.
pub(crate) const NODE_BYTES: u64 = 96;
pub(crate) const MAP_BYTES: u64 = 640;
pub(crate) const MEMBER_BYTES: u64 = 128;

/// The most memory that a byte of text takes as a tree: in YAML a map of one member, `{a},`, takes about 860 bytes.
const MAX_TREE_BYTES_PER_BYTE: u64 = 220;

/// The remaining budget of a review. Its readers share it.
#[derive(Debug)]
pub struct Effort {
    /// A plain counter: one review runs on one thread at a time. It is atomic only because a review moves between
    /// threads.
    left: AtomicU64,
    budget: u64,
    /// The memory that is left for trees of values, in bytes.
    trees_left: AtomicU64,
    /// Whether a reader needed more than was left.
    exceeded: AtomicBool,
}

/// The remaining budget of the review is too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it takes more work than one review may cost")]
pub struct OverBudget;

/// For readers that report errors as sentences.
impl From<OverBudget> for String {
    fn from(over: OverBudget) -> Self {
        over.to_string()
    }
}

impl Effort {
    /// The budget of one review.
    #[must_use]
    pub fn of_review() -> Self {
        Self::of(STEPS_OF_A_REVIEW)
    }

    /// A budget of this number of steps.
    #[must_use]
    pub fn of(steps: u64) -> Self {
        Self {
            left: AtomicU64::new(steps),
            budget: steps,
            trees_left: AtomicU64::new(TREE_BYTES_OF_A_REVIEW),
            exceeded: AtomicBool::new(false),
        }
    }

    /// Uses up some steps. If fewer are left, the call uses none, so that cheaper readers can continue.
    ///
    /// # Errors
    /// [`OverBudget`] if fewer are left.
    #[inline]
    pub fn take(&self, steps: u64) -> Result<(), OverBudget> {
        match self.left().checked_sub(steps) {
            Some(left) => {
                self.left.store(left, Ordering::Relaxed);
                Ok(())
            }
            None => Err(self.exceed()),
        }
    }

    /// Uses up memory for a tree of values.
    ///
    /// # Errors
    /// [`OverBudget`] if less is left.
    pub fn take_tree(&self, bytes: u64) -> Result<(), OverBudget> {
        let left = self.trees_left.load(Ordering::Relaxed).checked_sub(bytes).ok_or_else(|| self.exceed())?;
        self.trees_left.store(left, Ordering::Relaxed);
        Ok(())
    }

    /// The most memory that trees of a text can take in the rest of the review, in bytes.
    #[must_use]
    pub fn most_trees_of(&self, text_bytes: usize) -> usize {
        let most = (text_bytes as u64).saturating_mul(MAX_TREE_BYTES_PER_BYTE);
        usize::try_from(most.min(self.trees_left.load(Ordering::Relaxed))).unwrap_or(usize::MAX)
    }

    /// Marks the budget as exceeded.
    pub fn exceed(&self) -> OverBudget {
        self.exceeded.store(true, Ordering::Relaxed);
        OverBudget
    }

    /// Uses up some steps for each byte of a text.
    ///
    /// # Errors
    /// [`OverBudget`] if fewer are left.
    #[inline]
    pub fn take_text(&self, text: &str, steps_per_byte: u64) -> Result<(), OverBudget> {
        self.take((text.len() as u64).saturating_mul(steps_per_byte))
    }

    /// The steps that are left.
    #[must_use]
    #[inline]
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// The steps that were used.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.budget - self.left()
    }

    /// Whether a reader needed more than was left.
    #[must_use]
    pub fn was_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_over_budget_leaves_the_rest_to_others() {
        let effort = Effort::of(10);
        assert_eq!(effort.take(4), Ok(()));
        assert!(!effort.was_exceeded());
        assert_eq!(effort.take(7), Err(OverBudget));
        assert!(effort.was_exceeded());
        assert_eq!(effort.take_text("abc", 2), Ok(()));
        assert_eq!((effort.left(), effort.used()), (0, 10));
        assert_eq!(effort.take(1), Err(OverBudget));
        assert_eq!(Effort::of(u64::MAX - 1).take_text("ab", u64::MAX), Err(OverBudget));
    }

    #[test]
    fn the_trees_of_a_review_have_a_memory_limit() {
        let effort = Effort::of_review();
        assert_eq!((effort.most_trees_of(10), effort.most_trees_of(1 << 20)), (2_200, 48 << 20));
        assert_eq!(effort.take_tree(40 << 20), Ok(()));
        assert_eq!(effort.most_trees_of(1 << 20), 8 << 20);
        assert!(!effort.was_exceeded());
        assert_eq!(effort.take_tree(9 << 20), Err(OverBudget));
        assert!(effort.was_exceeded());
    }
}
