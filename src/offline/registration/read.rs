//! Reads a registration from YAML or JSON.

use std::sync::Arc;

use cel::Env;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhook;
use serde::Deserialize;
use serde_json::Value;

use super::Registration;
use super::bad::{BadRegistration, KIND, OWN_ENTRIES};
use super::entry::Entry;

#[derive(Deserialize)]
struct Configuration {
    #[serde(default)]
    webhooks: Vec<ValidatingWebhook>,
}

impl Registration {
    /// Reads the ValidatingWebhookConfigurations among the documents of a file, or among the items of a list.
    ///
    /// # Errors
    /// The text has no entries of Interlock, or has an entry that no API server accepts.
    pub(crate) fn parse(text: &str) -> Result<Self, BadRegistration> {
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(text).map_err(|error| BadRegistration::Syntax(error.to_string()))?;
        let env = Arc::new(Env::stdlib());
        let mut entries = Vec::new();
        for configuration in documents.into_iter().flat_map(items).filter(|it| it["kind"] == KIND) {
            let configuration: Configuration = serde_json::from_value(configuration)?;
            for webhook in configuration.webhooks.into_iter().filter(|it| it.name.ends_with(OWN_ENTRIES)) {
                entries.push(Entry::of(webhook, &env)?);
            }
        }
        if entries.is_empty() { Err(BadRegistration::NoEntries) } else { Ok(Self { entries }) }
    }
}

/// The items of a List, or the document itself.
fn items(mut document: Value) -> Vec<Value> {
    match document["items"].take() {
        Value::Array(items) => items,
        _ => vec![document],
    }
}
