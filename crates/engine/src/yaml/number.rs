//! Numbers as Go parses them: `strconv.ParseInt` with base 0, `ParseUint` and `ParseFloat`.

use super::scalar::Resolved;

/// The number in a text without quotes; `None` for other texts.
pub(super) fn parse(text: &str) -> Option<Resolved<'static>> {
    match text.as_bytes().first()? {
        b'.' => float(text),
        b'+' | b'-' | b'0'..=b'9' => {
            let plain = text.replace('_', "");
            integer(&plain).or_else(|| float(&plain)).or_else(|| binary(&plain))
        }
        _ => None,
    }
}

fn integer(plain: &str) -> Option<Resolved<'static>> {
    let (is_negative, digits) = match plain.as_bytes().first()? {
        b'-' => (true, &plain[1..]),
        b'+' => (false, &plain[1..]),
        _ => (false, plain),
    };
    let prefix = digits.get(..2).unwrap_or_default().to_ascii_lowercase();
    let (radix, digits) = match prefix.as_str() {
        "0x" => (16, &digits[2..]),
        "0o" => (8, &digits[2..]),
        "0b" => (2, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    let has_sign = plain.starts_with(['+', '-']);
    signed(is_negative, digits, radix).or_else(|| unsigned(digits, radix).filter(|_| !has_sign))
}

/// `0b-101` is a number too: go-yaml parses the digits after the prefix once more, with their sign.
fn binary(plain: &str) -> Option<Resolved<'static>> {
    let digits = plain.strip_prefix("0b")?;
    match digits.as_bytes().first()? {
        b'-' => signed(true, &digits[1..], 2),
        b'+' => signed(false, &digits[1..], 2),
        _ => None,
    }
}

fn signed(is_negative: bool, digits: &str, radix: u32) -> Option<Resolved<'static>> {
    let magnitude = magnitude(digits, radix)?;
    let value = if is_negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() };
    value.map(Resolved::Int)
}

fn unsigned(digits: &str, radix: u32) -> Option<Resolved<'static>> {
    magnitude(digits, radix).map(Resolved::Uint)
}

fn magnitude(digits: &str, radix: u32) -> Option<u64> {
    // Rust would accept a sign.
    let is_number = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u64::from_str_radix(digits, radix).ok().filter(|_| is_number)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, unless it is infinite.
fn float(plain: &str) -> Option<Resolved<'static>> {
    let (mantissa, exponent) = match plain.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (plain, None),
    };
    let mantissa = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let is_mantissa = match mantissa.split_once('.') {
        None => is_digits(mantissa),
        Some(("", fraction)) => is_digits(fraction),
        Some((integer, fraction)) => is_digits(integer) && (fraction.is_empty() || is_digits(fraction)),
    };
    let is_exponent = exponent.is_none_or(|exponent| is_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    let value: f64 = plain.parse().ok().filter(|_| is_mantissa && is_exponent)?;
    value.is_finite().then_some(Resolved::Float(value))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number as the key of a member: Go's format `g`, as short as a number of 32 bits allows.
pub(super) fn float_key(value: f64) -> String {
    let value = value as f32;
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    match (-4..6).contains(&exponent) {
        true => format!("{value}"),
        false => format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs()),
    }
}
