//! A parser that charges its work.

use super::characters::Malformed;
use super::parser::{Event, Parser, Span};
use crate::effort::{Effort, OverBudget};

/// Parses the events of a document, and uses up steps for its bytes and its parts.
pub(crate) struct ChargedParser<'t, 'e> {
    parser: Parser<'t>,
    effort: &'e Effort,
    prices: Prices,
    /// The bytes that are already charged.
    scanned: usize,
}

/// The steps to scan a byte, and those of a part of any length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prices {
    pub(crate) byte: u64,
    pub(crate) part: u64,
}

impl<'t, 'e> ChargedParser<'t, 'e> {
    /// # Errors
    /// The text has a character that YAML does not allow.
    pub(crate) fn of(document: &'t str, effort: &'e Effort, prices: Prices) -> Result<Self, Malformed> {
        Ok(Self { parser: Parser::of(document)?, effort, prices, scanned: 0 })
    }

    /// The next part of the document.
    ///
    /// # Errors
    /// The text is not YAML, or it is more work than the review has left.
    pub(crate) fn next<E: From<Malformed> + From<OverBudget>>(&mut self) -> Result<(Event<'t>, Span), E> {
        let (event, span) = self.parser.next_event()?;
        let at = span.bytes.end.max(self.scanned);
        self.effort.take((at - self.scanned) as u64 * self.prices.byte + self.prices.part)?;
        self.scanned = at;
        Ok((event, span))
    }
}
