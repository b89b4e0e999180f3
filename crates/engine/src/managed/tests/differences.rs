//! The difference between two texts: complete, without needless parsing, and of bounded depth.

use serde_json::{Map, Value, json};

use super::{Delta, delta, text};

/// The deepest level at which differences are reported separately.
const MAX_DEPTH: usize = 100;

/// The paths that differ between two texts.
fn paths(old: &str, new: &str) -> Vec<String> {
    let changed = delta(old, new).iter().flat_map(Delta::changed_values).collect::<Vec<_>>();
    changed.iter().map(|changed| changed.path.to_string()).collect()
}

/// A value inside a number of containers.
fn nested(levels: usize, wrap: impl Fn(Value) -> Value, leaf: u64) -> String {
    text(&(0..levels).fold(Value::from(leaf), |inner, _| wrap(inner)))
}

/// The depth at which two values inside a number of containers differ.
fn depth(levels: usize, wrap: impl Fn(Value) -> Value + Copy) -> usize {
    let (old, new) = (nested(levels, wrap, 1), nested(levels, wrap, 2));
    let changed = delta(&old, &new).unwrap().changed_values();
    changed[0].path.pointer().as_str().matches('/').count()
}

#[test]
fn differences_below_the_deepest_level_count_as_one() {
    for levels in [1, MAX_DEPTH - 1, MAX_DEPTH] {
        assert_eq!(depth(levels, |inner| json!({ "a": inner })), levels);
        assert_eq!(depth(levels, |inner| json!([inner])), levels);
    }
    for levels in [MAX_DEPTH + 1, MAX_DEPTH + 20] {
        assert_eq!(depth(levels, |inner| json!({ "a": inner })), MAX_DEPTH);
        assert_eq!(depth(levels, |inner| json!([inner])), MAX_DEPTH);
    }
}

#[test]
fn neighbours_at_one_level_differ_separately() {
    let wide = |leaf: u64| {
        let members = (0..3 * MAX_DEPTH).map(|number| (format!("k{number}"), json!({ "a": leaf })));
        text(&Value::Object(members.collect::<Map<_, _>>()))
    };
    let found = paths(&wide(1), &wide(2));
    assert_eq!(found.len(), 3 * MAX_DEPTH);
    assert!(found.iter().all(|path| path.ends_with(".a")), "{found:?}");
}

#[test]
fn a_difference_after_a_list_of_another_length_is_found() {
    for (old, new) in [("[1,2]", "[1]"), ("[1]", "[1,2]"), ("[]", "[{\"a\":1}]")] {
        let text = |list: &str, last: u64| format!(r#"{{"list":{list},"same":"text","last":{last}}}"#);
        assert_eq!(paths(&text(old, 1), &text(new, 2)), ["list", "last"], "{old} {new}");
        assert_eq!(paths(&text(old, 1), &text(new, 1)), ["list"], "{old} {new}");
        let other = text(new, 1).replace("same", "name");
        assert_eq!(paths(&text(old, 1), &other), ["list", "name", "same"], "{old} {new}");
    }
}

#[test]
fn nothing_is_parsed_after_the_last_difference() {
    // The rest is not JSON: parsing it would make the entire value differ.
    for (old, new) in
        [("1", "2"), ("[1]", "[2]"), ("[1,2]", "[1]"), ("{\"b\":1}", "{\"b\":2}"), ("[{\"b\":1}]", "[{\"b\":2}]")]
    {
        let text = |value: &str| format!(r#"{{"a":{value},"same":"""#);
        let found = delta(&text(old), &text(new)).map(|delta| matches!(delta, Delta::Members(_)));
        assert_eq!(found, Some(true), "{old} {new}");
        // If the text after it differs, it is parsed.
        let other = format!(r#"{{"a":{new},"same":"x"#);
        let found = delta(&text(old), &other).map(|delta| matches!(delta, Delta::Members(_)));
        assert_eq!(found, Some(false), "{old} {new}");
    }
}
