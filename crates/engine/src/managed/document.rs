//! The fields that a document of a manifest declares.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::declared::{Declared, DocumentPart, declared_member};
use super::schema::{BUILT_IN, CUSTOM, METADATA, Place};
use crate::object::group_of;

/// The metadata that a document can declare. The rest identifies the object, or the API server sets it.
const DECLARABLE_METADATA: [&str; 4] = ["annotations", "finalizers", "labels", "ownerReferences"];

/// Whether the object of a document is a custom resource: its group has a domain of its own. Only `managedFields` knows
/// the keys of its lists, because the schema of the resource defines them.
#[must_use]
pub fn is_custom_resource(document: &Value) -> bool {
    let group = group(document);
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// The lists in metadata to which an edit may add nothing, whether a document declares them or not.
const CLOSED_LISTS: [&str; 2] = ["finalizers", "ownerReferences"];

static EMPTY_LIST: Value = Value::Array(Vec::new());

/// The fields that a document declares. A table has the list keys and the atomic maps of Kubernetes' own kinds;
/// `written`, from `managedFields`, has those of others.
#[must_use]
pub fn declared_by<'d>(document: &'d Value, written: &'d Declared<'d>) -> Declared<'d> {
    let Value::Object(members) = document else {
        return Declared::nothing();
    };
    let schema = if is_custom_resource(document) { &CUSTOM } else { &BUILT_IN };
    let root = Place { schema, parent: "", name: "" };
    let is_core = |kinds: &[&str]| group(document).is_empty() && kinds.iter().any(|kind| document["kind"] == **kind);
    let is_secret = is_core(&["Secret"]);
    let mut fields: BTreeMap<_, _> = members
        .iter()
        .filter(|(name, value)| {
            !matches!(name.as_str(), "apiVersion" | "kind" | "status" | METADATA) && !value.is_null()
        })
        // The API server stores it as `data`, and nothing under this name.
        .filter(|(name, _)| !(is_secret && *name == "stringData"))
        .map(|(name, value)| part(root.field(name), value, declared_member(Some(written), name)))
        .collect();
    if is_core(&["ConfigMap", "Secret"]) {
        // `immutable: true` cannot be reverted, and blocks the next upgrade.
        fields.entry(Cow::Borrowed("immutable")).or_insert(Declared::Leaf(Some(Cow::Owned(Value::Bool(false)))));
    }
    if let Some(Value::Object(metadata)) = members.get(METADATA) {
        let written = declared_member(Some(written), METADATA);
        let place = Place { schema: &BUILT_IN, parent: "", name: METADATA };
        let closed = CLOSED_LISTS.map(|name| part(place.field(name), &EMPTY_LIST, None));
        let declared =
            metadata.iter().filter(|(name, value)| DECLARABLE_METADATA.contains(&name.as_str()) && !value.is_null());
        let declared = declared.map(|(name, value)| part(place.field(name), value, declared_member(written, name)));
        fields.insert(Cow::Borrowed(METADATA), Declared::Fields(closed.into_iter().chain(declared).collect()));
    }
    let text = members.get("stringData").and_then(Value::as_object);
    let data = members.get("data").and_then(Value::as_object);
    if is_secret && (text.is_some() || data.is_some_and(|data| data.values().any(|value| unwrapped(value).is_some()))) {
        let place = root.field("data");
        let data = data.into_iter().flatten().filter(|(_, value)| !value.is_null());
        let data = data.map(|(name, value)| match unwrapped(value) {
            None => part(place.field(name), value, None),
            value => (Cow::Borrowed(name.as_str()), Declared::Leaf(value.map(Cow::Owned))),
        });
        // `stringData` overrides `data`.
        let text = text.into_iter().flatten().map(|(name, value)| {
            let encoded = value.as_str().map(|value| Cow::Owned(Value::from(STANDARD.encode(value))));
            (Cow::Borrowed(name.as_str()), Declared::Leaf(encoded))
        });
        fields.insert(Cow::Borrowed("data"), Declared::Fields(data.chain(text).collect()));
    }
    Declared::Fields(fields)
}

/// Base64 in one line, as the API server stores it; `None` if it has no line breaks, which Go's decoder skips.
fn unwrapped(value: &Value) -> Option<Value> {
    let text = value.as_str().filter(|text| text.contains(['\n', '\r']))?;
    Some(text.chars().filter(|character| !matches!(character, '\n' | '\r')).collect::<String>().into())
}

fn part<'d>(place: Place<'d>, value: &'d Value, written: Option<&'d Declared<'d>>) -> (Cow<'d, str>, Declared<'d>) {
    (Cow::Borrowed(place.name), Declared::Document(DocumentPart::new(place, value, written)))
}

fn group(document: &Value) -> &str {
    document.get("apiVersion").and_then(Value::as_str).map(group_of).unwrap_or_default()
}
