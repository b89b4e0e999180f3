//! The difference between two texts: nothing is missed, nothing is read without need, and its depth is bounded.

use serde_json::{Map, Value, json};

use super::{Delta, delta, text};

/// The deepest level at which differences are told apart.
const MAX_DEPTH: usize = 100;

/// The paths that differ between two texts.
fn paths(old: &str, new: &str) -> Vec<String> {
    let changed = delta(old, new).iter().flat_map(Delta::changed_values).collect::<Vec<_>>();
    changed.iter().map(|changed| changed.path.to_string()).collect()
}

/// A value inside so many containers.
fn nested(levels: usize, wrap: impl Fn(Value) -> Value, leaf: u64) -> String {
    text(&(0..levels).fold(Value::from(leaf), |inner, _| wrap(inner)))
}

/// The depth of the place at which two values inside so many containers differ.
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
fn neighbours_are_all_told_apart_at_the_same_level() {
    let wide = |leaf: u64| {
        let members = (0..3 * MAX_DEPTH).map(|number| (format!("k{number}"), json!({ "a": leaf })));
        text(&Value::Object(members.collect::<Map<_, _>>()))
    };
    let found = paths(&wide(1), &wide(2));
    assert_eq!(found.len(), 3 * MAX_DEPTH);
    assert!(found.iter().all(|path| path.ends_with(".a")), "{found:?}");
}

#[test]
fn a_difference_behind_a_list_of_another_length_is_found() {
    for (old, new) in [("[1,2]", "[1]"), ("[1]", "[1,2]"), ("[]", "[{\"a\":1}]")] {
        let whole = |list: &str, last: u64| format!(r#"{{"list":{list},"same":"text","last":{last}}}"#);
        assert_eq!(paths(&whole(old, 1), &whole(new, 2)), ["list", "last"], "{old} {new}");
        assert_eq!(paths(&whole(old, 1), &whole(new, 1)), ["list"], "{old} {new}");
        let other = whole(new, 1).replace("same", "name");
        assert_eq!(paths(&whole(old, 1), &other), ["list", "name", "same"], "{old} {new}");
    }
}

#[test]
fn nothing_is_read_after_the_last_difference() {
    // What follows is no JSON: reading it would make the whole value differ.
    for (old, new) in
        [("1", "2"), ("[1]", "[2]"), ("[1,2]", "[1]"), ("{\"b\":1}", "{\"b\":2}"), ("[{\"b\":1}]", "[{\"b\":2}]")]
    {
        let whole = |value: &str| format!(r#"{{"a":{value},"same":"""#);
        let found = delta(&whole(old), &whole(new)).map(|delta| matches!(delta, Delta::Members(_)));
        assert_eq!(found, Some(true), "{old} {new}");
        // If the text after it is not the same, it is read.
        let other = format!(r#"{{"a":{new},"same":"x"#);
        let found = delta(&whole(old), &other).map(|delta| matches!(delta, Delta::Members(_)));
        assert_eq!(found, Some(false), "{old} {new}");
    }
}
