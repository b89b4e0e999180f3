//! Whether two values mean the same: charts and the API server spell values differently.

use serde_json::Value;

use super::schema::Place;
use crate::json::FieldPath;

/// Whether a write sets a declared value: the new value is the declared one or means the same.
///
/// The API server adds defaults. So an undeclared member counts only if the write adds or changes it in an object that
/// matched the declaration before. Otherwise a default cannot be distinguished from an addition.
pub(super) fn is_declared(declared: &Value, old: Option<&str>, new: &str, place: Place<'_>) -> bool {
    let (old, new) = (old.and_then(parsed), parsed(new));
    let sides = compare(declared, old.as_ref(), new.as_ref(), place);
    sides.new_is_declared && !sides.adds
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// The result of comparing a declared value with the old and the new one.
#[derive(Clone, Copy)]
struct Sides {
    old_is_declared: bool,
    new_is_declared: bool,
    /// Whether an undeclared member is new or has changed.
    adds: bool,
}

impl Sides {
    fn and(self, other: Self) -> Self {
        Self {
            old_is_declared: self.old_is_declared && other.old_is_declared,
            new_is_declared: self.new_is_declared && other.new_is_declared,
            adds: self.adds || other.adds,
        }
    }
}

fn compare(declared: &Value, old: Option<&Value>, new: Option<&Value>, place: Place<'_>) -> Sides {
    match (declared, new) {
        (Value::Object(declared), Some(Value::Object(new))) => {
            let old = old.and_then(Value::as_object);
            let old_member = |name: &str| old.and_then(|old| old.get(name));
            // The API server omits an empty map, and adds no defaults to it.
            let old_is_declared = old.is_some() || declared.is_empty();
            let start = Sides { old_is_declared, new_is_declared: true, adds: false };
            let members =
                declared.iter().map(|(name, value)| compare(value, old_member(name), new.get(name), place.field(name)));
            let sides = members.fold(start, Sides::and);
            let mut undeclared = new.iter().filter(|(name, _)| !declared.contains_key(*name));
            let adds = sides.old_is_declared && undeclared.any(|(name, value)| old_member(name) != Some(value));
            Sides { adds: sides.adds || adds, ..sides }
        }
        (Value::Array(declared), Some(Value::Array(new))) => {
            let old = old.and_then(Value::as_array);
            let start = Sides {
                old_is_declared: old.map_or(declared.is_empty(), |old| old.len() == declared.len()),
                new_is_declared: new.len() == declared.len(),
                adds: false,
            };
            let items = declared.iter().enumerate();
            let items = items.map(|(at, value)| compare(value, old.and_then(|old| old.get(at)), new.get(at), place));
            items.fold(start, Sides::and)
        }
        (declared, _) => Sides {
            old_is_declared: old.map_or(is_zero(declared), |old| is_same_scalar(declared, old, place)),
            new_is_declared: match new {
                Some(new) => is_same_scalar(declared, new, place),
                None => !is_removal(declared, old),
            },
            adds: false,
        },
    }
}

/// Whether a write removes a declared value that is now absent.
pub(super) fn is_removed(declared: &Value, old: Option<&str>) -> bool {
    is_removal(declared, old.and_then(parsed).as_ref())
}

/// The API server omits values like `""` and `0` from most fields. The absence of such a value is a removal only if the
/// API server kept one before.
fn is_removal(declared: &Value, old: Option<&Value>) -> bool {
    !declared.is_null() && (!is_zero(declared) || old.is_some_and(is_zero))
}

/// Whether two live values are equal.
pub(super) fn are_equal(old: &str, new: &str) -> bool {
    old == new || parsed(old) == parsed(new)
}

/// A text that is equal for two keys of items exactly if the keys mean the same. A number and its text mean the same.
pub(super) fn identity(key: &Value) -> String {
    match key {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_i64() && !number.is_u64() && float.fract() == 0.0 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        // No string starts like this.
        other => format!("\0{other}"),
    }
}

/// Whether the API server may omit a value.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// The value that the API server sets for an omitted member of a list's key.
pub(super) fn default_of(key: &str) -> Option<&'static str> {
    (key == "protocol").then_some("TCP")
}

