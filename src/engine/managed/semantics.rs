//! When two values mean the same: charts and the API server spell values differently.

use serde_json::Value;

use crate::engine::json::FieldPath;

/// Objects whose members are quantities, `1000m` or `1`.
const QUANTITY_MAPS: [&str; 9] =
    ["limits", "requests", "capacity", "hard", "max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

/// Fields that are quantities.
const QUANTITIES: [&str; 4] = ["sizeLimit", "divisor", "averageValue", "value"];

/// Whether a live value is the declared one or means the same. Of an object only the declared members count, because
/// the API server adds defaults.
pub(super) fn is_declared(declared: &Value, live: &str, path: &FieldPath) -> bool {
    let mut fields = path.fields().rev();
    let (last, parent) = (fields.next(), fields.next());
    let place = Place { last: last.unwrap_or_default(), parent: parent.unwrap_or_default() };
    serde_json::from_str(live).is_ok_and(|live: Value| is_equivalent(declared, &live, place))
}

/// The names of the field that a value is in, and of the field around that. They tell whether the value is a quantity.
#[derive(Clone, Copy)]
struct Place<'p> {
    last: &'p str,
    parent: &'p str,
}

/// Whether two live values are equal.
pub(super) fn are_equal(old: &str, new: &str) -> bool {
    old == new || serde_json::from_str::<Value>(old).ok() == serde_json::from_str::<Value>(new).ok()
}

/// A text that is the same for two keys of items exactly if they mean the same. A number and its text do.
pub(super) fn identity(key: &Value) -> String {
    match key {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(whole) if !number.is_i64() && !number.is_u64() && whole.fract() == 0.0 => format!("{whole:.0}"),
            _ => number.to_string(),
        },
        // No text of a string begins like this.
        other => format!("\0{other}"),
    }
}

/// Whether the API server omits a declared value because it is empty.
pub(super) fn is_empty(declared: &Value) -> bool {
    match declared {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The value that the API server sets for an omitted member of a list's key.
pub(super) fn default_of(key: &str) -> Option<&'static str> {
    (key == "protocol").then_some("TCP")
}

fn is_equivalent(declared: &Value, live: &Value, place: Place<'_>) -> bool {
    match (declared, live) {
        (Value::Object(declared), Value::Object(live)) => declared.iter().all(|(name, value)| match live.get(name) {
            Some(live) => is_equivalent(value, live, Place { last: name, parent: place.last }),
            None => is_empty(value),
        }),
        (Value::Array(declared), Value::Array(live)) => {
            declared.len() == live.len()
                && declared.iter().zip(live).all(|(value, live)| is_equivalent(value, live, place))
        }
        (declared, live) => {
            declared == live
                || is_same_text(declared, live)
                || (place.is_quantity() && quantity(declared).is_some_and(|value| quantity(live) == Some(value)))
        }
    }
}

/// A number and its text are the same: ports and percentages may be either, and YAML turns some text into numbers.
fn is_same_text(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(number), Value::String(text)) | (Value::String(text), Value::Number(number)) => {
            number.to_string() == *text
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => false,
    }
}

impl Place<'_> {
    fn is_quantity(self) -> bool {
        QUANTITIES.contains(&self.last) || QUANTITY_MAPS.contains(&self.parent)
    }
}

/// A Kubernetes quantity in billionths: a decimal number with a suffix (`n u m k M G T P E`, `Ki` to `Ei`) or an
/// exponent.
fn quantity(value: &Value) -> Option<i128> {
    const SCALE: i128 = 1_000_000_000;
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 {
        return None;
    }
    let negative = whole.starts_with('-');
    let whole = if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()?.abs() };
    let fraction = format!("{fraction:0<9}").parse::<i128>().ok()?;
    let amount = whole.checked_mul(SCALE)?.checked_add(fraction)?;
    let (factor, divisor) = match suffix {
        "" => (1, 1),
        "n" => (1, SCALE),
        "u" => (1, 1_000_000),
        "m" => (1, 1_000),
        "k" => (1_000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        exponent => match exponent.strip_prefix(['e', 'E'])?.parse::<i32>().ok()? {
            power @ 0..=18 => (10_i128.pow(power.unsigned_abs()), 1),
            power @ -9..=-1 => (1, 10_i128.pow(power.unsigned_abs())),
            _ => return None,
        },
    };
    let amount = amount.checked_mul(factor)? / divisor;
    Some(if negative { -amount } else { amount })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn same_at(path: &[&str], declared: &Value, live: &Value) -> bool {
        is_declared(declared, &live.to_string(), &FieldPath::of(path.iter().copied()))
    }

    #[test]
    fn quantities_are_compared_by_amount_in_quantity_fields() {
        let cpu = ["resources", "limits", "cpu"];
        for (declared, live) in [
            (json!("1000m"), json!("1")),
            (json!(1), json!("1")),
            (json!(0.5), json!("500m")),
            (json!("1024Mi"), json!("1Gi")),
            (json!("1e3"), json!("1k")),
            (json!("0.1"), json!("100m")),
            (json!("-1"), json!("-1000m")),
        ] {
            assert!(same_at(&cpu, &declared, &live), "{declared} {live}");
            assert_eq!(quantity(&declared), quantity(&live));
        }
        assert!(!same_at(&cpu, &json!("1"), &json!("1001m")));
        assert!(!same_at(&["metadata", "annotations", "x"], &json!("1000m"), &json!("1")));
        for odd in ["", "m", "1x", "1.2.3", "1.0000000001", "99999999999999999999999999999999999999999", "1e99"] {
            assert_eq!(quantity(&json!(odd)).filter(|_| !odd.is_empty() && odd != "m"), None, "{odd}");
        }
    }

    #[test]
    fn ports_defaults_and_empty_values_are_equivalent() {
        let rules = ["spec", "rules"];
        assert!(same_at(&["spec", "port"], &json!("80"), &json!(80)));
        assert!(same_at(&rules, &json!([{"host": "a"}]), &json!([{"host": "a", "pathType": "Prefix"}])));
        assert!(!same_at(&rules, &json!([{"host": "a"}]), &json!([{"host": "a"}, {"host": "b"}])));
        assert!(same_at(&rules, &json!([{"host": "a", "tls": []}]), &json!([{"host": "a"}])));
        assert!(!same_at(&rules, &json!([{"host": "a", "tls": [1]}]), &json!([{"host": "a"}])));
        assert!(!same_at(&rules, &json!("a"), &json!(["a"])));
    }
}
