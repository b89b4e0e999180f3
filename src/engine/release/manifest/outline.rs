//! The outline of a YAML document that is not written like those of charts: which objects it names and where they are.
//!
//! Only a parser can read such a document, but its events suffice. Aliases are looked up and never expanded, so the work is
//! proportional to the text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, Parser, Span, StrInput};

use super::heading::{Heading, Names};
use crate::engine::effort::{Effort, OverBudget};

/// The steps to scan a byte of YAML.
const SCAN_STEPS: u64 = 60;

/// The longest text that a name can be, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// The key whose value is merged into the mapping around it.
const MERGE_KEY: &str = "<<";

/// An object that a document names.
pub(super) struct OutlinedObject<'d> {
    pub(super) heading: Heading<'d>,
    /// `None` for the document itself.
    pub(super) item: Option<ItemPlace>,
}

/// The place of an item of a list.
pub(super) struct ItemPlace {
    pub(super) index: usize,
    pub(super) text: Range<usize>,
    /// How far its first line is indented: it follows a dash.
    pub(super) indent: usize,
}

/// Why there is no outline.
pub(super) enum NoOutline {
    /// The text is not YAML.
    Malformed { line: usize, column: usize },
    /// It is more work than the review has left.
    OverBudget,
    /// A merge key may name the object, or an alias may be one: only a parser that expands aliases can tell.
    Merged,
}

impl From<OverBudget> for NoOutline {
    fn from(_: OverBudget) -> Self {
        Self::OverBudget
    }
}

/// The objects that a document names. The items of a list count one by one, in place of the list.
pub(super) fn outline<'d>(document: &'d str, effort: &Effort) -> Result<Vec<OutlinedObject<'d>>, NoOutline> {
    let mut reader = Reader {
        // A comment is no node.
        events: Parser::new_from_str_with_options(document, granit_parser::options! { emit_comments: false }),
        effort,
        scanned: 0,
        anchors: HashMap::new(),
        found: Vec::new(),
        end: document.len(),
    };
    loop {
        match reader.next()? {
            (Event::MappingStart(..), _) => reader.object(None)?,
            (Event::StreamEnd, _) => return Ok(reader.found),
            _ => {}
        }
    }
}

struct Reader<'d, 'e> {
    events: Parser<'d, StrInput<'d>>,
    effort: &'e Effort,
    /// The bytes that were paid for.
    scanned: usize,
    anchors: HashMap<usize, Node<'d>>,
    found: Vec<OutlinedObject<'d>>,
    end: usize,
}

/// A node, as far as it can be a part of a heading.
#[derive(Clone)]
enum Node<'d> {
    Text(Cow<'d, str>),
    Mapping {
        names: Names<'d>,
        /// Whether a merge key adds members.
        is_merged: bool,
    },
    Other,
}

impl<'d> Reader<'d, '_> {
    fn next(&mut self) -> Result<(Event<'d>, Span), NoOutline> {
        match self.events.next_event() {
            Some(Ok((event, span))) => {
                let at = span.end.byte_offset().unwrap_or(self.end).max(self.scanned);
                self.effort.take((at - self.scanned) as u64 * SCAN_STEPS + SCAN_STEPS)?;
                self.scanned = at;
                Ok((event, span))
            }
            Some(Err(error)) => {
                let at = error.marker();
                Err(NoOutline::Malformed { line: at.line(), column: at.col() + 1 })
            }
            // The parser ends every node that it begins, or reports an error.
            None => Err(NoOutline::Malformed { line: 0, column: 0 }),
        }
    }

    /// Reads a mapping that may be an object, whose start was read. `item` is its index and start if it is in a list.
    fn object(&mut self, item: Option<(usize, Span)>) -> Result<(), NoOutline> {
        let before = self.found.len();
        let mut heading = Heading::default();
        loop {
            let (event, end) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                if heading.is_list() && self.found.len() > before {
                    self.found[before..].iter_mut().for_each(|item| item.heading.complete_from(&heading));
                } else {
                    self.found.truncate(before);
                    let item = item.map(|(index, start)| self.place(index, &start, &end));
                    self.found.push(OutlinedObject { heading, item });
                }
                return Ok(());
            }
            let key = self.node(event)?;
            let (event, _) = self.next()?;
            match (&key, event) {
                (Node::Text(key), event) if item.is_none() && key == "items" => {
                    // The last of several counts.
                    self.found.truncate(before);
                    match event {
                        Event::SequenceStart(..) => self.items()?,
                        Event::Alias(_) => return Err(NoOutline::Merged),
                        event => _ = self.node(event)?,
                    }
                }
                (Node::Text(key), event) => match (key.as_ref(), self.node(event)?) {
                    (MERGE_KEY, _) => return Err(NoOutline::Merged),
                    ("metadata", Node::Mapping { is_merged: true, .. }) => return Err(NoOutline::Merged),
                    ("metadata", Node::Mapping { names, .. }) => heading.names = names,
                    ("apiVersion", Node::Text(text)) => heading.api_version = text,
                    ("kind", Node::Text(text)) => heading.kind = text,
                    _ => {}
                },
                (_, event) => _ = self.node(event)?,
            }
        }
    }

    /// The items of a list, whose start was read.
    fn items(&mut self) -> Result<(), NoOutline> {
        let mut index = 0;
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(()),
                (Event::MappingStart(..), start) => self.object(Some((index, start)))?,
                (Event::Alias(_), _) => return Err(NoOutline::Merged),
                (event, _) => _ = self.node(event)?,
            }
            index += 1;
        }
    }

    fn place(&self, index: usize, start: &Span, end: &Span) -> ItemPlace {
        let until = end.end.byte_offset().unwrap_or(self.end);
        let text = start.start.byte_offset().unwrap_or_default().min(until)..until;
        ItemPlace { index, text, indent: start.start.col() }
    }

    /// Reads the node that begins with an event.
    fn node(&mut self, event: Event<'d>) -> Result<Node<'d>, NoOutline> {
        let (anchor, node) = match event {
            Event::Scalar(text, _, anchor, _) => (anchor, Node::Text(text)),
            Event::Alias(anchor) => return Ok(self.anchors.get(&anchor).cloned().unwrap_or(Node::Other)),
            Event::SequenceStart(_, anchor, _) => {
                loop {
                    let (event, _) = self.next()?;
                    if matches!(event, Event::SequenceEnd) {
                        break;
                    }
                    self.node(event)?;
                }
                (anchor, Node::Other)
            }
            Event::MappingStart(_, anchor, _) => (anchor, self.mapping()?),
            _ => return Ok(Node::Other),
        };
        let is_short = !matches!(&node, Node::Text(text) if text.len() > MAX_NAME_BYTES);
        if anchor != 0 && is_short {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// A mapping that may be `metadata`, whose start was read.
    fn mapping(&mut self) -> Result<Node<'d>, NoOutline> {
        let (mut names, mut is_merged) = (Names::default(), false);
        loop {
            let (event, _) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Node::Mapping { names, is_merged });
            }
            let key = self.node(event)?;
            let (event, _) = self.next()?;
            let value = self.node(event)?;
            if let Node::Text(key) = key {
                match (key.as_ref(), value) {
                    (MERGE_KEY, _) => is_merged = true,
                    ("name", Node::Text(text)) => names.name = Some(text),
                    ("namespace", Node::Text(text)) => names.namespace = Some(text),
                    _ => {}
                }
            }
        }
    }
}
