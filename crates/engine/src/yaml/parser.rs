//! Converts tokens to nodes: go-yaml's `parserc.go`. Only the first document of a text is parsed, as by
//! `yaml.Unmarshal`.

use std::borrow::Cow;

use super::characters::Malformed;
use super::nodes::{Node, Nodes};
use super::scalar::Scalar;
use super::scanner::Scanner;
use super::token::TokenKind;
use crate::effort::Effort;

/// The steps to parse a byte, and those of a node or of the end of a collection.
const BYTE_STEPS: u64 = 50;
const PART_STEPS: u64 = 250;

/// Parses a document into nodes, of which the first one is the root. An empty document has none.
///
/// # Errors
/// The text is not YAML, or it is more work than the review has left.
pub(super) fn parse<'t>(text: &'t str, effort: &Effort) -> Result<Vec<Node<'t>>, String> {
    let mut parser = Parser {
        scanner: Scanner::of(text)?,
        state: State::DocumentStart,
        states: Vec::new(),
        tags: Vec::new(),
        nodes: Nodes::new(effort),
    };
    let mut charged = 0;
    while parser.state != State::End {
        parser.step()?;
        let scanned = parser.scanner.position();
        effort.take((scanned - charged) as u64 * BYTE_STEPS + PART_STEPS)?;
        charged = scanned;
    }
    Ok(parser.nodes.into_vec())
}

struct Parser<'t, 'e> {
    scanner: Scanner<'t>,
    state: State,
    /// The states in which to continue after nodes.
    states: Vec<State>,
    /// Handles and prefixes.
    tags: Vec<(Cow<'t, str>, Cow<'t, str>)>,
    nodes: Nodes<'t, 'e>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    End,
    BlockNode,
    BlockSequenceEntry,
    IndentlessSequenceEntry,
    BlockMappingKey,
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

impl<'t> Parser<'t, '_> {
    /// Parses at most one node, or the end of a collection.
    fn step(&mut self) -> Result<(), String> {
        match self.state {
            State::DocumentStart => self.start_document(),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd | State::End => {
                // An error in the next token is one of this document.
                self.peek()?;
                self.state = State::End;
                Ok(())
            }
            State::BlockNode => self.node(Context::Block),
            State::BlockSequenceEntry => self.block_sequence_entry(),
            State::IndentlessSequenceEntry => self.indentless_sequence_entry(),
            State::BlockMappingKey => self.block_mapping_key(),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceEntry { is_first } => self.flow_sequence_entry(is_first),
            State::FlowSequenceEntryKey => self.flow_sequence_entry_key(),
            State::FlowSequenceEntryValue => self.flow_value(State::FlowSequenceEntryEnd, TokenKind::FlowSequenceEnd),
            State::FlowSequenceEntryEnd => {
                self.state = State::FlowSequenceEntry { is_first: false };
                self.nodes.close();
                Ok(())
            }
            State::FlowMappingKey { is_first } => self.flow_mapping_key(is_first),
            State::FlowMappingValue => {
                self.flow_value(State::FlowMappingKey { is_first: false }, TokenKind::FlowMappingEnd)
            }
            State::FlowMappingEmptyValue => self.empty_then(State::FlowMappingKey { is_first: false }),
        }
    }

