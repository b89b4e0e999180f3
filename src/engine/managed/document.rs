//! The fields that a document of a manifest declares.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::declared::{Declared, DocumentPart, declared_member};
use crate::engine::object::group_of;

/// The lists of Kubernetes' own kinds whose order does not matter: the name of the field, and the keys of the items.
/// `ports` can be those of a container or of a Service.
const KEYED_LISTS: [(&str, &[&str]); 17] = [
    ("containers", &["name"]),
    ("env", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("hostAliases", &["ip"]),
    ("imagePullSecrets", &["name"]),
    ("initContainers", &["name"]),
    ("ownerReferences", &["uid"]),
    ("ports", &["containerPort", "protocol"]),
    ("ports", &["port", "protocol"]),
    ("resourceClaims", &["name"]),
    ("schedulingGates", &["name"]),
    ("secrets", &["name"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("volumeDevices", &["devicePath"]),
    ("volumeMounts", &["mountPath"]),
    ("volumes", &["name"]),
    ("webhooks", &["name"]),
];

/// The metadata that a document can declare. The rest identifies the object, or the API server sets it.
const DECLARABLE_METADATA: [&str; 4] = ["annotations", "finalizers", "labels", "ownerReferences"];

/// Whether the object of a document is a custom resource: its group has a domain of its own. Only `managedFields` knows
/// the keys of its lists, because its schema defines them.
#[must_use]
pub(crate) fn is_custom_resource(document: &Value) -> bool {
    let group = group(document);
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// The fields that a document declares. A table has the keys of lists in Kubernetes' own kinds; `written`, from
/// `managedFields`, has those of others. A list that neither knows is declared as a whole.
#[must_use]
pub(crate) fn declared_by<'d>(document: &'d Value, written: &'d Declared<'d>) -> Declared<'d> {
    let Value::Object(members) = document else {
        return Declared::nothing();
    };
    let lists: &[_] = if is_custom_resource(document) { &[] } else { &KEYED_LISTS };
    let part = |name: &'d str, value, written: Option<&'d Declared<'d>>| {
        let declared = Declared::Document(DocumentPart { name, value, lists, written });
        (Cow::Borrowed(name), declared)
    };
    let is_secret = group(document).is_empty() && members.get("kind").is_some_and(|kind| kind == "Secret");
    let mut fields: BTreeMap<_, _> = members
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "status" | "metadata"))
        // The API server stores it as `data` and nothing under this name.
        .filter(|(name, _)| !(is_secret && *name == "stringData"))
        .map(|(name, value)| part(name, value, declared_member(Some(written), name)))
        .collect();
    if let Some(Value::Object(metadata)) = members.get("metadata") {
        let written = declared_member(Some(written), "metadata");
        let declared = metadata.iter().filter(|(name, _)| DECLARABLE_METADATA.contains(&name.as_str()));
        let declared = declared.map(|(name, value)| part(name, value, declared_member(written, name))).collect();
        fields.insert(Cow::Borrowed("metadata"), Declared::Fields(declared));
    }
    if let Some(Value::Object(text)) = members.get("stringData").filter(|_| is_secret) {
        let data = members.get("data").and_then(Value::as_object).into_iter().flatten();
        let data = data.map(|(name, value)| part(name, value, None));
        // `stringData` overrides `data`.
        let text = text.iter().map(|(name, value)| {
            let encoded = value.as_str().map(|value| Cow::Owned(Value::from(STANDARD.encode(value))));
            (Cow::Borrowed(name.as_str()), Declared::Leaf(encoded))
        });
        fields.insert(Cow::Borrowed("data"), Declared::Fields(data.chain(text).collect()));
    }
    Declared::Fields(fields)
}

fn group(document: &Value) -> &str {
    document.get("apiVersion").and_then(Value::as_str).map(group_of).unwrap_or_default()
}
