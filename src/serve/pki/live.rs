//! The caBundles of our webhook configurations, as the API server has them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::{Api, ObjectMeta, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use super::bundle::CaBundle;

/// The name of both configurations.
pub const CONFIGURATION: &str = "interlock";

/// Under which name caBundles are written. It stays in `managedFields` for a moment only.
pub const FIELD_MANAGER: &str = "interlock-certificates";

/// One of the two configurations.
#[derive(Debug, Clone)]
pub struct WebhookConfiguration {
    kind: ConfigurationKind,
    resource_version: String,
    managers: Vec<ManagedFieldsEntry>,
    entries: Vec<WebhookEntry>,
}

#[derive(Debug, Clone)]
struct WebhookEntry {
    name: String,
    bundle: CaBundle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConfigurationKind {
    Validating,
    Mutating,
}

/// What is to become of the caBundles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleChange {
    /// These are trusted too. What has expired or never was a CA goes on this occasion.
    Add(CaBundle),
    /// These are trusted, and nobody else.
    Set(CaBundle),
}

/// Reads those of the two that exist.
///
/// # Errors
/// When the API server does not answer, or forbids it.
pub async fn read(client: &Client) -> Result<Vec<WebhookConfiguration>, Error> {
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let (validating, mutating) =
        futures_util::future::try_join(validating.get_opt(CONFIGURATION), mutating.get_opt(CONFIGURATION)).await?;
    let validating = validating.map(|found| {
        let entries =
            found.webhooks.into_iter().flatten().map(|it| WebhookEntry::new(it.name, it.client_config.ca_bundle));
        WebhookConfiguration::new(ConfigurationKind::Validating, found.metadata, entries.collect())
    });
    let mutating = mutating.map(|found| {
        let entries =
            found.webhooks.into_iter().flatten().map(|it| WebhookEntry::new(it.name, it.client_config.ca_bundle));
        WebhookConfiguration::new(ConfigurationKind::Mutating, found.metadata, entries.collect())
    });
    Ok(validating.into_iter().chain(mutating).collect())
}

/// The caBundle of every entry.
#[must_use]
pub fn bundles(configurations: &[WebhookConfiguration]) -> Vec<CaBundle> {
    configurations.iter().flat_map(|found| &found.entries).map(|entry| entry.bundle.clone()).collect()
}

impl WebhookConfiguration {
    fn new(kind: ConfigurationKind, metadata: ObjectMeta, entries: Vec<WebhookEntry>) -> Self {
        let resource_version = metadata.resource_version.unwrap_or_default();
        Self { kind, resource_version, managers: metadata.managed_fields.unwrap_or_default(), entries }
    }

    /// Its kind, as kubectl takes it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.kind {
            ConfigurationKind::Validating => "validatingwebhookconfiguration",
            ConfigurationKind::Mutating => "mutatingwebhookconfiguration",
        }
    }

    /// The name and the caBundle of each entry.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &CaBundle)> {
        self.entries.iter().map(|entry| (entry.name.as_str(), &entry.bundle))
    }

    /// Changes its caBundles, unless they are as they should be.
    ///
    /// # Errors
    /// A conflict when the configuration was changed since it was read, and whatever else a write can end in.
    pub async fn change(&self, client: &Client, change: &BundleChange, now: Timestamp) -> Result<(), Error> {
        let done = |entry: &WebhookEntry| match change {
            BundleChange::Add(required) => entry.bundle.has_all(required),
            BundleChange::Set(bundle) => entry.bundle == *bundle,
        };
        if self.entries.iter().all(done) {
            return Ok(());
        }
        let changed = |entry: &WebhookEntry| match change {
            BundleChange::Add(required) => entry.bundle.clone().unexpired(now).with(required),
            BundleChange::Set(bundle) => bundle.clone(),
        };
        self.apply(client, changed).await
    }

    /// Applies the names and caBundles of all entries, for what is left out would be taken away. Only over what was read:
    /// an entry that somebody removed meanwhile is not made anew.
    async fn apply(&self, client: &Client, bundle: impl Fn(&WebhookEntry) -> CaBundle) -> Result<(), Error> {
        let webhooks: Vec<_> = self
            .entries
            .iter()
            .map(|entry| {
                let pem = bundle(entry).pem();
                json!({"name": entry.name, "clientConfig": {"caBundle": STANDARD.encode(pem)}})
            })
            .collect();
        let patch = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": self.kind.name(),
            "metadata": {"name": CONFIGURATION, "resourceVersion": self.resource_version},
            "webhooks": webhooks,
        });
        self.patch(client, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(patch)).await
    }

    /// Gives the caBundles up after they were applied, so that they belong to nobody: of an entry that an installer applies no
    /// more, the API server would keep what is ours, and then refuse the whole for that remnant.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub async fn disown(&self, client: &Client) -> Result<(), Error> {
        let ours = |entry: &&ManagedFieldsEntry| entry.manager.as_deref() == Some(FIELD_MANAGER);
        let others: Vec<_> = self.managers.iter().filter(|entry| !ours(entry)).collect();
        // An empty list would change nothing.
        if others.len() == self.managers.len() || others.is_empty() {
            return Ok(());
        }
        let patch = json!({"metadata": {"resourceVersion": self.resource_version, "managedFields": others}});
        self.patch(client, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    async fn patch(&self, client: &Client, params: &PatchParams, patch: &Patch<Value>) -> Result<(), Error> {
        let client = client.clone();
        match self.kind {
            ConfigurationKind::Validating => {
                let api: Api<ValidatingWebhookConfiguration> = Api::all(client);
                api.patch(CONFIGURATION, params, patch).await.map(drop)
            }
            ConfigurationKind::Mutating => {
                let api: Api<MutatingWebhookConfiguration> = Api::all(client);
                api.patch(CONFIGURATION, params, patch).await.map(drop)
            }
        }
    }
}

impl ConfigurationKind {
    fn name(self) -> &'static str {
        match self {
            Self::Validating => "ValidatingWebhookConfiguration",
            Self::Mutating => "MutatingWebhookConfiguration",
        }
    }
}

impl WebhookEntry {
    fn new(name: String, text: Option<ByteString>) -> Self {
        Self { name, bundle: text.map(|text| CaBundle::read(&text.0)).unwrap_or_default() }
    }
}
