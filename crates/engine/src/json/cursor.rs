//! A position in a JSON text that is known to be well-formed, like the objects of a parsed review.
//!
//! A cursor only finds where values end, which is enough to compare two texts. In malformed text it returns `None` and
//! never panics.

use std::borrow::Cow;
use std::slice::Iter;

use memchr::memchr2;

use super::container;

/// Most strings of an object are shorter. For them, a search byte by byte is faster than the start of a search by
/// vectors.
const SHORT_STRING_BYTES: usize = 32;

/// A member of an object: its name, and the text of its value.
pub(crate) type Member<'a> = (Cow<'a, str>, &'a str);

/// A position in a JSON text.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte that is not white space.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Skips a byte that must come next.
    #[inline]
    pub(crate) fn expect_byte(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// The name of the next member as written, with its quotes; `Some(None)` after the last member.
    #[inline]
    pub(crate) fn next_name(&mut self) -> Option<Option<&'a str>> {
        if !self.has_next(b'}')? {
            return Some(None);
        }
        let name = self.string()?;
        self.expect_byte(b':')?;
        Some(Some(name))
    }

    /// The next member; `Some(None)` after the last one.
    #[inline]
    pub(crate) fn next_member(&mut self) -> Option<Option<Member<'a>>> {
        Some(match self.next_name()? {
            Some(name) => Some((unquoted(name)?, self.skip_value()?)),
            None => None,
        })
    }

    /// Whether the container that `end` closes has another item or member.
    #[inline]
    pub(crate) fn has_next(&mut self, end: u8) -> Option<bool> {
        let mut byte = self.peek()?;
        if byte == b',' {
            self.at += 1;
            byte = self.peek()?;
        }
        if byte == end {
            self.at += 1;
        }
        Some(byte != end)
    }

    /// Skips an item whose start was found. Returns whether the list has another item.
    #[inline]
    pub(crate) fn skip_item(&mut self) -> Option<bool> {
        self.skip_value()?;
        self.has_next(b']')
    }

    /// The position in bytes from the start of the text.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    #[inline]
    pub(crate) fn remaining(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The text between an earlier position and this one.
    #[inline]
    pub(crate) fn text_since(&self, start: usize) -> Option<&'a str> {
        self.text.get(start..self.at)
    }

    /// Skips `length` bytes and returns them.
    #[inline]
    pub(crate) fn advance(&mut self, length: usize) -> Option<&'a str> {
        let taken = self.text.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    /// Skips a value if it ends before `end`. Otherwise the cursor does not move.
    #[inline]
    pub(crate) fn skip_value_before(&mut self, end: usize) -> bool {
        let Some(text) = self.text.get(..end) else {
            return false;
        };
        let mut within = Cursor { text, at: self.at };
        // A number may continue after `end`.
        let ends = within.skip_value().is_some() && within.at < end;
        if ends {
            self.at = within.at;
        }
        ends
    }

    /// Skips a value and returns its text.
    #[inline]
    pub(crate) fn skip_value(&mut self) -> Option<&'a str> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => self.container(),
            _ => {
                let rest = self.text.get(self.at..)?;
                let length = rest
                    .as_bytes()
                    .iter()
                    .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
                    .unwrap_or(rest.len());
                // Otherwise a loop would skip a missing value forever.
                self.advance(length).filter(|scalar| !scalar.is_empty())
            }
        }
    }

    #[inline]
    fn string(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes().get(self.at..)?;
        let mut rest = bytes.iter();
        rest.next()?;
        skip_string(&mut rest)?;
        self.advance(bytes.len() - rest.len())
    }

    #[inline]
    fn container(&mut self) -> Option<&'a str> {
        self.advance(container::length(self.text.as_bytes().get(self.at..)?)?)
    }
}

