//! Converts characters to tokens: go-yaml's `scannerc.go`.

mod block;
mod flow;
mod plain;
mod tag;

use std::collections::VecDeque;

use super::characters::{Characters, Malformed, Mark};
use super::token::{Token, TokenKind};

/// The deepest nesting of flow collections, and of block collections.
const MAX_DEPTH: usize = 10_000;

/// The longest distance from the start of a key to its colon, in characters.
const MAX_KEY_CHARACTERS: usize = 1_024;

pub(super) struct Scanner<'t> {
    characters: Characters<'t>,
    tokens: VecDeque<Token<'t>>,
    /// The number of tokens that were taken out of the queue.
    taken: usize,
    is_ended: bool,
    /// The column of the innermost block collection; -1 outside all of them.
    indent: isize,
    indents: Vec<isize>,
    flow_level: usize,
    /// Whether a key without `?` may start here.
    may_start_key: bool,
    /// The possible key of each flow level. The numbers of their tokens never decrease.
    keys: Vec<PossibleKey>,
}

/// A token that may turn out to be a key, once its colon is found.
#[derive(Clone, Copy, Default)]
struct PossibleKey {
    is_possible: bool,
    /// Whether the token waits until this is known. go-yaml does not wait if the token begins an empty flow collection.
    is_awaited: bool,
    is_required: bool,
    /// Counted from the start of the document.
    token: usize,
    mark: Mark,
}

impl<'t> Scanner<'t> {
    /// # Errors
    /// The text has a character that YAML does not allow.
    pub(super) fn of(text: &'t str) -> Result<Self, Malformed> {
        Ok(Self {
            characters: Characters::of(text)?,
            tokens: VecDeque::new(),
            taken: 0,
            is_ended: false,
            indent: -1,
            indents: Vec::new(),
            flow_level: 0,
            may_start_key: true,
            keys: vec![PossibleKey::default()],
        })
    }

