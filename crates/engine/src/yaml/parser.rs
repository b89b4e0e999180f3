//! Converts tokens to events: go-yaml's `parserc.go`. Only the first document of a text is parsed, as by
//! `yaml.Unmarshal`.

use std::borrow::Cow;
use std::ops::Range;

use super::characters::{Malformed, Mark};
use super::scalar::Scalar;
use super::scanner::Scanner;
use super::token::{Token, TokenKind};

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event<'t> {
    Alias(&'t str),
    Scalar {
        scalar: Scalar<'t>,
        anchor: Option<&'t str>,
    },
    SequenceStart {
        anchor: Option<&'t str>,
    },
    SequenceEnd,
    MappingStart {
        anchor: Option<&'t str>,
    },
    MappingEnd,
    /// The document has no further parts.
    End,
}

/// The position of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) bytes: Range<usize>,
    /// The column of the start, in characters from 0.
    pub(crate) column: usize,
}

/// Parses the events of a document.
pub(crate) struct Parser<'t> {
    scanner: Scanner<'t>,
    state: State,
    /// The states in which to continue after nodes.
    states: Vec<State>,
    /// Handles and prefixes.
    tags: Vec<(Cow<'t, str>, Cow<'t, str>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    End,
    BlockNode,
    BlockSequenceEntry { is_first: bool },
    IndentlessSequenceEntry,
    BlockMappingKey { is_first: bool },
    BlockMappingValue,
    FlowSequenceEntry { is_first: bool },
    FlowSequenceEntryKey,
    FlowSequenceEntryValue,
    FlowSequenceEntryEnd,
    FlowMappingKey { is_first: bool },
    FlowMappingValue,
    FlowMappingEmptyValue,
}

/// The nodes that are allowed at a position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Flow,
    Block,
    /// In a block, where a list may have the indentation of the mapping around it.
    BlockOrIndentlessSequence,
}

type Parsed<'t> = Result<(Event<'t>, Span), Malformed>;

impl<'t> Parser<'t> {
    /// # Errors
    /// The text has a character that YAML does not allow.
    pub(crate) fn of(text: &'t str) -> Result<Self, Malformed> {
        let scanner = Scanner::of(text)?;
        Ok(Self { scanner, state: State::DocumentStart, states: Vec::new(), tags: Vec::new() })
    }

