//! Every object of a manifest.

use serde_json::Value;

use super::{LONGEST, documents, is_json, read};

/// The objects of a manifest, those of lists each by itself. What has no kind and name is none.
///
/// # Errors
/// When a document does not read, or the manifest is longer than 16 MiB.
pub fn objects(manifest: &str) -> Result<Vec<Value>, String> {
    if manifest.len() > LONGEST {
        return Err(format!("it is longer than {} MiB", LONGEST >> 20));
    }
    let mut found = Vec::new();
    if is_json(manifest) {
        for document in serde_json::Deserializer::from_str(manifest).into_iter::<Value>() {
            let broken = |error: serde_json::Error| format!("line {}, column {}", error.line(), error.column());
            collect(document.map_err(broken)?, &mut found);
        }
        return Ok(found);
    }
    for document in documents(manifest).filter(|document| !document.trim().is_empty()) {
        collect(read::<Value>(document)?.unwrap_or_default(), &mut found);
    }
    Ok(found)
}

fn collect(mut value: Value, found: &mut Vec<Value>) {
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => items.into_iter().for_each(|item| collect(item, found)),
        Some(items) => {
            // A field of an object of its own kind.
            value["items"] = items;
            keep(value, found);
        }
        None => keep(value, found),
    }
}

fn keep(value: Value, found: &mut Vec<Value>) {
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
    fn what_does_not_read_is_told_by_its_place_alone() {
        let error = objects("kind: A\nmetadata: [hunter2\n").unwrap_err();
        assert!(error.contains("line") && !error.contains("hunter2"), "{error}");
    }
}
