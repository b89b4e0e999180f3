//! What a document of a manifest declares of the object that was made of it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Declared, Key, semantics};
use crate::engine::object::group_of;

/// The lists of Kubernetes' own kinds whose order does not matter, and what their items are known by: a field name, and
/// the keys of its items. A `ports` is a container's or a Service's.
const LISTS: [(&str, &[&str]); 17] = [
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

/// The metadata that a document can declare; the rest is the object's identity, or the API server's.
const METADATA: [&str; 4] = ["annotations", "finalizers", "labels", "ownerReferences"];

/// Whether the lists of a document's object are known by the object's own account of its fields alone: custom resources
/// have a domain of their own, and their lists are what their schema says.
#[must_use]
pub fn is_custom(document: &Value) -> bool {
    let group = group(document);
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// The fields that a document declares. How the items of a list are known comes from a table for Kubernetes' own kinds, and
/// for others from `written`, the object's own account of its fields; a list of which neither knows anything is declared as
/// a whole.
#[must_use]
pub fn declared_by<'d>(document: &'d Value, written: &'d Declared<'d>) -> Declared<'d> {
    let Value::Object(members) = document else {
        return Declared::nothing();
    };
    let lists: &[_] = if is_custom(document) { &[] } else { &LISTS };
    let part = |name: &'d str, value, written: Option<&'d Declared<'d>>| {
        let declared = Declared::Document(Part { name, value, lists, written });
        (Cow::Borrowed(name), declared)
    };
    let is_secret = group(document).is_empty() && members.get("kind").is_some_and(|kind| kind == "Secret");
    let mut fields: BTreeMap<_, _> = members
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "status" | "metadata"))
        // The API server keeps it as `data`, and nothing under this name.
        .filter(|(name, _)| !(is_secret && *name == "stringData"))
        .map(|(name, value)| part(name, value, inner(Some(written), name)))
        .collect();
    if let Some(Value::Object(metadata)) = members.get("metadata") {
        let written = inner(Some(written), "metadata");
        let declared = metadata.iter().filter(|(name, _)| METADATA.contains(&name.as_str()));
        let declared = declared.map(|(name, value)| part(name, value, inner(written, name))).collect();
        fields.insert(Cow::Borrowed("metadata"), Declared::Fields(declared));
    }
    if let Some(Value::Object(text)) = members.get("stringData").filter(|_| is_secret) {
        let data = members.get("data").and_then(Value::as_object).into_iter().flatten();
        let data = data.map(|(name, value)| part(name, value, None));
        // What is given as text wins.
        let text = text.iter().map(|(name, value)| {
            let encoded = value.as_str().map(|value| Cow::Owned(Value::from(STANDARD.encode(value))));
            (Cow::Borrowed(name.as_str()), Declared::Leaf(encoded))
        });
        fields.insert(Cow::Borrowed("data"), Declared::Fields(data.chain(text).collect()));
    }
    Declared::Fields(fields)
}

/// A part of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part<'d> {
    /// The field that it is the value of.
    name: &'d str,
    value: &'d Value,
    /// What is known of lists by the names of their fields.
    lists: &'static [(&'static str, &'static [&'static str])],
    /// What the object's own account of its fields says of this part.
    written: Option<&'d Declared<'d>>,
}

impl<'d> Part<'d> {
    /// Whether it declares members.
    pub(super) fn is_object(&self) -> bool {
        self.value.is_object()
    }

    /// What it says of a member; nothing where it says null.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        let (name, value) = self.value.as_object()?.get_key_value(name)?;
        let written = inner(self.written, name);
        (!value.is_null()).then_some(Self { name, value, written, ..*self })
    }

    /// The members that it says something of.
    pub(super) fn names(&self) -> Vec<&'d str> {
        self.value.as_object().into_iter().flat_map(|members| members.keys()).map(String::as_str).collect()
    }

    /// What a value that is no object declares: a null nothing.
    pub(super) fn told(&self) -> Declared<'d> {
        match self.value {
            Value::Null => Declared::nothing(),
            Value::Array(items) => self.list(items),
            scalar => Declared::Leaf(Some(Cow::Borrowed(scalar))),
        }
    }

    fn list(&self, items: &'d [Value]) -> Declared<'d> {
        let known: &[(Key, Declared<'_>)] = match self.written {
            Some(Declared::Items(items)) => items,
            _ => &[],
        };
        let by_account = known.iter().find_map(|(key, _)| match key {
            Key::Members(members) => Some(By::Members(members.iter().map(|(name, _)| name.as_str()).collect())),
            Key::Value(_) => Some(By::Value),
            Key::Index(_) => None,
        });
        let by_table = || {
            let listed = self.lists.iter().filter(|(list, _)| *list == self.name).map(|(_, keys)| *keys);
            let first = |keys: &&[&str]| items.iter().all(|item| item.get(keys[0]).is_some());
            listed.into_iter().find(first).map(|keys| By::Members(keys.to_vec()))
        };
        let by_name = || (self.name == "finalizers").then_some(By::Value);
        // An empty list declares no item.
        if items.is_empty() {
            return Declared::Items(Vec::new());
        }
        let whole = || Declared::Leaf(Some(Cow::Borrowed(self.value)));
        let Some(by) = by_account.or_else(by_table).or_else(by_name) else {
            return whole();
        };
        let keyed = items.iter().map(|item| {
            let key = by.key(item)?;
            let written = known.iter().find(|(known, _)| *known == key).or(known.first()).map(|(_, written)| written);
            let declared = match &key {
                Key::Value(_) => Declared::Leaf(Some(Cow::Borrowed(item))),
                Key::Members(_) | Key::Index(_) => Declared::Document(Self { name: "", value: item, written, ..*self }),
            };
            Some((key, declared))
        });
        keyed.collect::<Option<Vec<_>>>().map_or_else(whole, Declared::Items)
    }
}

fn group(document: &Value) -> &str {
    document.get("apiVersion").and_then(Value::as_str).map(group_of).unwrap_or_default()
}

/// What an account says of a member. An account holds no parts of documents.
fn inner<'d>(written: Option<&'d Declared<'d>>, name: &str) -> Option<&'d Declared<'d>> {
    match written {
        Some(Declared::Fields(fields)) => fields.get(name),
        _ => None,
    }
}

/// How the items of a list are told apart.
enum By<'n> {
    Members(Vec<&'n str>),
    Value,
}

impl By<'_> {
    /// The key of an item; `None` for one that has none.
    fn key(&self, item: &Value) -> Option<Key> {
        match self {
            Self::Value => Some(Key::Value(item.clone())),
            Self::Members(names) => {
                let member = |name: &&str| {
                    let value = item.get(name).filter(|value| !value.is_null()).cloned();
                    let value = value.or_else(|| semantics::default_of(name).map(Value::from));
                    value.map(|value| ((*name).to_owned(), value))
                };
                let mut members: Vec<_> = names.iter().filter_map(member).collect();
                members.sort_unstable_by(|one, other| one.0.cmp(&other.0));
                (!members.is_empty()).then_some(Key::Members(members))
            }
        }
    }
}