/// The length in bytes of the common prefix of two texts, cut to a character boundary.
#[inline]
pub(crate) fn common_prefix(one: &str, other: &str) -> usize {
    const AT_ONCE: usize = 64;
    let (a, b) = (one.as_bytes(), other.as_bytes());
    let chunks = a.chunks_exact(AT_ONCE).zip(b.chunks_exact(AT_ONCE)).take_while(|(a, b)| a == b).count();
    let start = chunks * AT_ONCE;
    let rest = a[start..].iter().zip(&b[start..]).take_while(|(a, b)| a == b).count();
    let mut length = start + rest;
    while !one.is_char_boundary(length) {
        length -= 1;
    }
    length
}

/// Skips the rest of a string, after its first quote.
#[inline]
fn skip_string(rest: &mut Iter<'_, u8>) -> Option<()> {
    let mut singly = SHORT_STRING_BYTES;
    loop {
        match rest.next()? {
            b'"' => return Some(()),
            b'\\' => _ = rest.next()?,
            _ => singly -= 1,
        }
        if singly == 0 {
            let text = rest.as_slice();
            *rest = text.get(memchr2(b'"', b'\\', text)?..)?.iter();
            singly = SHORT_STRING_BYTES;
        }
    }
}

/// A name without its quotes, borrowed if it contains no escapes.
pub(crate) fn unquoted(name: &str) -> Option<Cow<'_, str>> {
    if name.contains('\\') {
        return serde_json::from_str::<String>(name).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(name.strip_prefix('"')?.strip_suffix('"')?))
}

/// The members of an object, in document order; `None` for any other value.
pub(crate) fn members(text: &str) -> Option<Vec<Member<'_>>> {
    let mut cursor = Cursor::new(text);
    cursor.expect_byte(b'{')?;
    remaining_members(&mut cursor, Vec::new())
}

/// Appends the members that the cursor has not passed yet.
pub(crate) fn remaining_members<'a>(cursor: &mut Cursor<'a>, mut members: Vec<Member<'a>>) -> Option<Vec<Member<'a>>> {
    while let Some(member) = cursor.next_member()? {
        members.push(member);
    }
    Some(members)
}

/// The items of a list; `None` for any other value.
pub(crate) fn items(text: &str) -> Option<Vec<&str>> {
    let mut cursor = Cursor::new(text);
    cursor.expect_byte(b'[')?;
    let mut items = Vec::new();
    while cursor.has_next(b']')? {
        items.push(cursor.skip_value()?);
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_items_with_any_content_are_found() {
        let text = r#" { "a" : "x\"}\\" , "b\n":[1, {"c":"]"}],"d":{} ,"e":-1.5e3}"#;
        let found = members(text).unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| (name.as_ref(), *value)).collect();
        assert_eq!(found, [("a", r#""x\"}\\""#), ("b\n", r#"[1, {"c":"]"}]"#), ("d", "{}"), ("e", "-1.5e3")]);
        assert_eq!(items(found[1].1).unwrap(), ["1", r#"{"c":"]"}"#]);
        assert_eq!(items("[]").unwrap(), [""; 0]);
        assert_eq!((members("[]"), items("{}")), (None, None));
    }

    #[test]
    fn a_missing_value_ends_the_text() {
        for odd in ["[}", "[}]", "[1,}]", "[:", r#"{"a":}"#, r#"{"a":]}"#, r#"{"a":,"b":1}"#] {
            assert_eq!((items(odd), members(odd)), (None, None), "{odd}");
        }
        assert_eq!((Cursor::new("}").skip_value(), Cursor::new("").skip_value()), (None, None));
    }

    #[test]
    fn truncated_text_returns_none() {
        let text = r#"{"a":"x\"","b":[1,{"c":"é"}],"d":true}"#;
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert_eq!(members(&text[..end]), None, "{end}");
        }
        for odd in ["{\"a\\", "[\"\\", "{]", "{}}", "[", "\"", ",", "{,}", "[,", "{\"a\"}", "{\"a\":}"] {
            let _whatever = (members(odd), items(odd), Cursor::new(odd).skip_value());
        }
    }
}
