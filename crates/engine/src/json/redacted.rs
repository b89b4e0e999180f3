//! Parse errors without the values of the document. The text appears in refusals, Events, reports and the log, and
//! objects include Secrets.

/// The prefixes of messages that quote only known keys.
const KEY_ONLY_PREFIXES: [&str; 3] =
    ["missing field ", "duplicate field ", "a key that differs from a known one only in case: "];

/// The expected value and its position. serde quotes the unexpected value, so that part is left out.
pub fn redacted(error: &serde_json::Error) -> String {
    let said = error.to_string();
    if !error.is_data() || KEY_ONLY_PREFIXES.iter().any(|beginning| said.starts_with(beginning)) {
        return said;
    }
    match said.rsplit_once(", expected ") {
        Some((_, expected)) => format!("expected {expected}"),
        None => format!("unexpected value at line {} column {}", error.line(), error.column()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only read")]
    struct Shape {
        name: String,
        kind: Option<Kind>,
        labels: Option<BTreeMap<String, u8>>,
    }

    #[derive(Debug, Deserialize)]
    enum Kind {
        One,
    }

    fn reason(json: &str) -> String {
        redacted(&serde_json::from_str::<Shape>(json).unwrap_err())
    }

    #[test]
    fn errors_contain_the_expected_type_and_not_the_value() {
        for (json, wanted) in [
            (r#"{"name":"a","labels":"hunter2"}"#, "expected a map at line 1 column 30"),
            (r#"{"name":"a","kind":"hunter2"}"#, "expected `One` at line 1 column "),
            (r#"{"name":{"hunter2":1}}"#, "expected a string at line 1 column "),
            (r#"{"name":"a","labels":{"a":"hunter2, expected x"}}"#, "expected u8 at line 1 column "),
            (r#"{"name":"a","labels":{"a":1,"a":"hunter2"}}"#, "expected u8 at line 1 column "),
            ("{}", "missing field `name` at line 1 column 2"),
            (r#"{"name":"a""#, "EOF while parsing an object at line 1 column 11"),
        ] {
            let reason = reason(json);
            assert!(reason.starts_with(wanted) && !reason.contains("hunter2"), "{json}: {reason}");
        }
    }
}
