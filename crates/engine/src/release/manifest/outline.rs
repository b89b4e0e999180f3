//! The outline of a YAML document that is not in the style of charts: the objects that it names, and their places.
//!
//! Only a parser can read such a document, but its events suffice. Aliases are looked up and never expanded, so the
//! work is proportional to the text at any depth of nesting.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::heading::{Heading, Names};
use super::objects::MAX_LIST_DEPTH;
use crate::effort::{Effort, OverBudget};
use crate::yaml::{ChargedParser, Event, Malformed, Prices, Resolved, Scalar, Span};

const PRICES: Prices = Prices { byte: 30, part: 150 };

/// The longest text that a name can be, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// An object that a document names.
pub(super) struct OutlinedObject<'d> {
    pub(super) heading: Heading<'d>,
    /// `None` for the document itself.
    pub(super) item: Option<ItemPlace>,
}

/// The place of an item of a list.
#[derive(Clone)]
pub(super) struct ItemPlace {
    /// The index of the item, after the indices of the lists around it.
    pub(super) path: Vec<usize>,
    pub(super) text: Range<usize>,
    /// The indentation of the first line, which follows a dash.
    pub(super) indent: usize,
}

/// Why there is no outline.
pub(super) enum NoOutline {
    /// Go cannot parse the text.
    Unreadable(String),
    /// A merge key or an alias may name an object, or be one: only a parser that expands aliases can tell.
    Aliased,
}

impl From<OverBudget> for NoOutline {
    fn from(over: OverBudget) -> Self {
        Self::Unreadable(over.into())
    }
}

impl From<Malformed> for NoOutline {
    fn from(at: Malformed) -> Self {
        Self::Unreadable(at.into())
    }
}

/// The objects that a document names. The items of a list count one by one, in place of the list.
pub(super) fn outline<'d>(document: &'d str, effort: &Effort) -> Result<Vec<OutlinedObject<'d>>, NoOutline> {
    let parser = ChargedParser::of(document, effort, PRICES)?;
    let mut reader = Reader { parser, anchors: HashMap::new(), found: Vec::new() };
    loop {
        match reader.next()? {
            (Event::MappingStart { .. }, _) => reader.object(None, None)?,
            (Event::End, _) => return Ok(reader.found),
            (event, _) => _ = reader.node(event)?,
        }
    }
}

struct Reader<'d, 'e> {
    parser: ChargedParser<'d, 'e>,
    anchors: HashMap<&'d str, Node<'d>>,
    found: Vec<OutlinedObject<'d>>,
}

/// A node, reduced to the parts that matter in a heading.
#[derive(Clone)]
enum Node<'d> {
    Text(Cow<'d, str>),
    Null,
    MergeKey,
    /// An alias of anything but a short text.
    Alias,
    Other,
}

impl<'d> Node<'d> {
    fn of(scalar: Scalar<'d>) -> Result<Self, NoOutline> {
        if scalar.is_merge_key() {
            return Ok(Self::MergeKey);
        }
        match scalar.resolve() {
            Some(Resolved::Text(text)) => Ok(Self::Text(text)),
            Some(Resolved::Null) => Ok(Self::Null),
            Some(_) => Ok(Self::Other),
            None => Err(NoOutline::Unreadable("a value is not what its tag says".to_owned())),
        }
    }

    /// The text of a field that names an object.
    fn into_text(self) -> Result<Option<Cow<'d, str>>, NoOutline> {
        match self {
            Self::Text(text) => Ok(Some(text)),
            Self::Alias => Err(NoOutline::Aliased),
            // `<<` is special only as a key.
            Self::MergeKey => Ok(Some(Cow::Borrowed("<<"))),
            Self::Null | Self::Other => Ok(None),
        }
    }
}

