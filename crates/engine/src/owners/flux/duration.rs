//! Durations as Go writes them: `1h30m`, `90s`, `1.5h`, `300ms`.

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer};

/// The units. `ms` comes before `m`, which is its prefix.
const DURATION_UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
];

/// Parses a duration of 0 or more; `None` for text that Go cannot parse, and for durations over 290 years, Go's limit.
pub(super) fn parse(text: &str) -> Option<SignedDuration> {
    if text == "0" {
        return Some(SignedDuration::ZERO);
    }
    let (mut rest, mut nanoseconds) = (text, 0_i128);
    if text.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (integer, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if integer.is_empty() && fraction.is_empty() {
            return None;
        }
        let (unit, after) = DURATION_UNITS.iter().find_map(|(name, unit)| Some((unit, after.strip_prefix(name)?)))?;
        nanoseconds = nanoseconds.checked_add(count(integer)?.checked_mul(*unit)?)?;
        // Fractions of a nanosecond are ignored.
        let fraction = &fraction[..fraction.len().min(15)];
        let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
        nanoseconds = nanoseconds.checked_add(count(fraction)?.checked_mul(*unit)? / scale)?;
        rest = after;
    }
    i64::try_from(nanoseconds).ok().map(SignedDuration::from_nanos)
}

/// Deserializes a duration; `None` if it is absent or invalid.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SignedDuration>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(|text| parse(&text)))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn count(digits: &str) -> Option<i128> {
    if digits.is_empty() { Some(0) } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_parsed_as_in_go() {
        for (text, milliseconds) in [
            ("0", 0),
            ("0s", 0),
            ("90s", 90_000),
            ("300ms", 300),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            (".5s", 500),
            ("1.s", 1_000),
            ("1h0m0.25s", 3_600_250),
            ("1000000ns", 1),
            ("2000µs", 2),
            ("0.333333333333333333333333h", 1_199_999),
        ] {
            assert_eq!(parse(text).map(|duration| duration.as_millis()), Some(milliseconds), "{text}");
        }
        for text in ["", "5", "m", "5 m", "5m ", "-5m", "1.2.3s", ".s", "1d", "5M", "99999999999h"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in ".*", number in any::<u64>(), unit in "ns|us|ms|s|m|h") {
            parse(&text);
            parse(&format!("{number}.{number}{unit}"));
        }
    }
}