    /// The next token, which stays in the queue. After the last one, it is the end of the stream.
    pub(super) fn peek(&mut self) -> Result<&Token<'t>, Malformed> {
        while !self.is_ended && (self.tokens.is_empty() || self.may_head_be_key()?) {
            self.fetch()?;
        }
        self.tokens.front().ok_or_else(|| Malformed::at(self.characters.mark()))
    }

    /// Takes the token that was peeked at. The end of the stream stays.
    pub(super) fn take(&mut self) -> Option<Token<'t>> {
        if matches!(self.tokens.front(), Some(Token { kind: TokenKind::StreamEnd, .. })) {
            return None;
        }
        self.taken += 1;
        self.tokens.pop_front()
    }

    /// Whether a key token may still be inserted before the first token.
    fn may_head_be_key(&mut self) -> Result<bool, Malformed> {
        let first = self.keys.partition_point(|key| key.token < self.taken);
        let same = self.keys[first..].iter().take_while(|key| key.token == self.taken);
        match same.take(2).position(|key| key.is_possible && key.is_awaited) {
            Some(behind) => self.is_key_valid(first + behind),
            None => Ok(false),
        }
    }

    fn is_key_valid(&mut self, level: usize) -> Result<bool, Malformed> {
        let (key, mark) = (self.keys[level], self.characters.mark());
        if !key.is_possible {
            return Ok(false);
        }
        if key.mark.line < mark.line || key.mark.index + MAX_KEY_CHARACTERS < mark.index {
            if key.is_required {
                return Err(self.malformed());
            }
            self.keys[level].is_possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    /// How far the text is scanned, in bytes.
    pub(super) fn position(&self) -> usize {
        self.characters.mark().at
    }

    fn malformed(&self) -> Malformed {
        Malformed::at(self.characters.mark())
    }

    /// Takes the rest of a line, which may have only a comment.
    fn end_of_line(&mut self) -> Result<(), Malformed> {
        self.characters.skip_blanks();
        self.characters.skip_comment();
        if !self.characters.is_break_or_end(0) {
            return Err(self.malformed());
        }
        self.characters.cache(2);
        self.characters.skip_break();
        Ok(())
    }

    fn fetch(&mut self) -> Result<(), Malformed> {
        self.skip_to_next_token();
        let column = self.characters.column();
        self.unroll_indent(isize::try_from(column).unwrap_or(isize::MAX));
        self.characters.cache(4);
        if self.characters.is_end() {
            return self.fetch_stream_end();
        }
        let byte = self.characters.byte(0);
        if column == 0 && byte == b'%' {
            self.leave_block()?;
            let token = self.directive()?;
            self.tokens.push_back(token);
            return Ok(());
        }
        if self.characters.is_document_indicator() {
            self.leave_block()?;
            self.fetch_indicator(if byte == b'-' { TokenKind::DocumentStart } else { TokenKind::DocumentEnd }, 3);
            return Ok(());
        }
        let is_in_flow = self.flow_level > 0;
        let is_alone = self.characters.is_blank_or_end(1);
        match byte {
            b'[' => self.fetch_flow_start(TokenKind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(TokenKind::FlowMappingStart),
            b']' => self.fetch_flow_end(TokenKind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(TokenKind::FlowMappingEnd),
            b',' => {
                self.remove_key()?;
                self.may_start_key = true;
                self.fetch_indicator(TokenKind::FlowEntry, 1);
                Ok(())
            }
            b'-' if is_alone => self.fetch_block_entry(),
            b'?' if is_in_flow || is_alone => self.fetch_key(),
            b':' if is_in_flow || is_alone => self.fetch_value(),
            b'*' | b'&' | b'!' | b'\'' | b'"' => self.fetch_one(byte),
            b'|' | b'>' if !is_in_flow => {
                self.remove_key()?;
                // A key may follow a block scalar.
                self.may_start_key = true;
                let token = self.block_scalar(byte == b'|')?;
                self.tokens.push_back(token);
                Ok(())
            }
            b'#' | b'|' | b'>' | b'%' | b'@' | b'`' | b'\t' => Err(self.malformed()),
            _ if self.characters.is_blank_or_end(0) => Err(self.malformed()),
            _ => self.fetch_one(byte),
        }
    }

    /// Fetches a token that may be a key. No other key may start after it on its line.
    fn fetch_one(&mut self, first: u8) -> Result<(), Malformed> {
        self.save_key()?;
        self.may_start_key = false;
        let token = match first {
            b'*' => self.anchor(TokenKind::Alias)?,
            b'&' => self.anchor(TokenKind::Anchor)?,
            b'!' => self.tag()?,
            b'\'' | b'"' => self.quoted_scalar(first == b'\'')?,
            _ => self.plain_scalar()?,
        };
        self.tokens.push_back(token);
        Ok(())
    }

    fn skip_to_next_token(&mut self) {
        let characters = &mut self.characters;
        loop {
            characters.cache(1);
            if characters.is_at_bom() {
                characters.skip();
            }
            characters.cache(1);
            // A tab is not allowed where a key may start.
            let may_be_tab = self.flow_level > 0 || !self.may_start_key;
            while characters.byte(0) == b' ' || may_be_tab && characters.byte(0) == b'\t' {
                characters.skip();
                characters.cache(1);
            }
            characters.skip_comment();
            if !characters.is_break(0) {
                return;
            }
            characters.cache(2);
            characters.skip_break();
            if self.flow_level == 0 {
                self.may_start_key = true;
            }
        }
    }

    fn fetch_stream_end(&mut self) -> Result<(), Malformed> {
        self.leave_block()?;
        self.fetch_indicator(TokenKind::StreamEnd, 0);
        self.is_ended = true;
        Ok(())
    }

    /// Ends all block collections.
    fn leave_block(&mut self) -> Result<(), Malformed> {
        self.unroll_indent(-1);
        self.remove_key()?;
        self.may_start_key = false;
        Ok(())
    }

    /// Appends a token of this number of characters.
    fn fetch_indicator(&mut self, kind: TokenKind<'t>, characters: usize) {
        let start = self.characters.mark();
        self.characters.skip_many(characters);
        self.tokens.push_back(Token { kind, start });
    }

    fn fetch_flow_start(&mut self, kind: TokenKind<'t>) -> Result<(), Malformed> {
        self.save_key()?;
        self.keys.push(PossibleKey { token: self.next_token(), ..PossibleKey::default() });
        self.flow_level += 1;
        if self.flow_level > MAX_DEPTH {
            return Err(self.malformed());
        }
        self.may_start_key = true;
        self.fetch_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: TokenKind<'t>) -> Result<(), Malformed> {
        self.remove_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            let ended = self.keys.pop().unwrap_or_default();
            if let Some(around) = self.keys.last_mut().filter(|around| around.token == ended.token) {
                around.is_awaited = false;
            }
        }
        self.may_start_key = false;
        self.fetch_indicator(kind, 1);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Result<(), Malformed> {
        if self.flow_level == 0 {
            self.start_block(TokenKind::BlockSequenceStart)?;
        }
        self.remove_key()?;
        self.may_start_key = true;
        self.fetch_indicator(TokenKind::BlockEntry, 1);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), Malformed> {
        if self.flow_level == 0 {
            self.start_block(TokenKind::BlockMappingStart)?;
        }
        self.remove_key()?;
        self.may_start_key = self.flow_level == 0;
        self.fetch_indicator(TokenKind::Key, 1);
        Ok(())
    }

    fn fetch_value(&mut self) -> Result<(), Malformed> {
        let level = self.keys.len() - 1;
        if self.is_key_valid(level)? {
            let PossibleKey { token, mark, .. } = self.keys[level];
            self.insert_before(Some(token), Token { kind: TokenKind::Key, start: mark });
            self.roll_indent(mark, Some(token), TokenKind::BlockMappingStart)?;
            self.keys[level].is_possible = false;
            self.may_start_key = false;
        } else {
            if self.flow_level == 0 {
                self.start_block(TokenKind::BlockMappingStart)?;
            }
            self.may_start_key = self.flow_level == 0;
        }
        self.fetch_indicator(TokenKind::Value, 1);
        Ok(())
    }

    /// Starts a block collection here, if this position is deeper than the innermost one.
    fn start_block(&mut self, kind: TokenKind<'t>) -> Result<(), Malformed> {
        if !self.may_start_key {
            return Err(self.malformed());
        }
        self.roll_indent(self.characters.mark(), None, kind)
    }

    /// Starts a block collection at a column, before a token if one is given.
    fn roll_indent(&mut self, mark: Mark, before: Option<usize>, kind: TokenKind<'t>) -> Result<(), Malformed> {
        let column = isize::try_from(mark.column).unwrap_or(isize::MAX);
        if self.flow_level > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_DEPTH {
            return Err(self.malformed());
        }
        self.insert_before(before, Token { kind, start: mark });
        Ok(())
    }

    /// Inserts a token before another one, or appends it if the other one is already taken.
    fn insert_before(&mut self, before: Option<usize>, token: Token<'t>) {
        let at = before.and_then(|before| before.checked_sub(self.taken)).unwrap_or(self.tokens.len());
        self.tokens.insert(at, token);
    }

    /// Ends the block collections that are deeper than a column.
    fn unroll_indent(&mut self, column: isize) {
        let mark = self.characters.mark();
        while self.flow_level == 0 && self.indent > column {
            self.tokens.push_back(Token { kind: TokenKind::BlockEnd, start: mark });
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    /// The number of the next token that is appended.
    fn next_token(&self) -> usize {
        self.taken + self.tokens.len()
    }

    /// Stores that a key may start here.
    fn save_key(&mut self) -> Result<(), Malformed> {
        if !self.may_start_key {
            return Ok(());
        }
        let mark = self.characters.mark();
        let is_required = self.flow_level == 0 && usize::try_from(self.indent) == Ok(mark.column);
        self.remove_key()?;
        let key = PossibleKey { is_possible: true, is_awaited: true, is_required, token: self.next_token(), mark };
        if let Some(innermost) = self.keys.last_mut() {
            *innermost = key;
        }
        Ok(())
    }

    /// Discards the possible key of this flow level.
    fn remove_key(&mut self) -> Result<(), Malformed> {
        match self.keys.last_mut() {
            Some(key) if key.is_possible && key.is_required => Err(self.malformed()),
            Some(key) => {
                key.is_possible = false;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn anchor(&mut self, kind: fn(&'t str) -> TokenKind<'t>) -> Result<Token<'t>, Malformed> {
        let start = self.characters.mark();
        self.characters.skip();
        let name = self.word();
        let is_ended = self.characters.is_blank_or_end(0) || b"?:,]}%@`".contains(&self.characters.byte(0));
        if name.is_empty() || !is_ended {
            return Err(self.malformed());
        }
        Ok(Token { kind: kind(name), start })
    }

    /// Skips letters, digits, `_` and `-`, and returns them.
    fn word(&mut self) -> &'t str {
        let start = self.characters.mark().at;
        self.characters.cache(1);
        while self.characters.byte(0).is_ascii_alphanumeric() || matches!(self.characters.byte(0), b'_' | b'-') {
            self.characters.skip();
            self.characters.cache(1);
        }
        self.characters.slice(start, self.characters.mark().at)
    }
}