    /// The next event. After the last one, it is always [`Event::End`].
    ///
    /// # Errors
    /// The text is not YAML. No event follows an error.
    pub(crate) fn next_event(&mut self) -> Parsed<'t> {
        loop {
            return match self.state {
                State::DocumentStart => {
                    self.start_document()?;
                    continue;
                }
                State::DocumentContent => self.document_content(),
                State::DocumentEnd | State::End => {
                    let mark = self.scanner.peek()?.start;
                    self.state = State::End;
                    Ok((Event::End, span(mark, mark)))
                }
                State::BlockNode => self.node(Context::Block),
                State::BlockSequenceEntry { is_first } => self.block_sequence_entry(is_first),
                State::IndentlessSequenceEntry => self.indentless_sequence_entry(),
                State::BlockMappingKey { is_first } => self.block_mapping_key(is_first),
                State::BlockMappingValue => self.block_mapping_value(),
                State::FlowSequenceEntry { is_first } => self.flow_sequence_entry(is_first),
                State::FlowSequenceEntryKey => self.flow_sequence_entry_key(),
                State::FlowSequenceEntryValue => self.flow_sequence_entry_value(),
                State::FlowSequenceEntryEnd => {
                    let mark = self.scanner.peek()?.start;
                    self.state = State::FlowSequenceEntry { is_first: false };
                    Ok((Event::MappingEnd, span(mark, mark)))
                }
                State::FlowMappingKey { is_first } => self.flow_mapping_key(is_first),
                State::FlowMappingValue => self.flow_mapping_value(),
                State::FlowMappingEmptyValue => {
                    let mark = self.scanner.peek()?.start;
                    self.state = State::FlowMappingKey { is_first: false };
                    Ok(empty_scalar(mark))
                }
            };
        }
    }

    fn peek(&mut self) -> Result<&TokenKind<'t>, Malformed> {
        self.scanner.peek().map(|token| &token.kind)
    }

    fn peek_start(&mut self) -> Result<Mark, Malformed> {
        self.scanner.peek().map(|token| token.start)
    }

    /// Takes the token that was peeked at.
    fn take(&mut self) -> Result<Token<'t>, Malformed> {
        let at = self.peek_start()?;
        self.scanner.take().ok_or_else(|| Malformed::at(at))
    }

    fn unexpected<T>(&mut self) -> Result<T, Malformed> {
        Err(Malformed::at(self.peek_start()?))
    }

    /// Continues after a node.
    fn leave(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// Parses a node, and continues with a state after it.
    fn node_then(&mut self, state: State, context: Context) -> Parsed<'t> {
        self.states.push(state);
        self.node(context)
    }

    /// An empty node, after which a state continues.
    fn empty_then(&mut self, state: State, mark: Mark) -> Parsed<'t> {
        self.state = state;
        Ok(empty_scalar(mark))
    }

    fn start_document(&mut self) -> Result<(), Malformed> {
        let is_implicit = match self.peek()? {
            TokenKind::StreamEnd => {
                self.state = State::End;
                return Ok(());
            }
            TokenKind::VersionDirective { .. } | TokenKind::TagDirective { .. } | TokenKind::DocumentStart => false,
            _ => true,
        };
        self.directives()?;
        self.states.push(State::DocumentEnd);
        self.state = State::BlockNode;
        if !is_implicit {
            if *self.peek()? != TokenKind::DocumentStart {
                return self.unexpected();
            }
            self.take()?;
            self.state = State::DocumentContent;
        }
        Ok(())
    }

    fn directives(&mut self) -> Result<(), Malformed> {
        let mut has_version = false;
        loop {
            match self.peek()?.clone() {
                TokenKind::VersionDirective { is_1_1 } => {
                    if has_version || !is_1_1 {
                        return self.unexpected();
                    }
                    has_version = true;
                }
                TokenKind::TagDirective { handle, prefix } => {
                    if self.prefix_of(&handle).is_some() {
                        return self.unexpected();
                    }
                    self.tags.push((handle, Cow::Owned(prefix)));
                }
                _ => break,
            }
            self.take()?;
        }
        for (handle, prefix) in [("!", "!"), ("!!", "tag:yaml.org,2002:")] {
            if self.prefix_of(handle).is_none() {
                self.tags.push((Cow::Borrowed(handle), Cow::Borrowed(prefix)));
            }
        }
        Ok(())
    }

    fn prefix_of(&self, handle: &str) -> Option<&str> {
        self.tags.iter().find(|(known, _)| known == handle).map(|(_, prefix)| prefix.as_ref())
    }

    fn document_content(&mut self) -> Parsed<'t> {
        use TokenKind::{DocumentEnd, DocumentStart, StreamEnd, TagDirective, VersionDirective};
        match self.peek()? {
            VersionDirective { .. } | TagDirective { .. } | DocumentStart | DocumentEnd | StreamEnd => {
                let mark = self.peek_start()?;
                self.leave();
                Ok(empty_scalar(mark))
            }
            _ => self.node(Context::Block),
        }
    }

    fn node(&mut self, context: Context) -> Parsed<'t> {
        let start = self.peek_start()?;
        if let TokenKind::Alias(name) = self.peek()? {
            let name = *name;
            let token = self.take()?;
            self.leave();
            return Ok((Event::Alias(name), span(start, token.end)));
        }
        let (anchor, tag) = self.properties()?;
        let token = self.scanner.peek()?;
        let end = token.end;
        let is_block = context != Context::Flow;
        let (event, state) = match &token.kind {
            TokenKind::BlockEntry if context == Context::BlockOrIndentlessSequence => {
                (Event::SequenceStart { anchor }, State::IndentlessSequenceEntry)
            }
            TokenKind::Scalar { text, is_plain } => {
                let scalar = Scalar::new(text.clone(), tag, *is_plain);
                self.take()?;
                self.leave();
                return Ok((Event::Scalar { scalar, anchor }, span(start, end)));
            }
            TokenKind::FlowSequenceStart => {
                (Event::SequenceStart { anchor }, State::FlowSequenceEntry { is_first: true })
            }
            TokenKind::FlowMappingStart => (Event::MappingStart { anchor }, State::FlowMappingKey { is_first: true }),
            TokenKind::BlockSequenceStart if is_block => {
                (Event::SequenceStart { anchor }, State::BlockSequenceEntry { is_first: true })
            }
            TokenKind::BlockMappingStart if is_block => {
                (Event::MappingStart { anchor }, State::BlockMappingKey { is_first: true })
            }
            _ if anchor.is_some() || tag.is_some() => {
                self.leave();
                let scalar = Scalar::new(Cow::Borrowed(""), tag, true);
                return Ok((Event::Scalar { scalar, anchor }, span(start, start)));
            }
            _ => return self.unexpected(),
        };
        self.state = state;
        Ok((event, span(start, end)))
    }

    /// The anchor and the tag of a node, in any order.
    fn properties(&mut self) -> Result<(Option<&'t str>, Option<String>), Malformed> {
        let (mut anchor, mut tag) = (None, None);
        loop {
            match self.peek()? {
                TokenKind::Anchor(name) if anchor.is_none() => {
                    anchor = Some(*name);
                    self.take()?;
                }
                TokenKind::Tag { handle, suffix } if tag.is_none() => {
                    let (handle, suffix) = (handle.clone(), suffix.clone());
                    let prefix = if handle.is_empty() { Some("") } else { self.prefix_of(&handle) };
                    match prefix.map(|prefix| format!("{prefix}{suffix}")) {
                        Some(complete) if handle.is_empty() || !complete.is_empty() => tag = Some(complete),
                        _ => return self.unexpected(),
                    }
                    self.take()?;
                }
                _ => return Ok((anchor, tag.filter(|tag: &String| !tag.is_empty()))),
            }
        }
    }

    fn block_sequence_entry(&mut self, is_first: bool) -> Parsed<'t> {
        if is_first {
            self.take()?;
        }
        match self.peek()? {
            TokenKind::BlockEntry => {
                let mark = self.take()?.end;
                let next = State::BlockSequenceEntry { is_first: false };
                match self.peek()? {
                    TokenKind::BlockEntry | TokenKind::BlockEnd => self.empty_then(next, mark),
                    _ => self.node_then(next, Context::Block),
                }
            }
            TokenKind::BlockEnd => self.end_of(Event::SequenceEnd),
            _ => self.unexpected(),
        }
    }

    /// Takes the token that ends a collection.
    fn end_of(&mut self, event: Event<'t>) -> Parsed<'t> {
        let token = self.take()?;
        self.leave();
        Ok((event, span(token.start, token.end)))
    }

    fn indentless_sequence_entry(&mut self) -> Parsed<'t> {
        use TokenKind::{BlockEnd, BlockEntry, Key, Value};
        if *self.peek()? != BlockEntry {
            let mark = self.peek_start()?;
            self.leave();
            return Ok((Event::SequenceEnd, span(mark, mark)));
        }
        let mark = self.take()?.end;
        match self.peek()? {
            BlockEntry | Key | Value | BlockEnd => self.empty_then(State::IndentlessSequenceEntry, mark),
            _ => self.node_then(State::IndentlessSequenceEntry, Context::Block),
        }
    }

    fn block_mapping_key(&mut self, is_first: bool) -> Parsed<'t> {
        if is_first {
            self.take()?;
        }
        match self.peek()? {
            TokenKind::Key => {
                let mark = self.take()?.end;
                match self.peek()? {
                    TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                        self.empty_then(State::BlockMappingValue, mark)
                    }
                    _ => self.node_then(State::BlockMappingValue, Context::BlockOrIndentlessSequence),
                }
            }
            TokenKind::BlockEnd => self.end_of(Event::MappingEnd),
            _ => self.unexpected(),
        }
    }

    fn block_mapping_value(&mut self) -> Parsed<'t> {
        let next = State::BlockMappingKey { is_first: false };
        if *self.peek()? != TokenKind::Value {
            let mark = self.peek_start()?;
            return self.empty_then(next, mark);
        }
        let mark = self.take()?.end;
        match self.peek()? {
            TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => self.empty_then(next, mark),
            _ => self.node_then(next, Context::BlockOrIndentlessSequence),
        }
    }

    fn flow_sequence_entry(&mut self, is_first: bool) -> Parsed<'t> {
        self.begin_flow_entry(is_first, &TokenKind::FlowSequenceEnd)?;
        match self.peek()? {
            TokenKind::FlowSequenceEnd => self.end_of(Event::SequenceEnd),
            TokenKind::Key => {
                let token = self.take()?;
                self.state = State::FlowSequenceEntryKey;
                Ok((Event::MappingStart { anchor: None }, span(token.start, token.end)))
            }
            _ => self.node_then(State::FlowSequenceEntry { is_first: false }, Context::Flow),
        }
    }

    fn flow_sequence_entry_key(&mut self) -> Parsed<'t> {
        match self.peek()? {
            TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd => {
                // go-yaml skips the token too.
                let mark = self.take()?.end;
                self.empty_then(State::FlowSequenceEntryValue, mark)
            }
            _ => self.node_then(State::FlowSequenceEntryValue, Context::Flow),
        }
    }

    fn flow_sequence_entry_value(&mut self) -> Parsed<'t> {
        self.flow_value(State::FlowSequenceEntryEnd, &TokenKind::FlowSequenceEnd)
    }

    fn flow_mapping_key(&mut self, is_first: bool) -> Parsed<'t> {
        self.begin_flow_entry(is_first, &TokenKind::FlowMappingEnd)?;
        match self.peek()? {
            TokenKind::FlowMappingEnd => self.end_of(Event::MappingEnd),
            TokenKind::Key => {
                self.take()?;
                let mark = self.peek_start()?;
                match self.peek()? {
                    TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowMappingEnd => {
                        self.empty_then(State::FlowMappingValue, mark)
                    }
                    _ => self.node_then(State::FlowMappingValue, Context::Flow),
                }
            }
            _ => self.node_then(State::FlowMappingEmptyValue, Context::Flow),
        }
    }

    fn flow_mapping_value(&mut self) -> Parsed<'t> {
        self.flow_value(State::FlowMappingKey { is_first: false }, &TokenKind::FlowMappingEnd)
    }

    /// Goes to the next entry of a flow collection, or to its end.
    fn begin_flow_entry(&mut self, is_first: bool, end: &TokenKind<'_>) -> Result<(), Malformed> {
        if !is_first {
            if self.peek()? == end {
                return Ok(());
            }
            if *self.peek()? != TokenKind::FlowEntry {
                return self.unexpected();
            }
        }
        self.take()?;
        Ok(())
    }

    /// The value of a key in a flow collection, which may be absent.
    fn flow_value(&mut self, next: State, end: &TokenKind<'_>) -> Parsed<'t> {
        let mut mark = self.peek_start()?;
        if *self.peek()? == TokenKind::Value {
            self.take()?;
            let token = self.peek()?;
            if *token != TokenKind::FlowEntry && token != end {
                return self.node_then(next, Context::Flow);
            }
            mark = self.peek_start()?;
        }
        self.empty_then(next, mark)
    }
}

fn empty_scalar<'t>(mark: Mark) -> (Event<'t>, Span) {
    let scalar = Scalar::new(Cow::Borrowed(""), None, true);
    (Event::Scalar { scalar, anchor: None }, span(mark, mark))
}

fn span(start: Mark, end: Mark) -> Span {
    Span { bytes: start.at..end.at, column: start.column }
}
