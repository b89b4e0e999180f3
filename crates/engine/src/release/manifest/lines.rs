//! The heading of a document in the style of charts, found in its lines without parsing them.
//!
//! Go also ends lines at other characters, and lets texts in quotes and braces continue at the margin: a line that
//! looks like `kind: Secret` may be a part of a text. So this module accepts a document only if every line certainly
//! begins outside such a text. A parser reads all other documents, which takes thirty times as long.

use std::borrow::Cow;

use super::heading::{Heading, Names};

/// The white space of YAML. Other characters that look like it are letters.
const BLANKS: [char; 2] = [' ', '\t'];

/// Whether a text has line breaks of Go apart from the ordinary one, or a byte order mark, at which Go drops
/// characters.
fn has_odd_characters(text: &str) -> bool {
    let odd = ['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}'];
    memchr::memchr(b'\r', text.as_bytes()).is_some() || !text.is_ascii() && text.contains(odd)
}

/// Finds the heading in the lines of a YAML document. `None` if only a parser can: the document has keys at the margin
/// or in `metadata` that are not plain words, values there that do not end in their line, tags, anchors, or a list of
/// objects.
pub(super) fn heading_from_lines(document: &str) -> Option<Heading<'_>> {
    if has_odd_characters(document) {
        return None;
    }
    let (mut lines, mut heading) = (HeadingLines::default(), Heading::default());
    // The indentation of the text after `|` or `>`, which continues in deeper lines.
    let mut block_scalar = None;
    for line in document.lines() {
        let text = line.trim_start_matches(' ');
        let depth = line.len() - text.len();
        if text.is_empty() || block_scalar.is_some_and(|at| depth > at) {
            continue;
        }
        block_scalar = None;
        if text.starts_with('#') {
            continue;
        }
        match Ending::of(text, depth)? {
            Ending::Complete => {}
            Ending::BlockScalar { at } => block_scalar = Some(at),
        }
        lines.read(text.trim_end_matches(BLANKS), depth, &mut heading)?;
    }
    (!heading.kind.is_empty()).then_some(heading)
}

/// How a line ends.
enum Ending {
    Complete,
    /// A text follows in the lines that are indented deeper than this column.
    BlockScalar {
        at: usize,
    },
}

impl Ending {
    /// `None` if a text or a collection continues in the next line at any indentation, or if only a parser can tell.
    fn of(line: &str, depth: usize) -> Option<Self> {
        let (mut at, mut text) = (depth, line);
        while let Some(item) = text.strip_prefix('-').filter(|item| item.is_empty() || item.starts_with(' ')) {
            let inside = item.trim_start_matches(' ');
            if inside.is_empty() {
                return Some(Self::Complete);
            }
            // An item is not deeper than its own dash.
            if !inside.starts_with("- ") && Self::of_value(inside, at).is_some_and(|ending| ending.is_block_scalar()) {
                return Some(Self::BlockScalar { at });
            }
            at += text.len() - inside.len();
            text = inside;
        }
        match text.as_bytes().first()? {
            b'"' | b'\'' => {
                let behind = behind_quotes(text)?;
                match behind.strip_prefix(':').filter(|value| value.is_empty() || value.starts_with(BLANKS)) {
                    Some(value) => Self::of_value(value, at),
                    None => is_comment(behind).then_some(Self::Complete),
                }
            }
            b'[' | b'{' | b'|' | b'>' => Self::of_value(text, at),
            b'&' | b'*' | b'!' | b'%' | b'@' | b'`' | b'?' | b'\t' => None,
            b'#' => Some(Self::Complete),
            _ => match key_of(text) {
                Some((_, value)) => Self::of_value(value, at),
                None => Some(Self::Complete),
            },
        }
    }

