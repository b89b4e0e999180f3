//! Letters that look like others, and invisible characters: the reasons why a name that looks right is another one.

use unicode_script::{Script, UnicodeScript};
use unicode_security::GeneralSecurityProfile;
use unicode_security::confusable_detection::skeleton;
use unicode_security::general_security_profile::IdentifierType;

use super::shown_as;

/// The longest text that is searched, in bytes: names are shorter.
const MAX_SEARCHED_BYTES: usize = 300;

/// The character that a reader sees.
#[derive(Debug, PartialEq, Eq)]
enum Seems {
    /// No character.
    Invisible,
    /// This character.
    Ascii(char),
}

/// The part of a text that looks like something else, as a clause after its name: ``has the Cyrillic letter U+0430,
/// which looks like `a` ``. `None` for a text without such a part. A name in one other alphabet has none.
#[must_use]
pub(crate) fn look_alike(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let text = &text[..text.floor_char_boundary(MAX_SEARCHED_BYTES)];
    let mut words = text.split_inclusive(|character: char| !character.is_alphanumeric());
    words.find_map(|word| {
        let (character, seems) = first_in(word)?;
        let kind = match character.script() {
            _ if !character.is_alphabetic() => "character".to_owned(),
            // Letters of mathematics, for example.
            Script::Common | Script::Inherited | Script::Unknown => "letter".to_owned(),
            script => format!("{} letter", script.full_name().replace('_', " ")),
        };
        let seems = match seems {
            Seems::Invisible => "which is invisible".to_owned(),
            Seems::Ascii(' ') => "which looks like a space".to_owned(),
            Seems::Ascii(other) => format!("which looks like `{other}`"),
        };
        Some(format!("has the {kind} U+{:04X}, {seems}", u32::from(character)))
    })
}

/// The first misleading character of a word. Letters of another alphabet mislead only among ASCII characters, or if all
/// of them look like ASCII letters.
fn first_in(word: &str) -> Option<(char, Seems)> {
    let has_ascii = word.chars().any(|character| character.is_ascii_alphanumeric());
    let mut foreign_letters = word.chars().filter(|character| character.is_alphabetic() && !character.is_ascii());
    let is_disguised = has_ascii || foreign_letters.all(|letter| seems(letter).is_some());
    word.chars().find_map(|character| {
        let seems = seems(character)?;
        (is_disguised || !character.is_alphabetic()).then_some((character, seems))
    })
}

fn seems(character: char) -> Option<Seems> {
    if character.is_ascii() {
        return None;
    }
    if character.is_whitespace() && shown_as(character) == character {
        return Some(Seems::Ascii(' '));
    }
    if shown_as(character) != character || character.identifier_type() == Some(IdentifierType::Default_Ignorable) {
        return Some(Seems::Invisible);
    }
    let mut buffer = [0; 4];
    let mut skeleton = skeleton(character.encode_utf8(&mut buffer));
    match (skeleton.next(), skeleton.next()) {
        (Some(ascii), None) if ascii.is_ascii_graphic() => Some(Seems::Ascii(ascii)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_are_named() {
        for (text, wanted) in [
            ("mаnual-edit", "has the Cyrillic letter U+0430, which looks like `a`"),
            ("system:serviceaccount:ops:dеployer", "Cyrillic letter U+0435, which looks like `e`"),
            // Every letter looks like an ASCII letter.
            ("осо", "Cyrillic letter U+043E, which looks like `o`"),
            ("shop\u{200b}", "has the character U+200B, which is invisible"),
            ("\u{feff}shop", "U+FEFF, which is invisible"),
            ("shop\u{ad}web", "U+00AD, which is invisible"),
            ("mode:\u{a0}warn", "has the character U+00A0, which looks like a space"),
            ("shop\u{2010}web", "U+2010, which looks like `-`"),
            ("ѕhоp", "Cyrillic letter U+0455, which looks like `s`"),
            ("mode\u{1d5ae}", "has the letter U+1D5AE, which looks like `O`"),
            ("nam\u{3b1}", "Greek letter U+03B1, which looks like `a`"),
        ] {
            let found = look_alike(text).unwrap();
            assert!(found.contains(wanted), "{text}: {found}");
        }
    }

    #[test]
    fn names_of_other_languages_are_no_look_alikes() {
        for text in
            ["manual-edit", "", "иван", "oidc:иван.петров", "jürgen", "josé", "山田", "أحمد", "Łukasz", "naïve@b.de"]
        {
            assert_eq!(look_alike(text), None, "{text}");
        }
        assert_eq!(look_alike(&format!("{}а", "x".repeat(400))), None);
    }
}