/// The values that the API server sets in atomic maps, by the names of the members (`pkg/apis/core/v1/defaults.go` of
/// Kubernetes).
const DEFAULTS: [(&str, &str); 16] = [
    ("apiVersion", r#""v1""#),
    ("defaultMode", "420"),
    ("divisor", r#""0""#),
    ("expirationSeconds", "3600"),
    ("type", r#""""#),
    ("iscsiInterface", r#""default""#),
    ("cachingMode", r#""ReadWrite""#),
    ("kind", r#""Shared""#),
    ("fsType", r#""ext4""#),
    ("fsType", r#""xfs""#),
    ("readOnly", "false"),
    ("pool", r#""rbd""#),
    ("user", r#""admin""#),
    ("keyring", r#""/etc/ceph/keyring""#),
    ("storageMode", r#""ThinProvisioned""#),
    ("protocol", r#""TCP""#),
];

/// Whether a live value is the API server's default for a member whose declaration is absent or empty.
pub(super) fn is_default(path: &FieldPath, declared: &Value, live: &str) -> bool {
    let name = path.fields().next_back().unwrap_or_default();
    let is_empty = declared.is_null() || declared.as_str() == Some("");
    is_empty && DEFAULTS.iter().any(|(member, value)| *member == name && are_equal(value, live))
}

/// Whether two values mean the same. At most one of them is an object or a list.
fn is_same_scalar(declared: &Value, live: &Value, place: Place<'_>) -> bool {
    declared == live
        || is_same_text(declared, live)
        || (place.is_quantity() && quantity(declared).is_some_and(|value| quantity(live) == Some(value)))
}

/// A number and its text are the same. Ports and percentages may be either, and YAML turns some text into numbers.
fn is_same_text(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(number), Value::String(text)) | (Value::String(text), Value::Number(number)) => {
            number.to_string() == *text
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => false,
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
    let (negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number =
        integer.len() + fraction.len() > 0 && integer.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !is_number || fraction.len() > 9 {
        return None;
    }
    let integer = if integer.is_empty() { 0 } else { integer.parse::<i128>().ok()? };
    let fraction = format!("{fraction:0<9}").parse::<i128>().ok()?;
    let amount = integer.checked_mul(SCALE)?.checked_add(fraction)?;
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

    use super::super::schema::BUILT_IN;
    use super::*;

    /// Whether a value in a built-in kind is declared, with the names of the fields around it.
    fn same_at(path: [&str; 2], declared: &Value, live: &Value) -> bool {
        let [parent, name] = path;
        is_declared(declared, None, &live.to_string(), Place { schema: &BUILT_IN, parent, name })
    }

    #[test]
    fn quantities_are_compared_by_amount_in_quantity_fields() {
        let cpu = ["limits", "cpu"];
        for (declared, live) in [
            (json!("1000m"), json!("1")),
            (json!(1), json!("1")),
            (json!(0.5), json!("500m")),
            (json!("1024Mi"), json!("1Gi")),
            (json!("1e3"), json!("1k")),
            (json!("0.1"), json!("100m")),
            (json!("-1"), json!("-1000m")),
            (json!("1Ti"), json!("1024Gi")),
            (json!("1Pi"), json!("1024Ti")),
            (json!("1Ei"), json!("1024Pi")),
            (json!("1e-3"), json!("1m")),
            (json!("1e-9"), json!("1n")),
            (json!("0.123456789"), json!("123456789n")),
        ] {
            assert!(same_at(cpu, &declared, &live), "{declared} {live}");
            assert_eq!(quantity(&declared), quantity(&live));
        }
        assert!(!same_at(cpu, &json!("1"), &json!("1001m")));
        assert!(!same_at(cpu, &json!("-1"), &json!("1")));
        assert!(!same_at(["annotations", "x"], &json!("1000m"), &json!("1")));
        for odd in ["", "m", "1x", "1.2.3", "1.0000000001", "99999999999999999999999999999999999999999", "1e99"] {
            assert_eq!(quantity(&json!(odd)), None, "{odd}");
        }
    }

    #[test]
    fn text_that_is_no_quantity_is_compared_as_text() {
        // The smallest number of 128 bits has no positive counterpart.
        for odd in ["-170141183460469231731687303715884105728", "1.-5", "1.+5", "--1", "-+1", "+", "-", "1-1", "."] {
            assert_eq!(quantity(&json!(odd)), None, "{odd}");
            assert!(!same_at(["limits", "cpu"], &json!(odd), &json!("1")), "{odd}");
        }
        assert_eq!(quantity(&json!("+1")), quantity(&json!("1")));
        assert_eq!(quantity(&json!("-.5")), quantity(&json!("-500m")));
        assert_eq!(quantity(&json!("5.")), quantity(&json!("5")));
    }

    #[test]
    fn ports_defaults_and_empty_values_are_equivalent() {
        let rules = ["spec", "rules"];
        assert!(same_at(["spec", "port"], &json!("80"), &json!(80)));
        assert!(same_at(rules, &json!([{"host": "a"}]), &json!([{"host": "a", "pathType": "Prefix"}])));
        assert!(!same_at(rules, &json!([{"host": "a"}]), &json!([{"host": "a"}, {"host": "b"}])));
        assert!(same_at(rules, &json!([{"host": "a", "tls": []}]), &json!([{"host": "a"}])));
        assert!(!same_at(rules, &json!([{"host": "a", "tls": [1]}]), &json!([{"host": "a"}])));
        assert!(!same_at(rules, &json!("a"), &json!(["a"])));
    }
    /// Whether an edit of rules sets the declared value.
    fn sets_rules(declared: &Value, old: &Value, new: &Value) -> bool {
        let place = Place { schema: &BUILT_IN, parent: "spec", name: "rules" };
        is_declared(declared, Some(&old.to_string()), &new.to_string(), place)
    }

    #[test]
    fn a_default_is_an_addition_only_to_a_declared_value() {
        let declared = json!([{"host": "a", "path": "/x"}, {"host": "b"}]);
        let rules = |path: &str, more: Value| {
            let mut rule = json!({"host": "a", "path": path});
            rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!([rule, {"host": "b"}])
        };
        let prefix = || json!({"pathType": "Prefix"});
        assert!(sets_rules(&declared, &rules("/y", json!({})), &rules("/x", prefix())));
        assert!(!sets_rules(&declared, &rules("/x", json!({})), &rules("/x", prefix())));
        // A list of another length did not match the declaration either.
        let listed = |paths: &[u64], more: Value| {
            let mut rule = json!({"host": "a", "paths": paths});
            rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!([rule])
        };
        assert!(sets_rules(&listed(&[1], json!({})), &listed(&[1, 2], json!({})), &listed(&[1], prefix())));
        assert!(!sets_rules(&listed(&[1], json!({})), &listed(&[1], json!({})), &listed(&[1], prefix())));
        // A member that existed before is not an addition.
        let half = json!([{"host": "a", "path": "/x", "pathType": "Prefix"}, {"host": "c"}]);
        assert!(sets_rules(&declared, &half, &rules("/x", prefix())));
    }

    #[test]
    fn numbers_mean_the_same_in_every_spelling() {
        let rules = ["spec", "rules"];
        assert!(same_at(rules, &json!(1.0), &json!(1)) && same_at(rules, &json!(1e2), &json!(100)));
        assert!(!same_at(rules, &json!(1.5), &json!(1)));
        let zero = |declared: Value| is_removed(&declared, None);
        assert!(!zero(json!(0)) && !zero(json!(0.0)) && !zero(json!(false)));
        assert!(zero(json!(5)) && zero(json!(true)) && zero(json!("x")));
    }

    #[test]
    fn keys_are_the_same_in_every_spelling_of_a_number() {
        for (key, text) in [
            (json!(80.0), "80"),
            (json!(80), "80"),
            (json!("80"), "80"),
            (json!(-1), "-1"),
            (json!(80.5), "80.5"),
            // A float would round them.
            (json!(u64::MAX), "18446744073709551615"),
            (json!(i64::MIN + 1), "-9223372036854775807"),
        ] {
            assert_eq!(identity(&key), text);
        }
        assert_ne!(identity(&json!(["80"])), identity(&json!("[\"80\"]")));
    }
}
