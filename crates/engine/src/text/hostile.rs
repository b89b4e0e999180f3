//! Texts for tests, as a hostile client sends them.

use proptest::prelude::*;

/// Texts with control characters, escape sequences of one and of several characters, other directions, and far too long ones.
pub fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z0-9./:-]{1,12}",
        1 => Just("\u{1b}[2J\u{1b}]0;title\u{7}".to_owned()),
        1 => Just("\u{9b}31m\u{202e}\u{2066}\u{200b}\u{feff}".to_owned()),
        1 => Just("a\r\nb\tc\u{0}\u{7f}\u{85}\u{2028}".to_owned()),
        1 => Just("\"\\'<>&`{} ä漢🙂\u{e0041}\u{feff}".to_owned()),
        1 => any::<String>(),
        1 => ("[ -~]", 1..30_000_usize).prop_map(|(letter, times)| letter.repeat(times)),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}
