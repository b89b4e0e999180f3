//! The caBundles in Interlock's webhook configurations on the API server.

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
pub(crate) const CONFIGURATION: &str = "interlock";

/// The field manager of writes to the caBundles. It is removed from `managedFields` at once.
pub(crate) const FIELD_MANAGER: &str = "interlock-certificates";

/// The validating or the mutating configuration.
#[derive(Debug, Clone)]
pub(crate) struct WebhookConfiguration {
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

/// A change of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigurationChange {
    /// Adds CAs. Also removes expired certificates, and certificates that are not a CA.
    Add(CaBundle),
    /// Replaces all CAs.
    Set(CaBundle),
}

/// Reads the configurations that exist.
///
/// # Errors
/// When the API server does not answer, or denies the read.
pub(crate) async fn read(client: &Client) -> Result<Vec<WebhookConfiguration>, Error> {
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let (validating, mutating) =
        futures_util::future::try_join(validating.get_opt(CONFIGURATION), mutating.get_opt(CONFIGURATION)).await?;
    let validating = validating.map(|found| {
        let entries = found.webhooks.into_iter().flatten().map(|it| (it.name, it.client_config.ca_bundle));
        WebhookConfiguration::new(ConfigurationKind::Validating, found.metadata, entries)
    });
    let mutating = mutating.map(|found| {
        let entries = found.webhooks.into_iter().flatten().map(|it| (it.name, it.client_config.ca_bundle));
        WebhookConfiguration::new(ConfigurationKind::Mutating, found.metadata, entries)
    });
    Ok(validating.into_iter().chain(mutating).collect())
}

/// The caBundle of every entry.
#[must_use]
pub(crate) fn bundles(configurations: &[WebhookConfiguration]) -> Vec<CaBundle> {
    configurations.iter().flat_map(|found| &found.entries).map(|entry| entry.bundle.clone()).collect()
}

impl WebhookConfiguration {
    fn new(
        kind: ConfigurationKind,
        metadata: ObjectMeta,
        entries: impl Iterator<Item = (String, Option<ByteString>)>,
    ) -> Self {
        let entries = entries.map(|(name, bundle)| WebhookEntry {
            name,
            bundle: bundle.map(|text| CaBundle::read(&text.0)).unwrap_or_default(),
        });
        Self {
            kind,
            resource_version: metadata.resource_version.unwrap_or_default(),
            managers: metadata.managed_fields.unwrap_or_default(),
            entries: entries.collect(),
        }
    }

    /// The kind, as kubectl spells it.
    #[must_use]
    pub(crate) fn kind(&self) -> &'static str {
        match self.kind {
            ConfigurationKind::Validating => "validatingwebhookconfiguration",
            ConfigurationKind::Mutating => "mutatingwebhookconfiguration",
        }
    }

    /// The name and the caBundle of each entry.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &CaBundle)> {
        self.entries.iter().map(|entry| (entry.name.as_str(), &entry.bundle))
    }

    /// Changes the configuration, unless the change has no effect.
    ///
    /// # Errors
    /// A conflict if the configuration has changed since it was read, or any other error of a write.
    pub(crate) async fn change(
        &self,
        client: &Client,
        change: &ConfigurationChange,
        now: Timestamp,
    ) -> Result<(), Error> {
        if self.entries.iter().all(|entry| change.is_done(&entry.bundle)) {
            return Ok(());
        }
        let changed = self.entries.iter().map(|entry| {
            let bundle = change.changed(&entry.bundle, now);
            json!({"name": entry.name, "clientConfig": {"caBundle": STANDARD.encode(bundle.pem())}})
        });
        self.apply(client, changed.collect()).await
    }

    /// Applies all entries, because an apply removes entries that it omits. The apply is only for the version that was read, so that an
    /// entry which was removed in the meantime is not created again.
    async fn apply(&self, client: &Client, webhooks: Vec<Value>) -> Result<(), Error> {
        let patch = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": self.kind.name(),
            "metadata": {"name": CONFIGURATION, "resourceVersion": self.resource_version},
            "webhooks": webhooks,
        });
        self.patch(client, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(patch)).await
    }

    /// Gives up the ownership of the applied fields. Otherwise, when an installer stops applying an entry, the API server would keep our
    /// part of the entry and reject the configuration because of this remnant.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub(crate) async fn disown(&self, client: &Client) -> Result<(), Error> {
        let others = self.managers.iter().filter(|entry| entry.manager.as_deref() != Some(FIELD_MANAGER));
        let others: Vec<_> = others.collect();
        // The API server ignores an empty list.
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

impl ConfigurationChange {
    fn is_done(&self, bundle: &CaBundle) -> bool {
        match self {
            Self::Add(required) => bundle.has_all(required),
            Self::Set(wanted) => bundle == wanted,
        }
    }

    fn changed(&self, bundle: &CaBundle, now: Timestamp) -> CaBundle {
        match self {
            Self::Add(required) => bundle.clone().unexpired(now).with(required),
            Self::Set(wanted) => wanted.clone(),
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
