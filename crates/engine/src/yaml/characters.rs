//! The characters of a document, in the way of go-yaml's reader.

use memchr::memmem;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// The number of bytes that go-yaml reads at a time.
const CHUNK_BYTES: usize = 512;

/// A position in a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// In bytes.
    pub(super) at: usize,
    /// In characters.
    pub(super) index: usize,
    /// From 0.
    pub(super) line: usize,
    /// In characters, from 0.
    pub(super) column: usize,
}

/// Why a text is not a YAML document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed {
    /// From 1.
    line: usize,
    /// In characters, from 1.
    column: usize,
}

impl Malformed {
    pub(super) fn at(mark: Mark) -> Self {
        Self { line: mark.line + 1, column: mark.column + 1 }
    }
}

/// The position, without the text there.
impl From<Malformed> for String {
    fn from(Malformed { line, column }: Malformed) -> Self {
        format!("line {line}, column {column} of a document")
    }
}

/// The characters that are not read yet.
///
/// go-yaml takes a byte order mark at the *start* of its buffer for one at the start of the line, wherever the buffer
/// is in the text, and drops a character. So for texts with such a mark, this type tracks the start of the buffer.
pub(super) struct Characters<'t> {
    text: &'t str,
    mark: Mark,
    /// `None` for a text without a byte order mark.
    buffer: Option<Buffer>,
}

struct Buffer {
    /// In bytes.
    start: usize,
    /// The end, in bytes.
    end: usize,
    /// How far go-yaml has read the text, in bytes.
    read: usize,
    /// The characters between the mark and the end.
    unread: usize,
}

impl<'t> Characters<'t> {
    /// # Errors
    /// The text has a character that YAML does not allow. go-yaml finds it only when it reads that far.
    pub(super) fn of(text: &'t str) -> Result<Self, Malformed> {
        if let Some((before, _)) =
            text.find(|character| !is_allowed(character)).and_then(|at| text.split_at_checked(at))
        {
            let line = before.bytes().filter(|byte| *byte == b'\n').count();
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
            return Err(Malformed { line: line + 1, column: column + 1 });
        }
        let begin = if text.as_bytes().starts_with(BOM) { BOM.len() } else { 0 };
        let has_marks = memmem::find(&text.as_bytes()[begin..], BOM).is_some();
        let buffer = Buffer { start: begin, end: begin, read: CHUNK_BYTES.min(text.len()), unread: 0 };
        Ok(Self { text, mark: Mark { at: begin, ..Mark::default() }, buffer: has_marks.then_some(buffer) })
    }

    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    pub(super) fn column(&self) -> usize {
        self.mark.column
    }

    /// The text between two positions.
    pub(super) fn slice(&self, from: usize, to: usize) -> &'t str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// The byte at a distance from the mark; 0 after the end.
    #[inline]
    pub(super) fn byte(&self, behind: usize) -> u8 {
        self.text.as_bytes().get(self.mark.at + behind).copied().unwrap_or_default()
    }

    /// Fills go-yaml's buffer with at least this number of characters.
    #[inline]
    pub(super) fn cache(&mut self, characters: usize) {
        if let Some(buffer) = &mut self.buffer
            && buffer.unread < characters
        {
            buffer.fill(self.text, self.mark.at, characters);
        }
    }

    /// Whether go-yaml takes this position for a line with a byte order mark.
    pub(super) fn is_at_bom(&self) -> bool {
        self.mark.column == 0
            && self.buffer.as_ref().is_some_and(|buffer| self.text.as_bytes()[buffer.start..].starts_with(BOM))
    }

    #[inline]
    pub(super) fn is_end(&self) -> bool {
        self.mark.at >= self.text.len()
    }

    #[inline]
    pub(super) fn is_blank(&self, behind: usize) -> bool {
        matches!(self.byte(behind), b' ' | b'\t')
    }

    #[inline]
    pub(super) fn is_break(&self, behind: usize) -> bool {
        match self.byte(behind) {
            b'\r' | b'\n' => true,
            0xC2 => self.byte(behind + 1) == 0x85,
            0xE2 => self.byte(behind + 1) == 0x80 && matches!(self.byte(behind + 2), 0xA8 | 0xA9),
            _ => false,
        }
    }

    #[inline]
    pub(super) fn is_break_or_end(&self, behind: usize) -> bool {
        self.is_break(behind) || self.byte(behind) == 0
    }

    #[inline]
    pub(super) fn is_blank_or_end(&self, behind: usize) -> bool {
        self.is_blank(behind) || self.is_break_or_end(behind)
    }

    /// Whether `---` or `...` is here, at the start of a line.
    pub(super) fn is_document_indicator(&self) -> bool {
        let is_three = |byte: u8| (0..3).all(|behind| self.byte(behind) == byte);
        self.mark.column == 0 && (is_three(b'-') || is_three(b'.')) && self.is_blank_or_end(3)
    }

    /// Skips a character.
    #[inline]
    pub(super) fn skip(&mut self) {
        self.mark.at += match self.byte(0) {
            ..0x80 => 1,
            0x80..0xE0 => 2,
            0xE0..0xF0 => 3,
            _ => 4,
        };
        self.mark.index += 1;
        self.mark.column += 1;
        self.consume(1);
    }

    #[inline]
    pub(super) fn skip_many(&mut self, characters: usize) {
        (0..characters).for_each(|_| self.skip());
    }

    /// Skips the blanks, and returns their text.
    pub(super) fn skip_blanks(&mut self) -> &'t str {
        let start = self.mark.at;
        self.cache(1);
        while self.is_blank(0) {
            self.skip();
            self.cache(1);
        }
        self.slice(start, self.mark.at)
    }

    /// Skips a comment, if there is one, to the end of its line.
    pub(super) fn skip_comment(&mut self) {
        if self.byte(0) == b'#' {
            while !self.is_break_or_end(0) {
                self.skip();
                self.cache(1);
            }
        }
    }

    /// Skips a line break, if there is one, and returns the text that it stands for.
    pub(super) fn skip_break(&mut self) -> &'t str {
        let start = self.mark.at;
        let (bytes, characters, counts_as) = match self.byte(0) {
            b'\r' if self.byte(1) == b'\n' => (2, 2, "\n"),
            b'\r' | b'\n' => (1, 1, "\n"),
            0xC2 if self.is_break(0) => (2, 1, "\n"),
            0xE2 if self.is_break(0) => (3, 1, self.slice(start, start + 3)),
            _ => return "",
        };
        let Mark { at, index, line, .. } = self.mark;
        self.mark = Mark { at: at + bytes, index: index + characters, line: line + 1, column: 0 };
        self.consume(characters);
        counts_as
    }

    fn consume(&mut self, characters: usize) {
        if let Some(buffer) = &mut self.buffer {
            buffer.unread = buffer.unread.saturating_sub(characters);
        }
    }
}

fn is_allowed(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

impl Buffer {
    /// Moves the buffer to the mark, and reads until the buffer has this number of characters.
    fn fill(&mut self, text: &str, mark: usize, characters: usize) {
        self.start = mark.min(text.len());
        while self.unread < characters {
            if self.end == text.len() {
                // The end counts as a character.
                self.unread += 1;
                return;
            }
            // The bytes of an incomplete character are read again, with the next ones.
            let until = (self.end..=self.read).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(self.end);
            self.unread += text.get(self.end..until).unwrap_or_default().chars().count();
            if until == self.end {
                self.read = (self.end + CHUNK_BYTES).min(text.len());
            }
            self.end = until;
        }
    }
}