    /// How the value of a key at a column, or of an item, ends.
    fn of_value(value: &str, at: usize) -> Option<Self> {
        let value = value.trim_matches(BLANKS);
        match value.as_bytes().first() {
            Some(b'"' | b'\'') => is_comment(behind_quotes(value)?).then_some(Self::Complete),
            Some(b'[' | b'{') => is_comment(behind_brackets(value)?).then_some(Self::Complete),
            Some(b'|' | b'>') => {
                let header =
                    value[1..].trim_start_matches(|byte: char| byte.is_ascii_digit() || matches!(byte, '+' | '-'));
                is_comment(header).then_some(Self::BlockScalar { at })
            }
            Some(b'&' | b'!' | b'%' | b'@' | b'`' | b'?' | b':') => None,
            Some(b'-') if value == "-" || value.starts_with("- ") => None,
            _ => Some(Self::Complete),
        }
    }

    fn is_block_scalar(&self) -> bool {
        matches!(self, Self::BlockScalar { .. })
    }
}

/// The lines so far that name the object.
#[derive(Default)]
struct HeadingLines {
    in_metadata: bool,
    /// The indentation of the members of `metadata`.
    indent: Option<usize>,
    /// The indentation of the last value. The value continues in a line that is indented deeper.
    value_at: Option<usize>,
}

impl HeadingLines {
    fn read<'m>(&mut self, text: &'m str, depth: usize, heading: &mut Heading<'m>) -> Option<()> {
        if self.value_at.take().is_some_and(|value_at| depth > value_at) {
            return None;
        }
        let is_item = text == "-" || text.starts_with("- ");
        if depth == 0 {
            self.in_metadata = text == "metadata:";
            // The items of a list may be at the margin.
            if is_item {
                return Some(());
            }
            match plain_key(text)? {
                ("apiVersion", version) => (heading.api_version, self.value_at) = (scalar(version)?, Some(depth)),
                ("kind", kind) => (heading.kind, self.value_at) = (scalar(kind)?, Some(depth)),
                // If the key repeats, the last one counts.
                ("metadata", "") => (heading.names, self.indent) = (Names::default(), None),
                ("metadata" | "items", _) => return None,
                _ => {}
            }
        } else if self.in_metadata && depth == *self.indent.get_or_insert(depth) && !is_item {
            match plain_key(text)? {
                ("name", name) => (heading.names.name, self.value_at) = (Some(scalar(name)?), Some(depth)),
                ("namespace", namespace) => {
                    (heading.names.namespace, self.value_at) = (Some(scalar(namespace)?), Some(depth));
                }
                _ => {}
            }
        }
        Some(())
    }
}

/// The key at the start of a line and the text after its colon, if the key is a plain word with the colon directly
/// after it.
fn plain_key(text: &str) -> Option<(&str, &str)> {
    let (key, value) = key_of(text)?;
    (!key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .then_some((key, value.trim_matches(BLANKS)))
}

/// The unquoted key at the start of a line, and the text after its colon.
fn key_of(text: &str) -> Option<(&str, &str)> {
    let colon = text.match_indices(':').map(|(at, _)| at);
    let at = colon.into_iter().find(|at| text[at + 1..].is_empty() || text[at + 1..].starts_with(BLANKS))?;
    let key = &text[..at];
    // A comment ends the line.
    (!key.contains(" #") && !key.contains("\t#")).then_some((key, &text[at + 1..]))
}

/// The text after a text in quotes; `None` if the quotes close in a later line.
fn behind_quotes(text: &str) -> Option<&str> {
    let quote = text.as_bytes().first()?;
    let mut bytes = text.bytes().enumerate().skip(1).peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' if *quote == b'"' => _ = bytes.next()?,
            byte if byte == *quote && *quote == b'\'' && bytes.peek().is_some_and(|(_, next)| next == quote) => {
                bytes.next();
            }
            byte if byte == *quote => return Some(&text[at + 1..]),
            _ => {}
        }
    }
    None
}

