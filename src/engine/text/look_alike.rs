//! Letters that look like others, and characters that nobody sees: why a name that reads right is a different one.

use unicode_security::GeneralSecurityProfile;
use unicode_security::confusable_detection::skeleton;
use unicode_security::general_security_profile::IdentifierType;

use super::shown_as;

/// The longest text that is searched, in bytes: names are shorter.
const MAX_SEARCHED_BYTES: usize = 300;

/// What a reader takes a character for.
#[derive(Debug, PartialEq, Eq)]
enum Seems {
    /// Nothing at all.
    Invisible,
    /// This character.
    Ascii(char),
}

/// What a text has that looks like something else, as a clause that follows its name: ``has the letter U+0430 CYRILLIC SMALL
/// LETTER A, which looks like `a` ``. `None` for a text that is as it looks: a name in one other alphabet is.
#[must_use]
pub(crate) fn look_alike(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let text = &text[..text.floor_char_boundary(MAX_SEARCHED_BYTES)];
    let mut words = text.split_inclusive(|character: char| !character.is_alphanumeric());
    words.find_map(|word| {
        let (character, seems) = first_in(word)?;
        let letter = if character.is_alphabetic() { "letter" } else { "character" };
        let name = unicode_names2::name(character).map(|name| format!(" {name}")).unwrap_or_default();
        let seems = match seems {
            Seems::Invisible => "which is invisible".to_owned(),
            Seems::Ascii(' ') => "which looks like a space".to_owned(),
            Seems::Ascii(other) => format!("which looks like `{other}`"),
        };
        Some(format!("has the {letter} U+{:04X}{name}, {seems}", u32::from(character)))
    })
}

/// The first character of a word that is not what it seems. The letters of another alphabet are what they seem, unless they stand
/// among those of ours, or all of them look like ours.
fn first_in(word: &str) -> Option<(char, Seems)> {
    let ours = |character: char| character.is_ascii_alphanumeric();
    let foreign_letters = || word.chars().filter(|character| character.is_alphabetic() && !character.is_ascii());
    let is_disguised = word.chars().any(ours) || foreign_letters().all(|letter| seems(letter).is_some());
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
            ("mаnual-edit", "has the letter U+0430 CYRILLIC SMALL LETTER A, which looks like `a`"),
            ("system:serviceaccount:ops:dеployer", "U+0435 CYRILLIC SMALL LETTER IE, which looks like `e`"),
            // Every letter looks like one of ours.
            ("осо", "U+043E CYRILLIC SMALL LETTER O, which looks like `o`"),
            ("shop\u{200b}", "has the character U+200B ZERO WIDTH SPACE, which is invisible"),
            ("\u{feff}shop", "U+FEFF ZERO WIDTH NO-BREAK SPACE, which is invisible"),
            ("shop\u{ad}web", "U+00AD SOFT HYPHEN, which is invisible"),
            ("mode:\u{a0}warn", "has the character U+00A0 NO-BREAK SPACE, which looks like a space"),
            ("shop\u{2010}web", "U+2010 HYPHEN, which looks like `-`"),
            ("ѕhоp", "U+0455 CYRILLIC SMALL LETTER DZE, which looks like `s`"),
            ("nam\u{3b1}", "U+03B1 GREEK SMALL LETTER ALPHA, which looks like `a`"),
        ] {
            let found = look_alike(text).unwrap();
            assert!(found.contains(wanted), "{text}: {found}");
        }
    }

    #[test]
    fn names_of_other_languages_are_what_they_seem() {
        for text in
            ["manual-edit", "", "иван", "oidc:иван.петров", "jürgen", "josé", "山田", "أحمد", "Łukasz", "naïve@b.de"]
        {
            assert_eq!(look_alike(text), None, "{text}");
        }
        assert_eq!(look_alike(&format!("{}а", "x".repeat(400))), None);
    }
}
