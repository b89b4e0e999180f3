//! The observations of one pass on the API server, and the watches that trigger a pass.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};

use super::rotator::Rotator;
use crate::serve::pki::bundle::CaBundle;
use crate::serve::pki::live::WebhookConfiguration;
use crate::serve::pki::rotation::{Leaf, StoredCa};
use crate::world::metadata_only::MetadataOnly;

/// All objects that one pass reads.
pub(super) struct Observation {
    pub(super) configurations: Vec<WebhookConfiguration>,
    pub(super) secret: Option<Secret>,
    pub(super) stored: StoredCa,
    /// The caBundle of every entry.
    pub(super) live: Vec<CaBundle>,
    pub(super) now: Timestamp,
}

impl Observation {
    /// Whether there is a leaf and every entry trusts it. False if there are no entries.
    pub(super) fn trusts(&self, leaf: Option<&Leaf>) -> bool {
        leaf.is_some_and(|leaf| !self.live.is_empty() && self.live.iter().all(|entry| entry.has(&leaf.issuer)))
    }

    /// The state in one line.
    pub(super) fn state(&self, leaf: Option<&Leaf>) -> String {
        let secret = match &self.stored {
            StoredCa::Absent => "there is no Secret with a CA",
            StoredCa::Unusable(_) => "the Secret with the CA cannot be used",
            StoredCa::Good(cas) if cas.next.is_some() => "a rotation of the CA is in progress",
            StoredCa::Good(_) => "managed",
        };
        let Some(leaf) = leaf else {
            return format!("{secret}; nothing is served yet");
        };
        let trusting = self.live.iter().filter(|entry| entry.has(&leaf.issuer)).count();
        let until = leaf.not_after;
        match self.live.len() {
            0 => format!("{secret}; served until {until:.0}; there is no webhook configuration named interlock"),
            all => format!("{secret}; served until {until:.0}; {trusting} of {all} entries trust it"),
        }
    }
}

/// Wakes the loop whenever an object changes, forever. The regular check finds changes that a failed watch misses.
pub(super) async fn wake(api: Api<MetadataOnly>, name: &'static str, rotator: Arc<Rotator>) {
    let only = Config::default().fields(&format!("metadata.name={name}"));
    let resource = api.resource_url().to_owned();
    let mut events = pin!(watcher(api, only).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(_) => rotator.wake(),
            Err(error) => tracing::debug!(resource, %error, "a watch failed; looking once a minute"),
        }
    }
}
