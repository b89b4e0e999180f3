//! Texts in quotes.

use super::Scanner;
use super::plain::Whitespace;
use crate::yaml::characters::Malformed;
use crate::yaml::token::{Pieces, Token, TokenKind};

impl<'t> Scanner<'t> {
    pub(super) fn quoted_scalar(&mut self, is_single: bool) -> Result<Token<'t>, Malformed> {
        let start = self.characters.mark();
        let quote = self.characters.byte(0);
        self.characters.skip();
        let mut text = Pieces::default();
        loop {
            self.characters.cache(4);
            if self.characters.is_document_indicator() || self.characters.is_end() {
                return Err(self.malformed());
            }
            let has_escaped_break = self.words_of_quoted(is_single, &mut text)?;
            self.characters.cache(1);
            if self.characters.byte(0) == quote {
                break;
            }
            let mut whitespace =
                if has_escaped_break { Whitespace::after_escaped_break() } else { Whitespace::default() };
            self.skip_whitespace(&mut whitespace, false)?;
            whitespace.append_to(&mut text, self);
        }
        self.characters.skip();
        Ok(Token { kind: TokenKind::Scalar { text: text.into_text(&self.characters), is_plain: false }, start })
    }

    /// Reads up to the next blank, line break or quote. Returns whether it ends with an escaped line break, which
    /// stands for no text.
    fn words_of_quoted(&mut self, is_single: bool, text: &mut Pieces) -> Result<bool, Malformed> {
        while !self.characters.is_blank_or_end(0) {
            let at = self.characters.mark().at;
            match (self.characters.byte(0), is_single) {
                (b'\'', true) if self.characters.byte(1) == b'\'' => {
                    self.characters.skip();
                    text.push(at..at + 1, &self.characters);
                    self.characters.skip();
                }
                (b'\'', true) | (b'"', false) => return Ok(false),
                (b'\\', false) if self.characters.is_break(1) => {
                    self.characters.cache(3);
                    self.characters.skip();
                    self.characters.skip_break();
                    return Ok(true);
                }
                (b'\\', false) => {
                    let character = self.escape()?;
                    text.push_str(character.encode_utf8(&mut [0; 4]), &self.characters);
                }
                _ => {
                    self.characters.skip();
                    text.push(at..self.characters.mark().at, &self.characters);
                }
            }
            self.characters.cache(2);
        }
        Ok(false)
    }

    /// Skips a backslash with the escaped character.
    fn escape(&mut self) -> Result<char, Malformed> {
        let (character, digits) = match self.characters.byte(1) {
            b'0' => ('\0', 0),
            b'a' => ('\x07', 0),
            b'b' => ('\x08', 0),
            b't' | b'\t' => ('\t', 0),
            b'n' => ('\n', 0),
            b'v' => ('\x0b', 0),
            b'f' => ('\x0c', 0),
            b'r' => ('\r', 0),
            b'e' => ('\x1b', 0),
            byte @ (b' ' | b'"' | b'\'' | b'\\') => (char::from(byte), 0),
            b'N' => ('\u{85}', 0),
            b'_' => ('\u{a0}', 0),
            b'L' => ('\u{2028}', 0),
            b'P' => ('\u{2029}', 0),
            b'x' => ('\0', 2),
            b'u' => ('\0', 4),
            b'U' => ('\0', 8),
            _ => return Err(self.malformed()),
        };
        self.characters.skip_many(2);
        if digits == 0 {
            return Ok(character);
        }
        self.characters.cache(digits);
        let code = (0..digits).try_fold(0_u32, |code, behind| {
            Some(code.checked_mul(16)? + char::from(self.characters.byte(behind)).to_digit(16)?)
        });
        let character = code.and_then(char::from_u32).ok_or_else(|| self.malformed())?;
        self.characters.skip_many(digits);
        Ok(character)
    }
}
