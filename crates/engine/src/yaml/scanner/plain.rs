//! Texts without quotes, and line breaks inside texts.

use super::Scanner;
use crate::yaml::characters::Malformed;
use crate::yaml::token::{Pieces, Token, TokenKind};

/// White space inside a text. It counts only if more of the text follows.
#[derive(Default)]
pub(super) struct Whitespace<'t> {
    /// The range of the blanks, if there is no line break.
    blanks: std::ops::Range<usize>,
    /// The text that the first line break stands for.
    first_break: Option<&'t str>,
    more_breaks: String,
}

impl Whitespace<'_> {
    /// An escaped line break stands for no text, and further ones for themselves.
    pub(super) fn after_escaped_break() -> Self {
        Self { first_break: Some(""), ..Self::default() }
    }

    pub(super) fn has_break(&self) -> bool {
        self.first_break.is_some()
    }

    /// Appends the white space. A single line break stands for a blank.
    pub(super) fn append_to(&mut self, text: &mut Pieces, scanner: &Scanner<'_>) {
        match self.first_break.take() {
            None => text.push(self.blanks.clone(), &scanner.characters),
            Some("\n") if self.more_breaks.is_empty() => text.push_str(" ", &scanner.characters),
            Some("\n") => text.push_str(&self.more_breaks, &scanner.characters),
            Some(first) => {
                text.push_str(first, &scanner.characters);
                text.push_str(&self.more_breaks, &scanner.characters);
            }
        }
        self.blanks = 0..0;
        self.more_breaks.clear();
    }
}

impl<'t> Scanner<'t> {
    pub(super) fn plain_scalar(&mut self) -> Result<Token<'t>, Malformed> {
        let start = self.characters.mark();
        let (mut text, mut whitespace) = (Pieces::default(), Whitespace::default());
        loop {
            self.characters.cache(4);
            if self.characters.is_document_indicator() || self.characters.byte(0) == b'#' {
                break;
            }
            let from = self.characters.mark().at;
            while !self.characters.is_blank_or_end(0) && !self.ends_plain_scalar() {
                self.characters.skip();
                self.characters.cache(2);
            }
            let until = self.characters.mark().at;
            if until > from {
                whitespace.append_to(&mut text, self);
                text.push(from..until, &self.characters);
            }
            if !(self.characters.is_blank(0) || self.characters.is_break(0)) {
                break;
            }
            self.skip_whitespace(&mut whitespace, true)?;
            let is_outside = isize::try_from(self.characters.column()).is_ok_and(|column| column <= self.indent);
            if self.flow_level == 0 && is_outside {
                break;
            }
        }
        if whitespace.has_break() {
            self.may_start_key = true;
        }
        Ok(Token { kind: TokenKind::Scalar { text: text.into_text(&self.characters), is_plain: true }, start })
    }

    fn ends_plain_scalar(&self) -> bool {
        match self.characters.byte(0) {
            b':' => self.characters.is_blank_or_end(1),
            b',' | b'?' | b'[' | b']' | b'{' | b'}' => self.flow_level > 0,
            _ => false,
        }
    }

    /// Skips blanks and line breaks inside a text. A plain text may not have tabs in its indentation.
    pub(super) fn skip_whitespace(&mut self, whitespace: &mut Whitespace<'t>, is_plain: bool) -> Result<(), Malformed> {
        self.characters.cache(1);
        loop {
            if self.characters.is_blank(0) {
                let is_indentation =
                    isize::try_from(self.characters.column()).is_ok_and(|column| column <= self.indent);
                if is_plain && whitespace.has_break() && is_indentation && self.characters.byte(0) == b'\t' {
                    return Err(self.malformed());
                }
                let at = self.characters.mark().at;
                self.characters.skip();
                if !whitespace.has_break() {
                    let start = if whitespace.blanks.is_empty() { at } else { whitespace.blanks.start };
                    whitespace.blanks = start..self.characters.mark().at;
                }
            } else if self.characters.is_break(0) {
                self.characters.cache(2);
                let counts_as = self.characters.skip_break();
                match whitespace.first_break {
                    None => whitespace.first_break = Some(counts_as),
                    Some(_) => whitespace.more_breaks.push_str(counts_as),
                }
            } else {
                return Ok(());
            }
            self.characters.cache(1);
        }
    }
}
