//! Text that is shown to people: bounded, and without characters that a terminal or a reader would misinterpret.
//!
//! Clients choose the names and values in a review, limited only by the size of the body. A user name can be megabytes
//! long, or contain escape sequences of a terminal, or characters that reverse the rest of a line. Rules compare names
//! unchanged. All text that leaves the process goes through this module: the reply, the log, Events, reports, the
//! command line.
//!
//! Limits are in bytes like those of the Kubernetes API, so that they also bound memory and the length of a line.

pub mod command;
mod look_alike;

use std::borrow::Cow;

pub(crate) use look_alike::look_alike;

/// The longest name that is shown: the API's limit for names of objects. No user name in practice is longer.
pub const MAX_NAME_BYTES: usize = 253;

/// The longest name of a namespace, kind, version or resource that is shown: the API's limit for each of them.
pub(crate) const MAX_LABEL_BYTES: usize = 63;

/// The longest text that is shown in one piece: the message of a refusal, the cell of a table, an attribute of a
/// report.
pub const MAX_MESSAGE_BYTES: usize = 8 * 1024;

/// The mark of a text that was cut.
const ELLIPSIS: char = '…';

/// Whether a text can be shown as it is, on one line.
#[must_use]
pub fn is_printable(text: &str) -> bool {
    is_shown_as_it_is(text, shown_as)
}

/// A text on one line, of at most `max_bytes` bytes. A cut text ends in an ellipsis. The limit bounds the cost for a
/// text of any length, and a text that needs no change is not copied.
#[must_use]
pub fn printable(text: &str, max_bytes: usize) -> Cow<'_, str> {
    shown(text, max_bytes, shown_as)
}

/// The same for a text of several lines.
#[must_use]
pub fn printable_lines(text: &str, max_bytes: usize) -> Cow<'_, str> {
    shown(text, max_bytes, |character| if character == '\n' { '\n' } else { shown_as(character) })
}

/// A name in printable form.
#[must_use]
pub fn printable_name(name: &str) -> String {
    printable(name, MAX_NAME_BYTES).into_owned()
}

/// A text in printable form. A text that needs no change is not copied.
#[must_use]
pub fn into_printable(text: String, max_bytes: usize) -> String {
    let changed = match printable(&text, max_bytes) {
        Cow::Owned(changed) => Some(changed),
        Cow::Borrowed(_) => None,
    };
    changed.unwrap_or(text)
}

/// A text that begins a sentence.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The form of a character on one line: itself, a space for a line break or a tab, otherwise the replacement character.
#[must_use]
pub fn shown_as(character: char) -> char {
    match character {
        '\n' | '\r' | '\t' => ' ',
        // C0 with the escape character, DEL, and C1, which contains escape sequences of one character.
        _ if character.is_control() => char::REPLACEMENT_CHARACTER,
        // Invisible: soft hyphen, Mongolian vowel separator, zero-width characters, the byte order mark.
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{feff}'
        // They change the direction of the text around them (Unicode UAX 9).
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
        // Separators of lines and paragraphs; interlinear annotations; no characters at all, which XML does not allow.
        | '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
        // Tags: an invisible copy of ASCII, and other invisible modifiers.
        | '\u{e0000}'..='\u{e0fff}' => char::REPLACEMENT_CHARACTER,
        plain => plain,
    }
}

fn is_shown_as_it_is(text: &str, shown_as: impl Fn(char) -> char) -> bool {
    // Nearly every text is plain ASCII, which needs no decoding.
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        || text.chars().all(|character| shown_as(character) == character)
}

fn shown(text: &str, max_bytes: usize, shown_as: impl Fn(char) -> char) -> Cow<'_, str> {
    if text.len() <= max_bytes && is_shown_as_it_is(text, &shown_as) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len().min(max_bytes));
    for character in text.chars().map(shown_as) {
        if shown.len() + character.len_utf8() > max_bytes {
            shown.truncate(shown.floor_char_boundary(max_bytes.saturating_sub(ELLIPSIS.len_utf8())));
            if max_bytes >= ELLIPSIS.len_utf8() {
                shown.push(ELLIPSIS);
            }
            break;
        }
        shown.push(character);
    }
    Cow::Owned(shown)
}

#[cfg(any(test, feature = "fixtures"))]
pub mod hostile;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::hostile::hostile;
    use super::*;

    proptest! {
        #[test]
        fn shown_texts_are_bounded_and_printable(text in hostile(), max_bytes in 0..9_000_usize) {
            let shown = printable(&text, max_bytes);
            prop_assert!(shown.len() <= max_bytes && is_printable(&shown), "{shown:?}");
            // A printable text stays as it is.
            prop_assert_eq!(printable(&shown, max_bytes), &*shown);
            let lines = printable_lines(&text, max_bytes);
            prop_assert!(lines.len() <= max_bytes && lines.split('\n').all(is_printable), "{lines:?}");
            prop_assert_eq!(into_printable(text.clone(), max_bytes), &*shown);
            prop_assert_eq!(is_printable(&text) && text.len() <= max_bytes, shown == text);
        }
    }

    #[test]
    fn an_ordinary_name_is_shown_without_a_copy() {
        for name in ["alice", "system:serviceaccount:shop:ci", "Jürgen Müller", "李雷", "values don't \"fit\"", ""]
        {
            assert!(matches!(printable(name, MAX_NAME_BYTES), Cow::Borrowed(shown) if shown == name), "{name}");
        }
        let longest = "x".repeat(MAX_NAME_BYTES);
        assert_eq!(printable_name(&longest), longest);
    }

    #[test]
    fn a_long_text_ends_in_an_ellipsis_between_two_characters() {
        assert_eq!(printable("abcdefgh", 7), "abcd…");
        assert_eq!(printable("ääää", 7), "ää…");
        assert_eq!(printable("abc", 2), "");
        assert_eq!(printable_name(&"x".repeat(7 << 20)), "x".repeat(250) + "…");
        // A replacement is longer than the character that it replaces.
        assert_eq!(printable("\u{1}\u{1}\u{1}\u{1}", 9), "\u{fffd}\u{fffd}…");
    }

    #[test]
    fn shown_texts_cannot_move_the_cursor_or_reverse_text() {
        assert_eq!(printable("a\u{1b}[31mb\nc\u{9b}1md", 99), "a\u{fffd}[31mb c\u{fffd}1md");
        assert_eq!(printable("user\u{202e}gpj.exe\u{200b}", 99), "user\u{fffd}gpj.exe\u{fffd}");
        assert_eq!(printable_lines("a\nb\r\tc\u{85}", 99), "a\nb  c\u{fffd}");
        assert!(!is_printable("a\nb") && !is_printable("\u{2069}") && is_printable("a b…"));
    }
}