/// The text after a list or a mapping in brackets; `None` if the brackets close in a later line.
fn behind_brackets(text: &str) -> Option<&str> {
    let (mut rest, mut depth) = (text, 0_usize);
    loop {
        let at = rest.find(['[', ']', '{', '}', '"', '\'', '#'])?;
        match rest.as_bytes()[at] {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            // Whether a text in quotes or a comment begins here depends on the text before.
            b'"' | b'\'' if rest[..at].is_empty() || rest[..at].ends_with([' ', ',', ':']) => {
                rest = behind_quotes(&rest[at..])?;
                continue;
            }
            _ => return None,
        }
        rest = &rest[at + 1..];
        if depth == 0 {
            return Some(rest);
        }
    }
}

/// Whether the rest of a line is empty or a comment.
fn is_comment(rest: &str) -> bool {
    let behind = rest.trim_start_matches(BLANKS);
    behind.is_empty() || behind.len() < rest.len() && behind.starts_with('#')
}

/// A scalar on one line, without its quotes and the comment after it; `None` if only a parser can read it.
fn scalar(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim_matches(BLANKS);
    if text.starts_with(['"', '\'']) {
        let rest = behind_quotes(text)?;
        let inside = &text[1..text.len() - rest.len() - 1];
        return (is_comment(rest) && !inside.contains(['\\', '\''])).then_some(Cow::Borrowed(inside));
    }
    let end = text.match_indices('#').map(|(at, _)| at).find(|at| text[..*at].ends_with(BLANKS) || *at == 0);
    let text = text[..end.unwrap_or(text.len())].trim_end_matches(BLANKS);
    match text {
        // Go reads these as absent.
        "~" | "null" | "Null" | "NULL" => Some(Cow::Borrowed("")),
        _ => (!text.starts_with(['&', '*', '!', '|', '>', '{', '['])).then_some(Cow::Borrowed(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: &str) -> Option<String> {
        heading_from_lines(document).map(|heading| {
            let name = |name: Option<Cow<'_, str>>| name.unwrap_or_default().into_owned();
            format!("{} {}/{}", heading.kind, name(heading.names.namespace), name(heading.names.name))
        })
    }

    #[test]
    fn documents_like_those_of_charts_are_read() {
        let named = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels:\n    name: other\n  name: web\n  namespace: 'db' # c\n";
        for rest in [
            "",
            "data:\n  script: |\n    #!/bin/sh\n    kind: \"B\n  other: >-  # c\n\n      'x\n",
            "spec:\n  args: [\"a: [b\", '{', c]\n  list:\n  - |\n    \"x\n  - - a: 'it''s'\n      b: {c: {d: e}}\n",
            "rules:\n- apiGroups: [\"\"]\n  verbs: ['*']\n- # a: |\n  x: y\n",
            "text: it's \"fine\" [here\nlong: a\n  b 'c\n",
        ] {
            assert_eq!(read(&format!("{named}{rest}")).as_deref(), Some("ConfigMap db/web"), "{rest}");
        }
        assert_eq!(read("kind: A\nmetadata:\n  name: web\n  namespace: ~\n").as_deref(), Some("A /web"));
    }

    #[test]
    fn texts_that_may_continue_at_the_margin_need_a_parser() {
        for line in [
            "a: \"x",
            "a: 'x''",
            "a: {x: y,",
            "a: [x # c",
            "- \"x",
            "- - 'x",
            "\"x",
            "a: &b \"x",
            "a: !!str 'x",
            "? x",
            "a: [\"x\\\"]",
            "a:\u{85}kind: B",
            "a: x\u{2028}kind: B",
            "a: x\rkind: B",
            "\u{feff}a: x",
            "items: []",
            "%YAML 1.1",
            "...",
            "\tx: y",
        ] {
            let document = format!("kind: A\nmetadata:\n  name: web\n{line}\n");
            assert_eq!(read(&document), None, "{line}");
        }
    }
}
