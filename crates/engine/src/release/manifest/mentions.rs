//! Whether a YAML document may name an object, by its text alone.

/// Whether a document may contain the names that a search finds in plain text. A backslash may stand for any letter,
/// and so may a tag: after `!!binary`, a name is in base64.
pub(super) fn may_mention(document: &str, is_found: impl Fn(&[u8]) -> bool) -> bool {
    let text = document.as_bytes();
    is_found(text) || text.contains(&b'\\') || has_tag(text)
}

fn has_tag(text: &[u8]) -> bool {
    memchr::memchr_iter(b'!', text).any(|at| is_tag(text, at))
}

/// Whether the exclamation mark at a position begins a tag.
fn is_tag(text: &[u8], at: usize) -> bool {
    let begins =
        at == 0 || text[at - 1].is_ascii_whitespace() || b"[{,".contains(&text[at - 1]) || text[at - 1] >= 0x80;
    begins && text.get(at + 1).is_some_and(|next| next.is_ascii_alphanumeric() || b"!<%".contains(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_at_the_start_of_a_word() {
        for (document, has) in [
            ("name: !!binary d2Vi", true),
            ("!<tag:yaml.org,2002:binary> d2Vi", true),
            ("[a,!b!c d2Vi]", true),
            ("x:\u{85}!!binary d2Vi", true),
            ("text: Hello! You!", false),
            ("script: |\n  #!/bin/sh\n  if [ ! -f x ]; then [ a != b ]; fi", false),
        ] {
            assert_eq!(has_tag(document.as_bytes()), has, "{document}");
        }
    }
}
