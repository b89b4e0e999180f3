//! Readers of the lines of one kind of log.

use super::tally::FileTally;
use crate::inspect::changes::Change;

/// Reads the lines of one kind of log.
pub(super) trait LogReader {
    /// A description of a line, for a file that has no such line.
    const EXPECTED: &'static str;

    /// Reads a line.
    ///
    /// # Errors
    /// Why the line cannot be parsed.
    fn line(&mut self, line: &[u8], tally: &mut FileTally) -> Result<(), String>;

    /// The newest changes in all lines, and the number of older changes that were dropped.
    fn into_changes(self) -> (Vec<Change>, usize);
}
