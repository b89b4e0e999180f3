//! Manifests: documents, headings and objects, against a parser that reads every document as a whole.
//!
//! Input: the text of a manifest, YAML or JSON.

use interlock_engine::effort::Effort;
use interlock_engine::release::manifest::{DocumentKey, document, objects, workloads};
use interlock_engine::yaml::parse;
use serde_json::Value;

use super::Input;

/// The namespace of documents without one.
const DEFAULT_NAMESPACE: &str = "default";

/// Kinds that are found under several groups.
const MOVED: [&str; 7] =
    ["DaemonSet", "Deployment", "Event", "Ingress", "NetworkPolicy", "PodSecurityPolicy", "ReplicaSet"];

pub fn run(input: &[u8]) -> Input {
    let Ok(manifest) = std::str::from_utf8(input) else { return Input::Foreign };
    let effort = Effort::of_review();
    let found = objects(manifest, &effort);
    let known = workloads(manifest, DEFAULT_NAMESPACE, &effort);
    let Ok(found) = found else { return Input::Own };
    for workload in known.iter().flatten() {
        let name = Some(workload.name.as_str());
        let is_it = |object: &&Value| object["metadata"]["name"].as_str() == name;
        assert!(
            workload.name.is_empty() || found.iter().any(|object| is_it(&object) || is_odd(object)),
            "{workload:?}"
        );
    }
    let Some(expected) = reference(manifest) else { return Input::Own };
    assert_eq!(found, expected, "{manifest}");
    for object in &expected {
        let wanted = key(object);
        if MOVED.contains(&wanted.kind.as_str()) || expected.iter().filter(|other| key(other) == wanted).count() > 1 {
            continue;
        }
        let found = document(manifest, &wanted, &Effort::of_review());
        assert_eq!(found.as_ref().map(Option::as_ref), Ok(Some(object)), "{wanted:?} in {manifest}");
        let other = DocumentKey { name: format!("{}-x", wanted.name), ..wanted };
        if !expected.iter().any(|object| key(object) == other) {
            assert_eq!(document(manifest, &other, &Effort::of_review()), Ok(None), "{other:?} in {manifest}");
        }
    }
    Input::Own
}

fn key(object: &Value) -> DocumentKey {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let namespace = text(&object["metadata"]["namespace"]);
    DocumentKey {
        group: api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned(),
        kind: text(&object["kind"]),
        namespace: if namespace.is_empty() { DEFAULT_NAMESPACE.to_owned() } else { namespace },
        name: text(&object["metadata"]["name"]),
        default_namespace: DEFAULT_NAMESPACE.to_owned(),
    }
}

/// The objects of a manifest, parsed as a whole; `None` where the reference says nothing.
fn reference(manifest: &str) -> Option<Vec<Value>> {
    let documents = if manifest.trim_start().starts_with('{') {
        serde_json::Deserializer::from_str(manifest).into_iter::<Value>().collect::<Result<Vec<_>, _>>().ok()?
    } else {
        // The line break before a separator belongs to the document before it.
        let manifest = manifest.replace("\r\n", "\n").replace("\n---", "\n\n---");
        let manifest = if manifest.ends_with('\n') { manifest } else { manifest + "\n" };
        let documents = manifest.strip_prefix("---").unwrap_or(&manifest).split("\n---");
        documents.map(|document| parse(document, &Effort::of_review()).ok()).collect::<Option<Vec<_>>>()?
    };
    let mut found = Vec::new();
    for document in documents {
        match document.get("items") {
            Some(Value::Array(items)) => {
                for item in items {
                    found.push(completed(item, &document)?);
                }
            }
            Some(Value::Null) => {}
            _ if document.is_null() => {}
            _ => found.push(document),
        }
    }
    if found.iter().any(is_odd) { None } else { Some(found) }
}

/// An item of a list, which may leave its kind to the list.
fn completed(item: &Value, list: &Value) -> Option<Value> {
    let mut item = item.clone();
    let members = item.as_object_mut()?;
    if !members.contains_key("kind") && !members.contains_key("apiVersion") {
        let kind = list["kind"].as_str()?;
        members.insert("kind".to_owned(), kind.strip_suffix("List").unwrap_or(kind).into());
        if let Some(api_version) = list.get("apiVersion") {
            members.insert("apiVersion".to_owned(), api_version.clone());
        }
    }
    Some(item)
}

/// Whether no API server would take an object like this: it has no text for its kind or name, a text with a blank, or is a list
/// inside a list.
fn is_odd(object: &Value) -> bool {
    let is_text = |value: &Value| {
        value.as_str().is_some_and(|text| text.starts_with(char::is_alphabetic) && !text.contains(char::is_whitespace))
    };
    let is_optional_text = |value: Option<&Value>| value.is_none_or(is_text);
    let metadata = &object["metadata"];
    !object.is_object()
        || !is_text(&object["kind"])
        || !is_text(&metadata["name"])
        || !is_optional_text(metadata.get("namespace"))
        || !is_optional_text(object.get("apiVersion"))
        || object.get("items").is_some()
}
