//! YAML as a tree of nodes with locations.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use granit_parser::{Event, Marker, Parser, ScalarStyle};

use crate::policy_files::problem::{Layer, Problems, Span};

/// The only key of a mapping that replaces a shipped list.
pub(in crate::policy_files) const ONLY: &str = "only";

/// The largest number of nodes in a file, including those that aliases repeat. The shipped policy has about three hundred.
const MAX_NODES: usize = 100_000;

/// Each node counts once more for every so many bytes of its text.
const TEXT_BYTES_PER_NODE: usize = 16;

/// The deepest nesting.
const MAX_DEPTH: usize = 32;

/// A node of a file.
#[derive(Debug, Clone)]
pub(in crate::policy_files) struct Node {
    pub(in crate::policy_files) span: Span,
    pub(in crate::policy_files) content: Content,
    /// The range of text in which the node is written. An alias is written elsewhere than the node that it repeats.
    pub(in crate::policy_files) written: Range<usize>,
}

#[derive(Debug, Clone)]
pub(in crate::policy_files) enum Content {
    /// `~`, `null`, or nothing at all.
    Null,
    /// `quoted` distinguishes `'true'` from `true`.
    Scalar {
        text: String,
        quoted: bool,
    },
    List(Vec<Node>),
    Mapping(Vec<KeyValue>),
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(in crate::policy_files) struct KeyValue {
    pub(in crate::policy_files) key: String,
    pub(in crate::policy_files) at: Span,
    pub(in crate::policy_files) value: Node,
}

impl Node {
    /// Parses the one document of a text. An empty text is [`Content::Null`].
    pub(super) fn parse(text: &str, layer: Layer, problems: &mut Problems<'_>) -> Option<Self> {
        let mut reader =
            Reader { events: Parser::new_from_str(text), anchors: HashMap::new(), nodes: 0, layer, problems };
        match reader.document() {
            Ok(node) => Some(node),
            Err((span, message)) => {
                problems.at(span, message);
                None
            }
        }
    }

    /// The node of an empty text.
    pub(super) fn nothing() -> Self {
        Self { span: Span::default(), content: Content::Null, written: 0..0 }
    }

    /// The items of a list; empty for any other node.
    pub(in crate::policy_files) fn items(&self) -> &[Self] {
        match &self.content {
            Content::List(items) => items,
            _ => &[],
        }
    }

    /// The entries of a mapping; empty for any other node.
    pub(in crate::policy_files) fn entries(&self) -> &[KeyValue] {
        match &self.content {
            Content::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The entry of a key, if the node is a mapping with this key.
    pub(in crate::policy_files) fn entry(&self, key: &str) -> Option<&KeyValue> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The value of a key, if the node is a mapping with this key.
    pub(in crate::policy_files) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        let Content::Mapping(entries) = &mut self.content else { return None };
        entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
    }

    /// The value at the end of a path of keys.
    pub(in crate::policy_files) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The items of a list of a policy, which stand below `only` if they replace the shipped ones.
    pub(in crate::policy_files) fn listed(&self) -> &[Self] {
        self.get(ONLY).unwrap_or(self).items()
    }

    /// The text of a scalar.
    pub(in crate::policy_files) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether two nodes have the same content. Locations, quotes and the order of keys do not matter.
    pub(in crate::policy_files) fn says(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Content::Null, Content::Null) => true,
            (Content::Scalar { text: one, .. }, Content::Scalar { text: other, .. }) => one == other,
            (Content::List(one), Content::List(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.says(other))
            }
            (Content::Mapping(one), Content::Mapping(entries)) => {
                one.len() == entries.len()
                    && one.iter().all(|entry| other.get(&entry.key).is_some_and(|other| entry.value.says(other)))
            }
            _ => false,
        }
    }

    /// A short description for messages.
    pub(super) fn description(&self) -> String {
        match &self.content {
            Content::Null => "nothing".to_owned(),
            Content::Scalar { text, .. } => format!("`{text}`"),
            Content::List(_) => "a list".to_owned(),
            Content::Mapping(_) => "a mapping".to_owned(),
        }
    }

    /// The number of nodes in this one, including itself. A long text counts as several nodes.
    fn size(&self) -> usize {
        let text = self.text().map_or(1, size_of);
        let items = self.items().iter().map(Self::size).sum::<usize>();
        let entries = self.entries().iter().map(|entry| size_of(&entry.key) + entry.value.size());
        text + items + entries.sum::<usize>()
    }
}

