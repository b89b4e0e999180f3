//! Tags and directives.

use std::borrow::Cow;

use super::Scanner;
use crate::yaml::characters::Malformed;
use crate::yaml::token::{Token, TokenKind};

/// The characters of a tag, apart from letters, digits, `_` and `-`.
const URI: &[u8] = b";/?:@&=+$,.!~*'()[]%";

impl<'t> Scanner<'t> {
    pub(super) fn tag(&mut self) -> Result<Token<'t>, Malformed> {
        let start = self.characters.mark();
        self.characters.cache(2);
        let kind = if self.characters.byte(1) == b'<' {
            self.characters.skip_many(2);
            let suffix = self.tag_uri("")?;
            if self.characters.byte(0) != b'>' {
                return Err(self.malformed());
            }
            self.characters.skip();
            TokenKind::Tag { handle: Cow::Borrowed(""), suffix }
        } else {
            let handle = self.tag_handle(false)?;
            if handle.len() > 1 && handle.ends_with('!') {
                let suffix = self.tag_uri("")?;
                TokenKind::Tag { handle: Cow::Borrowed(handle), suffix }
            } else {
                let suffix = self.tag_uri(handle)?;
                match suffix.is_empty() {
                    true => TokenKind::Tag { handle: Cow::Borrowed(""), suffix: "!".to_owned() },
                    false => TokenKind::Tag { handle: Cow::Borrowed("!"), suffix },
                }
            }
        };
        self.characters.cache(1);
        if !self.characters.is_blank_or_end(0) {
            return Err(self.malformed());
        }
        Ok(Token { kind, start })
    }

    /// `!`, `!name!`, or the start of a tag.
    fn tag_handle(&mut self, is_directive: bool) -> Result<&'t str, Malformed> {
        self.characters.cache(1);
        if self.characters.byte(0) != b'!' {
            return Err(self.malformed());
        }
        let start = self.characters.mark().at;
        self.characters.skip();
        let word = self.word();
        if self.characters.byte(0) == b'!' {
            self.characters.skip();
        } else if is_directive && !word.is_empty() {
            return Err(self.malformed());
        }
        Ok(self.characters.slice(start, self.characters.mark().at))
    }

    /// The rest of a tag after its head, whose `!` does not count.
    fn tag_uri(&mut self, head: &str) -> Result<String, Malformed> {
        let mut uri = head.get(1..).unwrap_or_default().as_bytes().to_vec();
        let mut has_any = !head.is_empty();
        self.characters.cache(1);
        loop {
            match self.characters.byte(0) {
                b'%' => self.escaped_character(&mut uri)?,
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || URI.contains(&byte) => {
                    uri.push(byte);
                    self.characters.skip();
                }
                _ => break,
            }
            has_any = true;
            self.characters.cache(1);
        }
        if !has_any {
            return Err(self.malformed());
        }
        Ok(String::from_utf8_lossy(&uri).into_owned())
    }

    /// `%C3%BC`
    fn escaped_character(&mut self, uri: &mut Vec<u8>) -> Result<(), Malformed> {
        let mut left = None;
        while left != Some(0) {
            self.characters.cache(3);
            let digit = |behind| char::from(self.characters.byte(behind)).to_digit(16);
            let (b'%', Some(high), Some(low)) = (self.characters.byte(0), digit(1), digit(2)) else {
                return Err(self.malformed());
            };
            let octet = u8::try_from(high << 4 | low).unwrap_or_default();
            let width = match octet {
                ..0x80 => Some(1),
                0xC0..0xE0 => Some(2),
                0xE0..0xF0 => Some(3),
                0xF0..0xF8 => Some(4),
                _ => None,
            };
            let before = match left {
                None => width.ok_or_else(|| self.malformed())?,
                Some(_) if octet & 0xC0 != 0x80 => return Err(self.malformed()),
                Some(left) => left,
            };
            left = Some(before - 1);
            uri.push(octet);
            self.characters.skip_many(3);
        }
        Ok(())
    }

    /// A line that begins with `%`.
    pub(super) fn directive(&mut self) -> Result<Token<'t>, Malformed> {
        let start = self.characters.mark();
        self.characters.skip();
        let name = self.word();
        if !self.characters.is_blank_or_end(0) {
            return Err(self.malformed());
        }
        let kind = match name {
            "YAML" => self.version()?,
            "TAG" => self.tag_directive()?,
            _ => return Err(self.malformed()),
        };
        self.end_of_line()?;
        Ok(Token { kind, start })
    }

    fn version(&mut self) -> Result<TokenKind<'t>, Malformed> {
        self.characters.skip_blanks();
        let major = self.version_number()?;
        if self.characters.byte(0) != b'.' {
            return Err(self.malformed());
        }
        self.characters.skip();
        let minor = self.version_number()?;
        Ok(TokenKind::VersionDirective { is_1_1: (major, minor) == (1, 1) })
    }

    fn version_number(&mut self) -> Result<u8, Malformed> {
        let start = self.characters.mark().at;
        self.characters.cache(1);
        while self.characters.byte(0).is_ascii_digit() {
            self.characters.skip();
            self.characters.cache(1);
        }
        let number = self.characters.slice(start, self.characters.mark().at);
        number.parse().ok().filter(|_| number.len() <= 2).ok_or_else(|| self.malformed())
    }

    fn tag_directive(&mut self) -> Result<TokenKind<'t>, Malformed> {
        self.characters.skip_blanks();
        let handle = self.tag_handle(true)?;
        if self.characters.skip_blanks().is_empty() {
            return Err(self.malformed());
        }
        let prefix = self.tag_uri("")?;
        if !self.characters.is_blank_or_end(0) {
            return Err(self.malformed());
        }
        Ok(TokenKind::TagDirective { handle: Cow::Borrowed(handle), prefix })
    }
}
