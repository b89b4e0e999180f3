//! The kept part of a text, for any split of the text.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const ITEM: Keep = Keep::Object(
    &[
        ("metadata", Keep::Members(&[("name", Keep::Short), ("labels", Keep::Members(&[("a.io/*", Keep::Short)]))])),
        ("spec", Keep::Members(&[("release", Keep::All), ("list", Keep::Members(&[("b", Keep::All)]))])),
    ],
    400,
);
static ROOT: Keep =
    Keep::Object(&[("items", ITEM), ("object", ITEM), ("type", Keep::Short), ("metadata", Keep::All)], 100);

/// The kept part of a text that arrives in parts of so many bytes.
fn kept_of(text: &str, part: usize) -> Result<String, Malformed> {
    let mut projector = Projector::new(&ROOT);
    let mut out = Vec::new();
    for part in text.as_bytes().chunks(part) {
        projector.push(part)?;
        out.append(&mut projector.take());
    }
    Ok(String::from_utf8(out).unwrap())
}

fn kept(object: &Value) -> Value {
    let text = object.to_string();
    let expected = kept_of(&text, text.len()).unwrap();
    for part in [1, 2, 7] {
        assert_eq!(kept_of(&text, part).as_ref(), Ok(&expected), "parts of {part}");
    }
    serde_json::from_str(&expected).unwrap_or_else(|error| panic!("{error}: {expected}"))
}

#[test]
fn only_wanted_fields_are_kept() {
    let item = json!({
        "metadata": {"managedFields": [{"a": {"name": "x"}}], "name": "w\"e}b\\", "labels": {"a.io/x": "1", "b.io/x": "2"}},
        "spec": {"release": {"any": ["thing", {"name": -1.5}]}, "values": {"release": 1}, "list": [{"b": 1, "c": 2}, 7, {}]},
        "status": {},
    });
    let wanted = json!({
        "metadata": {"name": "w\"e}b\\", "labels": {"a.io/x": "1"}},
        "spec": {"release": {"any": ["thing", {"name": -1.5}]}, "list": [{"b": 1}, 7, {}]},
    });
    let list = json!({"apiVersion": "v1", "items": [item, item, {}], "metadata": {"continue": "x"}});
    assert_eq!(kept(&list), json!({"items": [wanted, wanted, {}], "metadata": {"continue": "x"}}));
}

#[test]
fn a_value_of_another_shape_is_kept_for_its_reader() {
    let item = json!({"metadata": "text", "spec": [["no", "members"], {"release": "web"}]});
    assert_eq!(kept(&json!({"items": [item]})), json!({"items": [{"metadata": "text", "spec": [{"release": "web"}]}]}));
    assert_eq!(kept(&json!({"items": null})), json!({"items": null}));
}

#[test]
fn a_large_object_keeps_its_name_and_its_neighbours() {
    let item = |release: Value| json!({"spec": {"release": release}, "metadata": {"name": "web"}});
    let small = item(json!("small"));
    for large in [json!("x".repeat(500)), json!(vec![json!({}); 500])] {
        let found = kept(&json!({"items": [small, item(large), small]}));
        assert_eq!(found, json!({"items": [small, {"spec": {}, "metadata": {"name": "web"}, "cut": true}, small]}));
    }
    // A list of empty items fills an object too.
    let found = kept(&json!({"items": [{"spec": {"list": vec![json!({}); 500]}, "metadata": {"name": "web"}}]}));
    assert_eq!((&found["items"][0]["cut"], &found["items"][0]["metadata"]["name"]), (&json!(true), &json!("web")));
    assert!(found.to_string().len() < 400);
    // Dropped parts use no room.
    let deep = json!({"items": [{"values": vec![json!({"a": [{}]}); 5_000], "metadata": {"name": "web"}}]});
    assert_eq!(kept(&deep), json!({"items": [{"metadata": {"name": "web"}}]}));
}

#[test]
fn a_label_that_is_too_long_is_missing_and_cuts_nothing() {
    let labels = json!({"a.io/long": "x".repeat(SHORT_BYTES), "a.io/x": "1"});
    let found = kept(&json!({"items": [{"metadata": {"labels": labels}}]}));
    assert_eq!(found, json!({"items": [{"metadata": {"labels": {"a.io/x": "1"}}}]}));
}

#[test]
fn events_of_a_watch_are_lines() {
    let event = |name: &str| json!({"type": "ADDED", "object": {"metadata": {"name": name, "uid": "u"}}}).to_string();
    let found = kept_of(&format!("{}\n{}\n", event("a"), event("b")), 5).unwrap();
    let line = |name: &str| format!(r#"{{"object":{{"metadata":{{"name":"{name}"}}}},"type":"ADDED"}}"#);
    assert_eq!(found, format!("{}\n{}\n", line("a"), line("b")));
}

#[test]
fn invalid_json_is_an_error_or_nothing() {
    for text in ["404 page not found", "{]", "{\"a\"}", "{,}", "}", "{\"items\":}", "{\"items\":[}]}", "[,]"] {
        assert_eq!(kept_of(text, 1), Err(Malformed), "{text}");
    }
    let deep = format!(r#"{{"items":{}"#, "[".repeat(100_000));
    assert_eq!(kept_of(&deep, 999).as_deref(), Ok(r#"{"items":["#), "depth takes no memory");
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(text in "[{}\\[\\],:\"\\\\a items1]{0,60}") {
        let _whatever = (kept_of(&text, 1), kept_of(&text, 60));
    }
}
