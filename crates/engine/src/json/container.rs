//! Where a JSON object or list ends, found 64 bytes at a time.
//!
//! Byte by byte, most of the time goes into branches that no processor can predict: each string ends somewhere else.
//! Here a block becomes bit masks, one bit per byte. The exclusive or of all bits up to a quote shows which bytes are
//! inside a string. Only a block in which the last bracket may close is searched bit by bit. simdjson finds the
//! structure of a text in the same way.

use wide::u8x16;

const BLOCK: usize = 64;
const LANES: usize = 16;

/// The bit by which `{` differs from `[`, and `}` from `]`.
const CURLY: u8 = b'{' ^ b'[';

/// The length in bytes of the object or list that a text begins with; `None` if its brackets do not match.
#[inline]
pub(super) fn length(text: &[u8]) -> Option<usize> {
    let mut scan = Scan::default();
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    for (block, start) in blocks.iter().zip((0..).step_by(BLOCK)) {
        if let Some(end) = scan.end_in(block) {
            return Some(start + end);
        }
    }
    let mut last = [b' '; BLOCK];
    last.get_mut(..rest.len())?.copy_from_slice(rest);
    scan.end_in(&last).map(|end| text.len() - rest.len() + end)
}

/// The state after the blocks so far.
#[derive(Default)]
struct Scan {
    depth: u32,
    /// All bits are set inside a string.
    in_string: u64,
    /// One if the last byte was a backslash that escapes the next.
    escaping: u64,
}

impl Scan {
    /// Where the first bracket of the text closes in this block, or `None` if it is still open.
    #[inline]
    fn end_in(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let lanes = Lanes::of(block);
        let strings = self.strings(&lanes);
        let [opening, closing] = lanes.brackets().map(|brackets| brackets & !strings);
        if closing == 0 || self.depth > closing.count_ones() {
            self.depth = self.depth + opening.count_ones() - closing.count_ones();
            return None;
        }
        let mut brackets = opening | closing;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            if opening >> at & 1 == 1 {
                self.depth += 1;
            } else {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return usize::try_from(at).ok().map(|at| at + 1);
                }
            }
            brackets &= brackets - 1;
        }
        None
    }

    /// The bytes inside strings, with the quotes that begin them.
    #[inline]
    fn strings(&mut self, lanes: &Lanes) -> u64 {
        let backslashes = lanes.matching(|lane| lane.simd_eq(u8x16::splat(b'\\')));
        let escaped = if backslashes.any() || self.escaping != 0 { self.escaped(backslashes.bits()) } else { 0 };
        let quotes = lanes.matching(|lane| lane.simd_eq(u8x16::splat(b'"'))).bits() & !escaped;
        if quotes == 0 {
            return self.in_string;
        }
        let strings = odd_so_far(quotes) ^ self.in_string;
        self.in_string = if strings >> (BLOCK - 1) == 1 { u64::MAX } else { 0 };
        strings
    }

    /// The bytes after a backslash that is not escaped itself.
    #[inline]
    fn escaped(&mut self, mut backslashes: u64) -> u64 {
        let mut escaped = std::mem::take(&mut self.escaping);
        backslashes &= !escaped;
        while backslashes != 0 {
            let first = backslashes & backslashes.wrapping_neg();
            escaped |= first << 1;
            self.escaping = first >> (BLOCK - 1);
            backslashes &= !(first | first << 1);
        }
        escaped
    }
}

/// A block as vectors.
struct Lanes([u8x16; BLOCK / LANES]);

impl Lanes {
    #[inline]
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut lanes = [u8x16::ZERO; BLOCK / LANES];
        for (lane, bytes) in lanes.iter_mut().zip(block.as_chunks().0) {
            *lane = u8x16::new(*bytes);
        }
        Self(lanes)
    }

    /// A vector of ones for each byte that matches, of zeros for the others.
    #[inline]
    fn matching(&self, matching: impl Fn(u8x16) -> u8x16) -> Self {
        Self(self.0.map(matching))
    }

    /// The opening and the closing brackets.
    #[inline]
    fn brackets(&self) -> [u64; 2] {
        let curly = self.matching(|lane| lane | u8x16::splat(CURLY));
        [b'{', b'}'].map(|byte| curly.matching(|lane| lane.simd_eq(u8x16::splat(byte))).bits())
    }

    #[inline]
    fn any(&self) -> bool {
        let [a, b, c, d] = self.0;
        (a | b | c | d).to_bitmask() != 0
    }

    /// The highest bit of each byte.
    #[inline]
    fn bits(&self) -> u64 {
        let bits = self.0.iter().map(|lane| u64::from(lane.to_bitmask()));
        bits.zip((0..).step_by(LANES)).fold(0, |mask, (bits, shift)| mask | bits << shift)
    }
}

/// For each bit, whether the number of set bits up to and including it is odd.
#[inline]
fn odd_so_far(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::length;

    /// A reference implementation, byte by byte.
    fn slowly(text: &[u8]) -> Option<usize> {
        let (mut depth, mut in_string, mut escaped) = (0_u32, false, false);
        for (at, byte) in text.iter().enumerate() {
            match byte {
                b'"' if !escaped => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
            escaped = *byte == b'\\' && !escaped;
        }
        None
    }

    #[test]
    fn brackets_close_at_any_end_of_a_block() {
        for filling in 0..200 {
            for end in ["}", r#"\"}"}"#, r#"\\"}"#, r#"\\\"}"}"#, r#"]{[","b":[{}]}"#] {
                let text = format!(r#"{{"a":"{}{end}"#, "x".repeat(filling));
                for behind in ["", "}", &" ".repeat(70)] {
                    let followed = format!("{text}{behind}");
                    assert_eq!(length(followed.as_bytes()), slowly(followed.as_bytes()), "{followed}");
                }
            }
        }
        assert_eq!(length(br#"{"a":"}"}]"#), Some(9));
        assert_eq!((length(b"[[]"), length(br#"["]"#), length(b"{")), (None, None, None));
    }

    proptest! {
        #[test]
        fn blocks_and_single_bytes_give_equal_lengths(text in r#"[\[{]([\[\]{}"\\a ]|[a-z]{8}){0,150}"#) {
            prop_assert_eq!(length(text.as_bytes()), slowly(text.as_bytes()));
        }
    }
}
