//! The documents of a manifest.
//!
//! Helm stores YAML documents with separators; OLM stores JSON documents without separators.

use serde_json::Value;

use crate::engine::effort::Effort;

/// The longest manifest that is read, in bytes. The largest legitimate manifest has about 5 MiB.
const MAX_MANIFEST_BYTES: usize = 8 << 20;

/// The steps to parse a byte of YAML into a tree.
const YAML_STEPS: u64 = 120;

/// The steps to parse a byte of JSON into a tree.
const JSON_STEPS: u64 = 10;

/// The most events that the aliases of a document may repeat, and the steps that a repeated event takes. They are paid for
/// before a document with an alias is parsed. Charts use aliases rarely, and for a few dozen events.
const MAX_REPEATED_EVENTS: usize = 50_000;
const REPEATED_EVENT_STEPS: u64 = 400;

/// Whether a document may repeat a part of itself: it has an anchor, and something that may refer to it. `a && b` is none.
fn may_have_aliases(document: &str) -> bool {
    let text = document.as_bytes();
    let is_anchor = |at: usize| {
        let begins = at == 0 || text[at - 1].is_ascii_whitespace() || b"[{,:-".contains(&text[at - 1]);
        let name = text[at..].iter().find(|byte| **byte != b'&');
        begins && name.is_some_and(|byte| !byte.is_ascii_whitespace())
    };
    text.contains(&b'*') && memchr::memchr_iter(b'&', text).any(is_anchor)
}

/// What a map takes with its first members, a further member, and an item of a list, in bytes.
const MAP_BYTES: u64 = 640;
const MEMBER_BYTES: u64 = 128;
const ITEM_BYTES: u64 = 96;

/// The most memory that a document takes as a tree of values, in bytes, by the marks in its text that begin a value. Each of
/// them may begin a map of its own.
fn tree_bytes(document: &str) -> u64 {
    let text = document.as_bytes();
    let of_mark = |(at, mark): (usize, &u8)| match mark {
        // A colon in the middle of a word begins nothing.
        b':' | b'?' if text.get(at + 1).is_none_or(|next| b" \t\r\n,]}".contains(next)) => MAP_BYTES,
        b':' if at > 0 && b"\"'".contains(&text[at - 1]) => MAP_BYTES,
        b'{' => MAP_BYTES,
        b',' | b'[' => MEMBER_BYTES,
        b'-' | b'\n' => ITEM_BYTES,
        _ => 0,
    };
    2 * text.len() as u64 + text.iter().enumerate().map(of_mark).sum::<u64>()
}

/// # Errors
/// The manifest is longer than 8 MiB.
pub(super) fn check_length(manifest: &str, effort: &Effort) -> Result<(), String> {
    if manifest.len() > MAX_MANIFEST_BYTES {
        effort.exceed();
        return Err(format!("it is longer than {} MiB", MAX_MANIFEST_BYTES >> 20));
    }
    Ok(())
}

/// Whether the documents are JSON.
pub(super) fn is_json(manifest: &str) -> bool {
    manifest.trim_start().starts_with('{')
}

/// The documents of a YAML manifest, as text.
pub(super) fn yaml_documents(manifest: &str) -> impl Iterator<Item = &str> {
    // The line of a separator may end in a comment, and the first document starts with a separator of its own.
    manifest.split("\n---").map(|document| document.trim_start_matches("---"))
}

/// Parses a YAML document as Helm does, by YAML 1.1: `0644` is 420, `yes` is true, and the last of several equal keys counts.
/// An empty document is null.
///
/// # Errors
/// The position of the problem, never the text there, because manifests contain Secrets. Or it is more work than the review
/// has left.
pub(super) fn parse_yaml(document: &str, effort: &Effort) -> Result<Value, String> {
    effort.take_text(document, YAML_STEPS)?;
    effort.take_tree(tree_bytes(document))?;
    if may_have_aliases(document) {
        effort.take(MAX_REPEATED_EVENTS as u64 * REPEATED_EVENT_STEPS)?;
        effort.take_tree(MAX_REPEATED_EVENTS as u64 * MEMBER_BYTES)?;
    }
    let mut options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
        legacy_octal_numbers: true,
        // `263e7411` is text to Go and an infinite number to YAML 1.2. As text the value is lost, but the field is there.
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
    };
    options.alias_limits.max_total_replayed_events = MAX_REPEATED_EVENTS;
    let parsed = serde_saphyr::from_str_with_options::<Option<Value>>(document, options);
    parsed.map(Option::unwrap_or_default).map_err(|error| match error.location() {
        Some(at) => format!("line {}, column {} of a document", at.line(), at.column()),
        None => "a document is not YAML".to_owned(),
    })
}

/// Parses a JSON document.
///
/// # Errors
/// The position of the problem, or it is more work than the review has left.
pub(super) fn parse_json(document: &str, effort: &Effort) -> Result<Value, String> {
    effort.take_text(document, JSON_STEPS)?;
    effort.take_tree(tree_bytes(document))?;
    serde_json::from_str(document).map_err(|error| position(&error))
}

/// The position of an error in JSON, without the text there.
pub(super) fn position(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::effort::OverBudget;

    #[test]
    fn a_document_without_an_anchor_has_no_aliases() {
        for (document, may) in [
            ("a: &x [1]\nb: *x\n", true),
            ("&x a: *x", true),
            ("[&&x 1, *&x]", true),
            ("schedule: '*/5 * * * *'\n", false),
            ("command: [sh, -c, 'a && rm *', 'b 2>&1 & c']\n", false),
            ("a: &x [1]\n", false),
        ] {
            assert_eq!(may_have_aliases(document), may, "{document}");
        }
    }

    #[test]
    fn scalars_mean_what_they_mean_to_helm() {
        // As sigs.k8s.io/yaml 1.6 reads them.
        for (text, wanted) in [
            ("0644", json!(420)),
            ("-0644", json!(-420)),
            ("0o644", json!(420)),
            ("\"0644\"", json!("0644")),
            ("0", json!(0)),
            ("00", json!(0)),
            ("0.5", json!(0.5)),
            ("089", json!(89.0)),
            ("0x1F", json!(31)),
            ("0b101", json!(5)),
            ("1_000", json!(1000)),
            ("1e3", json!(1000.0)),
            ("1.10", json!(1.1)),
            ("yes", json!(true)),
            ("off", json!(false)),
            ("\"yes\"", json!("yes")),
            ("~", json!(null)),
            ("2026-11-21", json!("2026-11-21")),
            ("12:30:45", json!("12:30:45")),
            ("1.2.3", json!("1.2.3")),
        ] {
            let found = parse_yaml(&format!("a: {text}\n"), &Effort::of_review());
            assert_eq!(found, Ok(json!({"a": wanted})), "{text}");
        }
    }

    #[test]
    fn a_document_of_tiny_maps_is_more_than_a_review_may_hold_and_a_large_definition_is_not() {
        let effort = Effort::of_review();
        let field = "  replicas:\n    type: integer\n    description: how many there are, at https://example.com:8080 or aa:bb:cc\n";
        assert!(parse_yaml(&format!("a:\n{}", field.repeat(9_000)), &effort).is_ok());
        for tiny in ["- a: 1\n", "- {a: 1}\n", "- {a}\n", "- ? a\n", "- \"a\":\n"] {
            let error = parse_yaml(&tiny.repeat(200_000), &effort);
            assert_eq!(error, Err(OverBudget.to_string()), "{tiny}");
        }
        assert!(parse_json(&format!("[{}1]", "{\"a\":1},".repeat(200_000)), &effort).is_err());
    }
}