fn size_of(text: &str) -> usize {
    1 + text.len() / TEXT_BYTES_PER_NODE
}

/// One line, in YAML's flow style.
impl fmt::Display for Node {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Null => out.write_str("~"),
            Content::Scalar { text, .. } if text.contains(char::is_control) => {
                out.write_str(&serde_json::Value::from(text.as_str()).to_string())
            }
            // A plain text of several lines may contain characters that would end a text on one line.
            Content::Scalar { text, quoted } if *quoted || text.contains([',', '[', ']', '{', '}']) => {
                write!(out, "'{}'", text.replace('\'', "''"))
            }
            Content::Scalar { text, .. } => out.write_str(text),
            Content::List(items) => {
                let items: Vec<_> = items.iter().map(Self::to_string).collect();
                write!(out, "[{}]", items.join(", "))
            }
            Content::Mapping(entries) => {
                let entries: Vec<_> =
                    entries.iter().map(|KeyValue { key, value, .. }| format!("{key}: {value}")).collect();
                write!(out, "{{{}}}", entries.join(", "))
            }
        }
    }
}

type SyntaxError = (Span, String);

struct Reader<'t, 'p, 's> {
    events: Parser<'t, granit_parser::StrInput<'t>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    layer: Layer,
    problems: &'p mut Problems<'s>,
}

impl<'t> Reader<'t, '_, '_> {
    fn document(&mut self) -> Result<Node, SyntaxError> {
        let mut document = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(..) if document.is_some() => {
                    return Err((span, "a policy file holds one document; move this one to its own file".into()));
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                event => document = Some(self.node(event, span, 0)?),
            }
        }
        Ok(document.unwrap_or_else(Node::nothing))
    }

    /// The next event that is not a comment.
    fn next(&mut self) -> Result<(Event<'t>, Span), SyntaxError> {
        loop {
            let Some(event) = self.events.next_event() else {
                return Err((Span::default(), "the file ends unexpectedly".to_owned()));
            };
            let (event, span) = event.map_err(|error| (at(*error.marker(), None, self.layer), error.info()))?;
            if !matches!(event, Event::Comment(..)) {
                return Ok((event, at(span.start, Some(span.end), self.layer)));
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, SyntaxError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            return Err((
                span,
                format!("the file has more than {MAX_NODES} values, or is nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        let ((content, end), anchor) = match event {
            Event::Scalar(text, style, anchor, _) => ((scalar(text, style), span.end), anchor),
            Event::SequenceStart(_, anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.keys(depth)?, anchor),
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return Err((span, "the alias refers to a value that contains it".to_owned()));
                };
                self.nodes += node.size();
                return Ok(Node { written: span.start..span.end, ..node });
            }
            _ => return Err((span, "expected a value".to_owned())),
        };
        let node = Node { span, content, written: span.start..end };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// The items of a list, and the position of its end.
    fn list(&mut self, depth: usize) -> Result<(Content, usize), SyntaxError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, span) => return Ok((Content::List(items), span.end)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    /// The entries of a mapping, and the position of its end.
    fn keys(&mut self, depth: usize) -> Result<(Content, usize), SyntaxError> {
        let mut entries: Vec<KeyValue> = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::MappingEnd {
                return Ok((Content::Mapping(entries), at.end));
            }
            let key = self.node(event, at, depth + 1)?;
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            match key.content {
                Content::Scalar { text: key, .. } if entries.iter().any(|entry| entry.key == key) => {
                    self.problems.at(at, format!("the key `{key}` appears twice; remove one"));
                }
                Content::Scalar { text: key, .. } => entries.push(KeyValue { key, at, value }),
                _ => self.problems.at(at, format!("expected a key, got {}", key.description())),
            }
        }
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Content {
    let quoted = style != ScalarStyle::Plain;
    if !quoted && matches!(text.as_ref(), "" | "~" | "null") {
        return Content::Null;
    }
    Content::Scalar { text: text.into_owned(), quoted }
}

fn at(start: Marker, end: Option<Marker>, layer: Layer) -> Span {
    let start = start.byte_offset().unwrap_or_default();
    let end = end.and_then(|end| end.byte_offset()).unwrap_or_default();
    Span { start, end: end.max(start + 1), layer }
}
