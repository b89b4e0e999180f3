//! Manifests: documents, headings, outlines and objects, against a parser that reads every document as a whole.
//!
//! Input: the text of a manifest, YAML or JSON.

use release_interlock::engine::effort::Effort;
use release_interlock::engine::release::manifest::{DocumentKey, document, objects, workloads};
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
    for (index, object) in expected.iter().enumerate() {
        let wanted = key(object);
        if MOVED.contains(&wanted.kind.as_str()) || expected[..index].iter().any(|other| key(other) == wanted) {
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
        let documents = manifest.split("\n---").map(|document| document.trim_start_matches("---"));
        documents.map(parsed).collect::<Option<Vec<_>>>()?
    };
    let mut found = Vec::new();
    for document in documents {
        let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        match (is_list, &document["items"]) {
            (true, Value::Array(items)) => {
                for item in items {
                    found.push(completed(item, &document)?);
                }
            }
            _ if document.is_null() => {}
            _ => found.push(document),
        }
    }
    if found.iter().any(is_odd) { None } else { Some(found) }
}

/// A YAML document as Helm reads it.
fn parsed(document: &str) -> Option<Value> {
    let mut options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
        legacy_octal_numbers: true,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
    };
    options.alias_limits.max_total_replayed_events = 10_000;
    serde_saphyr::from_str_with_options::<Option<Value>>(document, options).ok().map(Option::unwrap_or_default)
}

/// An item of a list, which may leave its kind to the list.
fn completed(item: &Value, list: &Value) -> Option<Value> {
    let mut item = item.clone();
    let members = item.as_object_mut()?;
    if !members.contains_key("kind") && !members.contains_key("apiVersion") {
        members.insert("kind".to_owned(), list["kind"].as_str()?.strip_suffix("List")?.into());
        if let Some(api_version) = list.get("apiVersion") {
            members.insert("apiVersion".to_owned(), api_version.clone());
        }
    }
    Some(item)
}

/// Whether no API server would take an object like this: it has no text for its kind or name, a text with a blank, or is a list
/// inside a list. Or its name may be a number to YAML, whose value is lost: `263e7411` is infinite.
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
        || object["kind"].as_str().is_some_and(|kind| kind.ends_with("List"))
}
