//! A configured server, and its background work.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::certificates::ServingCertificates;
use super::shared::Shared;
use crate::serve::background::BackgroundTask;
use crate::serve::https::{self, Bound, KnownPeers, Limits, Setup, Signals, Stopped};
use crate::serve::page::OverviewPage;
use crate::serve::webhook::Webhook;
use crate::world::kubernetes::Watches;

pub(super) struct Running {
    pub(super) webhook: Webhook,
    pub(super) certificates: ServingCertificates,
    pub(super) page: Option<OverviewPage>,
    pub(super) peers: Arc<KnownPeers>,
    /// `None` when standalone.
    pub(super) background: Option<Background>,
}

/// The background work in a cluster.
pub(super) struct Background {
    /// End on drop.
    pub(super) watches: Watches,
    pub(super) candidacy: BackgroundTask,
    pub(super) events: BackgroundTask,
}

impl Running {
    /// The file of the CA that signed a development certificate.
    pub(super) fn ca_file(&self) -> Option<&Path> {
        self.certificates.ca_file.as_deref()
    }

    /// Serves until a signal arrives, then ends the background work.
    pub(super) async fn serve(
        self,
        bound: Bound,
        shared: Shared,
        limits: Limits,
        signals: Signals,
    ) -> io::Result<Stopped> {
        let Self { webhook, certificates, page, peers, background } = self;
        let ServingCertificates { certificates, clients, .. } = certificates;
        let Shared { metrics, readiness, cluster_name, .. } = shared;
        let registry = metrics.registry(&readiness, cluster_name.as_ref());
        let metrics = metrics.https;
        let setup = Setup { certificates, clients, metrics, registry, page, readiness, peers, limits };
        let stopped = https::run(bound, Arc::new(webhook), setup, signals).await;
        if let Some(Background { watches, candidacy, events }) = background {
            tokio::join!(candidacy.finish(), events.finish());
            drop(watches);
        }
        stopped
    }
}