    fn peek(&mut self) -> Result<&TokenKind<'t>, Malformed> {
        self.scanner.peek().map(|token| &token.kind)
    }

    /// Takes the token that was peeked at.
    fn take(&mut self) -> Result<(), Malformed> {
        let at = self.scanner.peek()?.start;
        self.scanner.take().map(|_| ()).ok_or_else(|| Malformed::at(at))
    }

    fn unexpected<T>(&mut self) -> Result<T, String> {
        Err(Malformed::at(self.scanner.peek()?.start).into())
    }

    /// Continues after a node.
    fn leave(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// Parses a node, and continues with a state after it.
    fn node_then(&mut self, state: State, context: Context) -> Result<(), String> {
        self.states.push(state);
        self.node(context)
    }

    /// An empty node, after which a state continues.
    fn empty_then(&mut self, state: State) -> Result<(), String> {
        self.state = state;
        self.nodes.add(empty_scalar(None), None)
    }

    /// Like [`Self::node_then`]. The node is empty if one of some tokens is next.
    fn node_unless(&mut self, next: &[TokenKind<'_>], state: State, context: Context) -> Result<(), String> {
        if next.contains(self.peek()?) { self.empty_then(state) } else { self.node_then(state, context) }
    }

    /// Takes the token that ends a collection.
    fn end_collection(&mut self) -> Result<(), String> {
        self.take()?;
        self.leave();
        self.nodes.close();
        Ok(())
    }

    fn start_document(&mut self) -> Result<(), String> {
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

    fn directives(&mut self) -> Result<(), String> {
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

    fn document_content(&mut self) -> Result<(), String> {
        use TokenKind::{DocumentEnd, DocumentStart, StreamEnd, TagDirective, VersionDirective};
        match self.peek()? {
            VersionDirective { .. } | TagDirective { .. } | DocumentStart | DocumentEnd | StreamEnd => {
                self.empty_then(State::DocumentEnd)
            }
            _ => self.node(Context::Block),
        }
    }

    fn node(&mut self, context: Context) -> Result<(), String> {
        if let TokenKind::Alias(name) = *self.peek()? {
            self.take()?;
            self.leave();
            return self.nodes.add_alias(name);
        }
        let (anchor, tag) = self.properties()?;
        let is_block = context != Context::Flow;
        let (node, state) = match self.peek()? {
            TokenKind::Scalar { text, is_plain } => {
                let scalar = Scalar::new(text.clone(), tag, *is_plain);
                self.take()?;
                self.leave();
                return self.nodes.add(Node::Scalar(scalar), anchor);
            }
            TokenKind::BlockEntry if context == Context::BlockOrIndentlessSequence => {
                // The list has no token of its own.
                self.state = State::IndentlessSequenceEntry;
                return self.nodes.add(Node::Sequence(Vec::new()), anchor);
            }
            TokenKind::FlowSequenceStart => (Node::Sequence(Vec::new()), State::FlowSequenceEntry { is_first: true }),
            TokenKind::FlowMappingStart => (Node::Mapping(Vec::new()), State::FlowMappingKey { is_first: true }),
            TokenKind::BlockSequenceStart if is_block => (Node::Sequence(Vec::new()), State::BlockSequenceEntry),
            TokenKind::BlockMappingStart if is_block => (Node::Mapping(Vec::new()), State::BlockMappingKey),
            _ if anchor.is_some() || tag.is_some() => {
                self.leave();
                return self.nodes.add(empty_scalar(tag), anchor);
            }
            _ => return self.unexpected(),
        };
        self.take()?;
        self.state = state;
        self.nodes.add(node, anchor)
    }

    /// The anchor and the tag of a node, in any order.
    fn properties(&mut self) -> Result<(Option<&'t str>, Option<String>), String> {
        let (mut anchor, mut tag) = (None, None);
        loop {
            match self.peek()? {
                TokenKind::Anchor(name) if anchor.is_none() => anchor = Some(*name),
                TokenKind::Tag { handle, suffix } if tag.is_none() => {
                    let (handle, suffix) = (handle.clone(), suffix.clone());
                    let prefix = if handle.is_empty() { Some("") } else { self.prefix_of(&handle) };
                    match prefix.map(|prefix| format!("{prefix}{suffix}")) {
                        Some(complete) if handle.is_empty() || !complete.is_empty() => tag = Some(complete),
                        _ => return self.unexpected(),
                    }
                }
                _ => return Ok((anchor, tag.filter(|tag: &String| !tag.is_empty()))),
            }
            self.take()?;
        }
    }

    fn block_sequence_entry(&mut self) -> Result<(), String> {
        use TokenKind::{BlockEnd, BlockEntry};
        match self.peek()? {
            BlockEntry => {
                self.take()?;
                self.node_unless(&[BlockEntry, BlockEnd], State::BlockSequenceEntry, Context::Block)
            }
            BlockEnd => self.end_collection(),
            _ => self.unexpected(),
        }
    }

    fn indentless_sequence_entry(&mut self) -> Result<(), String> {
        use TokenKind::{BlockEnd, BlockEntry, Key, Value};
        if *self.peek()? != BlockEntry {
            self.leave();
            self.nodes.close();
            return Ok(());
        }
        self.take()?;
        self.node_unless(&[BlockEntry, Key, Value, BlockEnd], State::IndentlessSequenceEntry, Context::Block)
    }

    fn block_mapping_key(&mut self) -> Result<(), String> {
        match self.peek()? {
            TokenKind::Key => self.block_member(State::BlockMappingValue),
            TokenKind::BlockEnd => self.end_collection(),
            _ => self.unexpected(),
        }
    }

    fn block_mapping_value(&mut self) -> Result<(), String> {
        match self.peek()? {
            TokenKind::Value => self.block_member(State::BlockMappingKey),
            _ => self.empty_then(State::BlockMappingKey),
        }
    }

    /// A key or a value in a block, after its token.
    fn block_member(&mut self, next: State) -> Result<(), String> {
        use TokenKind::{BlockEnd, Key, Value};
        self.take()?;
        self.node_unless(&[Key, Value, BlockEnd], next, Context::BlockOrIndentlessSequence)
    }

    fn flow_sequence_entry(&mut self, is_first: bool) -> Result<(), String> {
        self.begin_flow_entry(is_first, &TokenKind::FlowSequenceEnd)?;
        match self.peek()? {
            TokenKind::FlowSequenceEnd => self.end_collection(),
            TokenKind::Key => {
                self.take()?;
                self.state = State::FlowSequenceEntryKey;
                self.nodes.add(Node::Mapping(Vec::new()), None)
            }
            _ => self.node_then(State::FlowSequenceEntry { is_first: false }, Context::Flow),
        }
    }

    fn flow_sequence_entry_key(&mut self) -> Result<(), String> {
        match self.peek()? {
            TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd => {
                // go-yaml skips the token too.
                self.take()?;
                self.empty_then(State::FlowSequenceEntryValue)
            }
            _ => self.node_then(State::FlowSequenceEntryValue, Context::Flow),
        }
    }

    fn flow_mapping_key(&mut self, is_first: bool) -> Result<(), String> {
        use TokenKind::{FlowEntry, FlowMappingEnd, Value};
        self.begin_flow_entry(is_first, &FlowMappingEnd)?;
        match self.peek()? {
            FlowMappingEnd => self.end_collection(),
            TokenKind::Key => {
                self.take()?;
                self.node_unless(&[Value, FlowEntry, FlowMappingEnd], State::FlowMappingValue, Context::Flow)
            }
            _ => self.node_then(State::FlowMappingEmptyValue, Context::Flow),
        }
    }

    /// Goes to the next entry of a flow collection, or to its end.
    fn begin_flow_entry(&mut self, is_first: bool, end: &TokenKind<'_>) -> Result<(), String> {
        if is_first || self.peek()? == end {
            return Ok(());
        }
        if *self.peek()? != TokenKind::FlowEntry {
            return self.unexpected();
        }
        Ok(self.take()?)
    }

    /// The value of a key in a flow collection, which may be absent.
    fn flow_value(&mut self, next: State, end: TokenKind<'_>) -> Result<(), String> {
        if *self.peek()? != TokenKind::Value {
            return self.empty_then(next);
        }
        self.take()?;
        self.node_unless(&[TokenKind::FlowEntry, end], next, Context::Flow)
    }
}

fn empty_scalar<'t>(tag: Option<String>) -> Node<'t> {
    Node::Scalar(Scalar::new(Cow::Borrowed(""), tag, true))
}
