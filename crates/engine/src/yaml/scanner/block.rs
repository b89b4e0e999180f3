//! Block scalars: texts after `|` and `>`.

use super::Scanner;
use crate::yaml::characters::Malformed;
use crate::yaml::token::{Pieces, Token, TokenKind};

/// The treatment of the line breaks at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    /// All are dropped.
    Strip,
    /// One is kept.
    Clip,
    /// All are kept.
    Keep,
}

impl<'t> Scanner<'t> {
    pub(super) fn block_scalar(&mut self, is_literal: bool) -> Result<Token<'t>, Malformed> {
        let start = self.characters.mark();
        self.characters.skip();
        let (chomping, increment) = self.block_header()?;
        self.end_of_line()?;
        // 0 while it is unknown.
        let mut indent = increment.map_or(0, |increment| self.indent.max(0).unsigned_abs() + increment);
        let (mut text, mut first_break) = (Pieces::default(), "");
        let (mut more_breaks, mut begins_blank) = (self.block_breaks(&mut indent)?, false);
        self.characters.cache(1);
        while self.characters.column() == indent && !self.characters.is_end() {
            let is_blank = self.characters.is_blank(0);
            let is_folded = !is_literal && !begins_blank && !is_blank && first_break == "\n";
            match first_break {
                _ if is_folded && !more_breaks.is_empty() => {}
                _ if is_folded => text.push_str(" ", &self.characters),
                first => text.push_str(first, &self.characters),
            }
            text.push_str(&more_breaks, &self.characters);
            begins_blank = is_blank;
            let from = self.characters.mark().at;
            while !self.characters.is_break_or_end(0) {
                self.characters.skip();
                self.characters.cache(1);
            }
            text.push(from..self.characters.mark().at, &self.characters);
            self.characters.cache(2);
            first_break = self.characters.skip_break();
            more_breaks = self.block_breaks(&mut indent)?;
        }
        if chomping != Chomping::Strip {
            text.push_str(first_break, &self.characters);
        }
        if chomping == Chomping::Keep {
            text.push_str(&more_breaks, &self.characters);
        }
        let text = text.into_text(&self.characters);
        Ok(Token { kind: TokenKind::Scalar { text, is_plain: false }, start })
    }

    /// The indicators after `|`: the chomping, and how much deeper the text is than its surroundings.
    fn block_header(&mut self) -> Result<(Chomping, Option<usize>), Malformed> {
        self.characters.cache(1);
        let chomping = self.chomping();
        self.characters.cache(1);
        let increment = match self.characters.byte(0) {
            b'0' => return Err(self.malformed()),
            digit @ b'1'..=b'9' => {
                self.characters.skip();
                self.characters.cache(1);
                Some(usize::from(digit - b'0'))
            }
            _ => None,
        };
        let chomping = chomping.or_else(|| self.chomping().filter(|_| increment.is_some()));
        Ok((chomping.unwrap_or(Chomping::Clip), increment))
    }

    fn chomping(&mut self) -> Option<Chomping> {
        let chomping = match self.characters.byte(0) {
            b'+' => Chomping::Keep,
            b'-' => Chomping::Strip,
            _ => return None,
        };
        self.characters.skip();
        Some(chomping)
    }

    /// Skips empty lines and the indentation of the next one. Returns the line breaks, and determines the indentation
    /// if it is 0.
    fn block_breaks(&mut self, indent: &mut usize) -> Result<String, Malformed> {
        let (mut breaks, mut deepest) = (String::new(), 0);
        loop {
            self.characters.cache(1);
            while (*indent == 0 || self.characters.column() < *indent) && self.characters.byte(0) == b' ' {
                self.characters.skip();
                self.characters.cache(1);
            }
            deepest = deepest.max(self.characters.column());
            let is_indentation = *indent == 0 || self.characters.column() < *indent;
            if is_indentation && self.characters.byte(0) == b'\t' {
                return Err(self.malformed());
            }
            if !self.characters.is_break(0) {
                break;
            }
            self.characters.cache(2);
            breaks.push_str(self.characters.skip_break());
        }
        if *indent == 0 {
            let least = usize::try_from(self.indent + 1).unwrap_or_default().max(1);
            *indent = deepest.max(least);
        }
        Ok(breaks)
    }
}
