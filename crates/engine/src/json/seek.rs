//! Parses one value of a JSON document and nothing after it.

use serde::Deserialize;
use serde::de::{Error, IgnoredAny};

use super::cursor::{Cursor, unquoted};

/// Parses the value at a path of keys and indices, and stops there; `None` if there is no such value. The document may
/// be cut off after the value.
///
/// # Errors
/// The text before the value is not an object or list, or the value has the wrong shape.
pub fn first_at<'a, T: Deserialize<'a>>(json: &'a str, path: &[&str]) -> Result<Option<T>, serde_json::Error> {
    let Some(mut value) = cursor_at(json, path)? else {
        return Ok(None);
    };
    serde_json::from_str(value.skip_value().ok_or_else(|| unreadable(json))?).map(Some)
}

/// The position of the value at a path; `None` if there is no such value.
///
/// # Errors
/// The text before the value is not an object or list.
pub fn cursor_at<'a>(json: &'a str, path: &[&str]) -> Result<Option<Cursor<'a>>, serde_json::Error> {
    let mut cursor = Cursor::new(json);
    for key in path {
        match enter(&mut cursor, key) {
            Some(true) => {}
            Some(false) => return Ok(None),
            None => return Err(unreadable(json)),
        }
    }
    Ok(Some(cursor))
}

/// Moves to a member or an item, and returns whether there is one. `None` for anything but an object or a list.
fn enter(cursor: &mut Cursor<'_>, key: &str) -> Option<bool> {
    if cursor.peek()? == b'{' {
        cursor.expect_byte(b'{')?;
        while let Some(name) = cursor.next_name()? {
            if unquoted(name)? == key {
                return Some(true);
            }
            cursor.skip_value()?;
        }
        return Some(false);
    }
    cursor.expect_byte(b'[')?;
    for _ in 0..key.parse::<usize>().ok()? {
        if !cursor.has_next(b']')? {
            return Some(false);
        }
        cursor.skip_value()?;
    }
    cursor.has_next(b']')
}

/// serde's error for a text that cannot be searched.
pub fn unreadable(json: &str) -> serde_json::Error {
    let read = serde_json::from_str::<IgnoredAny>(json);
    read.err().unwrap_or_else(|| Error::custom("invalid type, expected an object or a list"))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn keys_and_indices_find_a_value() {
        let json = r#"{"a":[{"b":1},{"b":{"c":2},"d":0}],"e":null,"f":"g"}"#;
        let at = |path: &[&str]| first_at::<&RawValue>(json, path).ok().flatten().map(RawValue::get);
        assert_eq!(at(&["a", "1", "b"]), Some(r#"{"c":2}"#));
        assert_eq!(at(&["a", "0"]), Some(r#"{"b":1}"#));
        assert_eq!(at(&["a", "1", "b", "c"]), Some("2"));
        for path in [&["a", "2"][..], &["a", "x"], &["a", "2", "b"], &["f", "g"], &["e", "x"], &["x"], &["a", "b"]] {
            assert_eq!(at(path), None, "{path:?}");
        }
        assert_eq!(at(&["f"]), Some(r#""g""#));
    }

    #[test]
    fn a_text_without_members_is_an_error() {
        for (text, wanted) in
            [("7", "expected an object or a list"), (r#"{"a":}"#, "expected value"), ("", "EOF"), (r#"{"a":"#, "EOF")]
        {
            let error = first_at::<&RawValue>(text, &["a"]).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!(first_at::<&RawValue>(r#"{"b":1,"a""#, &["a"]).is_err());
        assert_eq!(first_at::<u8>(r#"{"b":1,"cut"#, &["b"]).unwrap(), Some(1));
    }
}