impl<'d> Reader<'d, '_> {
    fn next(&mut self) -> Result<(Event<'d>, Span), NoOutline> {
        self.parser.next()
    }

    /// The text of the key of a member, after its event; empty if the key is not a text.
    fn key(&mut self, event: Event<'d>) -> Result<Cow<'d, str>, NoOutline> {
        match self.node(event)? {
            Node::MergeKey | Node::Alias => Err(NoOutline::Aliased),
            Node::Text(key) => Ok(key),
            Node::Null | Node::Other => Ok(Cow::Borrowed("")),
        }
    }

    /// Parses a mapping that may be an object, after its start. `place` is the place of an item of a list.
    fn object(&mut self, place: Option<&ItemPlace>, start: Option<Span>) -> Result<(), NoOutline> {
        let before = self.found.len();
        let (mut heading, mut is_list) = (Heading::default(), false);
        loop {
            let (event, end) = self.next()?;
            if event == Event::MappingEnd {
                if !is_list {
                    let item = place.map(|place| completed(place, start.as_ref(), &end));
                    self.found.push(OutlinedObject { heading, item });
                } else if place.is_none() {
                    let items = self.found[before..].iter_mut();
                    let direct = items.filter(|item| item.item.as_ref().is_some_and(|item| item.path.len() == 1));
                    direct.for_each(|item| item.heading.complete_from(&heading));
                }
                return Ok(());
            }
            let key = self.key(event)?;
            let (event, _) = self.next()?;
            match key.as_ref() {
                "items" => {
                    // If the key repeats, the last one counts.
                    self.found.truncate(before);
                    is_list = self.items(event, place)?;
                }
                "metadata" => heading.names = self.names(event)?,
                "apiVersion" => heading.api_version = self.node(event)?.into_text()?.unwrap_or_default(),
                "kind" => heading.kind = self.node(event)?.into_text()?.unwrap_or_default(),
                _ => _ = self.node(event)?,
            }
        }
    }

    /// Parses the value of `items`, after its first event, and returns whether the object is a list. Go takes an object
    /// at the top for an empty list if the value is null.
    fn items(&mut self, event: Event<'d>, place: Option<&ItemPlace>) -> Result<bool, NoOutline> {
        let path = place.map(|place| place.path.as_slice()).unwrap_or_default();
        if !matches!(event, Event::SequenceStart { .. }) {
            return match self.node(event)? {
                Node::Alias => Err(NoOutline::Aliased),
                node => Ok(matches!(node, Node::Null) && path.is_empty()),
            };
        }
        if path.len() == MAX_LIST_DEPTH {
            return Err(NoOutline::Unreadable(format!("lists are nested deeper than {MAX_LIST_DEPTH} levels")));
        }
        for index in 0.. {
            match self.next()? {
                (Event::SequenceEnd, _) => break,
                (Event::MappingStart { .. }, start) => {
                    let path = path.iter().copied().chain([index]).collect();
                    let place = ItemPlace { path, text: 0..0, indent: start.column };
                    self.object(Some(&place), Some(start))?;
                }
                (Event::Alias(_), _) => return Err(NoOutline::Aliased),
                (event, _) => _ = self.node(event)?,
            }
        }
        Ok(true)
    }

    /// Parses the value of `metadata`, after its first event.
    fn names(&mut self, event: Event<'d>) -> Result<Names<'d>, NoOutline> {
        let mut names = Names::default();
        if !matches!(event, Event::MappingStart { .. }) {
            return match self.node(event)? {
                Node::Alias => Err(NoOutline::Aliased),
                _ => Ok(names),
            };
        }
        self.note(&event);
        loop {
            let (event, _) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(names);
            }
            let key = self.key(event)?;
            let (event, _) = self.next()?;
            let value = self.node(event)?;
            match key.as_ref() {
                "name" => names.name = value.into_text()?,
                "namespace" => names.namespace = value.into_text()?,
                _ => {}
            }
        }
    }

    /// Parses the node that begins with an event.
    fn node(&mut self, event: Event<'d>) -> Result<Node<'d>, NoOutline> {
        match event {
            Event::Alias(name) => self.alias(name),
            Event::Scalar { scalar, anchor } => {
                let node = Node::of(scalar)?;
                if let Some(anchor) = anchor {
                    self.anchors.insert(anchor, shared(&node));
                }
                Ok(node)
            }
            event => {
                self.note(&event);
                self.skip_collection()?;
                Ok(Node::Other)
            }
        }
    }

    /// Skips a collection, after its start.
    fn skip_collection(&mut self) -> Result<(), NoOutline> {
        let mut depth = 1_usize;
        while depth > 0 {
            let (event, _) = self.next()?;
            match event {
                Event::SequenceStart { .. } | Event::MappingStart { .. } => {
                    self.note(&event);
                    depth += 1;
                }
                Event::SequenceEnd | Event::MappingEnd => depth -= 1,
                // The parser ends every collection that it begins, or reports an error.
                Event::End => return Ok(()),
                event => _ = self.node(event)?,
            }
        }
        Ok(())
    }

    fn alias(&self, name: &str) -> Result<Node<'d>, NoOutline> {
        let node = self
            .anchors
            .get(name)
            .ok_or_else(|| NoOutline::Unreadable("a document has an alias without an anchor".to_owned()))?;
        match node {
            node @ (Node::Text(_) | Node::Null) => Ok(node.clone()),
            _ => Ok(Node::Alias),
        }
    }

    /// Stores the anchor of a collection.
    fn note(&mut self, event: &Event<'d>) {
        if let Event::SequenceStart { anchor: Some(anchor) } | Event::MappingStart { anchor: Some(anchor) } = event {
            self.anchors.insert(anchor, Node::Other);
        }
    }
}

/// The node that an alias can stand for in a heading.
fn shared<'d>(node: &Node<'d>) -> Node<'d> {
    match node {
        Node::Text(text) if text.len() <= MAX_NAME_BYTES => node.clone(),
        Node::Null => Node::Null,
        _ => Node::Other,
    }
}

/// The place of an item, once its end is known.
fn completed(place: &ItemPlace, start: Option<&Span>, end: &Span) -> ItemPlace {
    let start = start.map(|start| start.bytes.start).unwrap_or_default();
    ItemPlace { text: start.min(end.bytes.end)..end.bytes.end, ..place.clone() }
}
