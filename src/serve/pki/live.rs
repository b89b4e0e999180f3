//! The caBundles in Interlock's webhook configurations on the API server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::try_join_all;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use super::bundle::CaBundle;
use crate::inspect::arrival::{Half, Registration};

pub(crate) use crate::inspect::arrival::CONFIGURATION;

/// The field manager of writes to the caBundles. It is removed from `managedFields` at once.
pub(crate) const FIELD_MANAGER: &str = "interlock-certificates";

/// The validating or the mutating configuration.
#[derive(Debug, Clone)]
pub(crate) struct WebhookConfiguration {
    registration: Registration,
    /// The name and the caBundle of each entry.
    entries: Vec<(String, CaBundle)>,
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
    let found = try_join_all(Half::ALL.map(|half| Registration::read(client, half))).await?;
    Ok(found.into_iter().flatten().map(WebhookConfiguration::of).collect())
}

/// The caBundle of every entry.
#[must_use]
pub(crate) fn bundles(configurations: &[WebhookConfiguration]) -> Vec<CaBundle> {
    configurations.iter().flat_map(|found| &found.entries).map(|(_, bundle)| bundle.clone()).collect()
}

impl WebhookConfiguration {
    fn of(registration: Registration) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = registration.entries().map(|entry| {
            let bundle = STANDARD.decode(text(&entry["clientConfig"]["caBundle"])).unwrap_or_default();
            (text(&entry["name"]), CaBundle::read(&bundle))
        });
        Self { entries: entries.collect(), registration }
    }

    /// The kind, as kubectl spells it.
    #[must_use]
    pub(crate) fn kind(&self) -> String {
        self.registration.half().kind().to_ascii_lowercase()
    }

    /// The name and the caBundle of each entry.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &CaBundle)> {
        self.entries.iter().map(|(name, bundle)| (name.as_str(), bundle))
    }

    /// Changes the configuration, unless the change has no effect. Applies all entries, because an apply removes entries that it omits.
    /// The apply is only for the version that was read, so that an entry which was removed in the meantime is not created again.
    ///
    /// # Errors
    /// A conflict if the configuration has changed since it was read, or any other error of a write.
    pub(crate) async fn change(
        &self,
        client: &Client,
        change: &ConfigurationChange,
        now: Timestamp,
    ) -> Result<(), Error> {
        if self.entries.iter().all(|(_, bundle)| change.is_done(bundle)) {
            return Ok(());
        }
        let webhooks = self.entries.iter().map(|(name, bundle)| {
            let bundle = change.changed(bundle, now);
            json!({"name": name, "clientConfig": {"caBundle": STANDARD.encode(bundle.pem())}})
        });
        let patch = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": self.registration.half().kind(),
            "metadata": {"name": CONFIGURATION, "resourceVersion": self.registration.resource_version()},
            "webhooks": webhooks.collect::<Vec<_>>(),
        });
        let params = PatchParams::apply(FIELD_MANAGER).force();
        self.registration.patch(client, &params, &Patch::Apply(patch)).await.map(drop)
    }

    /// Gives up the ownership of the applied fields, see [`Registration::disown`].
    ///
    /// # Errors
    /// As [`Self::change`].
    pub(crate) async fn disown(&self, client: &Client) -> Result<(), Error> {
        self.registration.disown(client, FIELD_MANAGER).await
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
