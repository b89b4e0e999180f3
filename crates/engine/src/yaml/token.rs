//! The tokens of a document, and a text that is built from pieces.

use std::borrow::Cow;
use std::ops::Range;

use super::characters::{Characters, Mark};

pub(super) struct Token<'t> {
    pub(super) kind: TokenKind<'t>,
    pub(super) start: Mark,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind<'t> {
    StreamEnd,
    VersionDirective {
        is_1_1: bool,
    },
    TagDirective {
        handle: Cow<'t, str>,
        prefix: String,
    },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'t str),
    Anchor(&'t str),
    Tag {
        /// Empty for a tag that is written out.
        handle: Cow<'t, str>,
        suffix: String,
    },
    Scalar {
        text: Cow<'t, str>,
        is_plain: bool,
    },
}

/// A text in pieces. It borrows from the document as long as each piece directly follows the previous one.
#[derive(Default)]
pub(super) struct Pieces {
    borrowed: Range<usize>,
    owned: Option<String>,
}

impl Pieces {
    /// Appends a piece of the document.
    #[inline]
    pub(super) fn push(&mut self, piece: Range<usize>, characters: &Characters<'_>) {
        match &mut self.owned {
            _ if piece.is_empty() => {}
            Some(owned) => owned.push_str(characters.slice(piece.start, piece.end)),
            None if self.borrowed.is_empty() => self.borrowed = piece,
            None if self.borrowed.end == piece.start => self.borrowed.end = piece.end,
            None => self.own(characters).push_str(characters.slice(piece.start, piece.end)),
        }
    }

    /// Appends a text that is not a piece of the document.
    pub(super) fn push_str(&mut self, text: &str, characters: &Characters<'_>) {
        if !text.is_empty() {
            self.own(characters).push_str(text);
        }
    }

    fn own(&mut self, characters: &Characters<'_>) -> &mut String {
        self.owned.get_or_insert_with(|| characters.slice(self.borrowed.start, self.borrowed.end).to_owned())
    }

    pub(super) fn into_text<'t>(self, characters: &Characters<'t>) -> Cow<'t, str> {
        match self.owned {
            Some(owned) => Cow::Owned(owned),
            None => Cow::Borrowed(characters.slice(self.borrowed.start, self.borrowed.end)),
        }
    }
}
