//! All objects of a manifest.

use serde_json::Value;

use super::documents::parsed;

/// The objects of a manifest. The items of a list count one by one. A document without kind and name is no object.
///
/// # Errors
/// A document cannot be parsed, or the manifest is longer than 16 MiB.
pub(crate) fn objects(manifest: &str) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    for document in parsed(manifest, |document| !document.trim().is_empty())? {
        collect(document?, &mut found);
    }
    Ok(found)
}

fn collect(mut value: Value, found: &mut Vec<Value>) {
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => items.into_iter().for_each(|item| collect(item, found)),
        Some(items) => {
            // `items` is a field of this kind, not a list of objects.
            value["items"] = items;
            push_object(value, found);
        }
        None => push_object(value, found),
    }
}

fn push_object(value: Value, found: &mut Vec<Value>) {
    if value["kind"].is_string() && value["metadata"]["name"].is_string() {
        found.push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(manifest: &str) -> Vec<String> {
        let name = |value: &Value| format!("{} {}", value["kind"], value["metadata"]["name"]).replace('"', "");
        objects(manifest).unwrap().iter().map(name).collect()
    }

    #[test]
    fn objects_are_found_in_documents_and_in_lists() {
        let yaml = "---\n# Source: a\nkind: A\nmetadata: {name: one}\n---\n# nothing\n---\nkind: List\nitems:\n\
                    - {kind: B, metadata: {name: two}}\n- {kind: C, metadata: {name: three}, items: [1]}\n---\nkind: D\n";
        assert_eq!(names(yaml), ["A one", "B two", "C three"]);
        let json =
            r#"{"kind":"A","metadata":{"name":"one"}} {"kind":"BList","items":[{"kind":"B","metadata":{"name":"b"}}]}"#;
        assert_eq!(names(json), ["A one", "B b"]);
        assert_eq!(names(""), [""; 0]);
    }

    #[test]
    fn an_error_contains_the_position_alone() {
        let error = objects("kind: A\nmetadata: [hunter2\n").unwrap_err();
        assert!(error.contains("line") && !error.contains("hunter2"), "{error}");
    }
}
