//! The labels of Namespaces: a copy of all labels, and live reads for commands.

use std::sync::{Arc, OnceLock};

use interlock_engine::policy::{Labels, NamespaceLabels};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, ListParams};

use super::watch::Feed;
use crate::log_limit::CLIENT_LOG_LIMIT;

/// The maximum size of a Namespace's labels, in bytes. All labels are in memory, and one Namespace may have a megabyte of them.
const MAX_LABEL_BYTES: usize = 16 << 10;

/// The labels of every Namespace.
#[derive(Debug, Default)]
pub(super) struct NamespacesByName {
    labels: NamespaceLabels,
    /// The same labels, computed on demand after a change.
    shared: OnceLock<Arc<NamespaceLabels>>,
}

impl NamespacesByName {
    /// All labels. The value stays the same until a label changes.
    pub(super) fn all(&self) -> Arc<NamespaceLabels> {
        Arc::clone(self.shared.get_or_init(|| Arc::new(self.labels.clone())))
    }
}

impl Feed for NamespacesByName {
    fn fresh(&self) -> Self {
        Self::default()
    }

    fn apply(&mut self, metadata: &ObjectMeta) {
        let Some((name, labels)) = labels_of(metadata) else { return };
        if self.labels.get(name).is_some_and(|known| **known == labels) {
            return;
        }
        self.labels.insert(name.to_owned(), Arc::new(labels));
        self.shared = OnceLock::new();
    }

    fn delete(&mut self, metadata: &ObjectMeta) {
        if metadata.name.as_ref().is_some_and(|name| self.labels.remove(name).is_some()) {
            self.shared = OnceLock::new();
        }
    }

    fn follow(&self, old: &Self) {
        if self.labels == old.labels {
            // Set once, before this copy is read.
            _ = self.shared.set(old.all());
        }
    }
}

/// The name and the labels of a Namespace.
fn labels_of(metadata: &ObjectMeta) -> Option<(&str, Labels)> {
    let (name, labels) = (metadata.name.as_deref()?, metadata.labels.clone().unwrap_or_default());
    if labels.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() <= MAX_LABEL_BYTES {
        return Some((name, labels));
    }
    if let Some(suppressed) = CLIENT_LOG_LIMIT.admit("labels of a Namespace") {
        tracing::warn!(
            name,
            suppressed,
            "a Namespace has labels of more than {MAX_LABEL_BYTES} bytes; no selector selects it"
        );
    }
    Some((name, Labels::new()))
}

/// The current labels of every Namespace.
///
/// # Errors
/// When the API server does not answer, or denies the read.
pub(crate) async fn list(client: &Client) -> kube::Result<NamespaceLabels> {
    let api: Api<Namespace> = Api::all(client.clone());
    let found = api.list_metadata(&ListParams::default()).await?.items;
    let labels = found.iter().filter_map(|object| labels_of(&object.metadata));
    Ok(labels.map(|(name, labels)| (name.to_owned(), Arc::new(labels))).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn namespace(name: &str, labels: &serde_json::Value) -> ObjectMeta {
        serde_json::from_value(json!({"name": name, "labels": labels})).unwrap()
    }

    #[test]
    fn the_copy_of_labels_stays_the_same_until_a_change() {
        let mut namespaces = NamespacesByName::default();
        namespaces.apply(&namespace("shop", &json!({"env": "prod"})));
        namespaces.apply(&namespace("bank", &json!(null)));
        let first = namespaces.all();
        namespaces.apply(&namespace("shop", &json!({"env": "prod"})));
        assert!(Arc::ptr_eq(&first, &namespaces.all()), "nothing has changed");
        let listed = namespaces.fresh();
        listed.follow(&namespaces);
        assert!(!Arc::ptr_eq(&first, &listed.all()), "an empty list is another one");
        let mut listed = namespaces.fresh();
        listed.apply(&namespace("bank", &json!(null)));
        listed.apply(&namespace("shop", &json!({"env": "prod"})));
        listed.follow(&namespaces);
        assert!(Arc::ptr_eq(&first, &listed.all()), "a new list says the same");
        namespaces.apply(&namespace("shop", &json!({"env": "dev"})));
        assert_eq!(namespaces.all()["shop"]["env"], "dev");
        namespaces.delete(&namespace("shop", &json!(null)));
        assert_eq!(namespaces.all().keys().collect::<Vec<_>>(), ["bank"]);
    }

    #[test]
    fn oversized_labels_are_not_kept() {
        let mut namespaces = NamespacesByName::default();
        let many: serde_json::Map<_, _> =
            (0..1_000).map(|number| (format!("label-number-{number}"), json!("x"))).collect();
        namespaces.apply(&namespace("evil", &many.into()));
        assert!(namespaces.all()["evil"].is_empty());
    }
}
