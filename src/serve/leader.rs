//! What one replica does for all: a Lease says which. Whatever it does is safe under two of them.

mod notes;
mod state;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use kube::Client;
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::pki::managed::Rotator;
use super::report::metrics::Metrics;
use super::report::openreports::Reports;
use crate::engine::policy::Policies;
use crate::inspect::scan;
use crate::world::World;
use crate::world::kubernetes::{Losses, Reach};

/// The Lease, in Interlock's own namespace.
pub const LEASE: &str = "interlock-leader";

/// How long a leader may be silent before another takes over, in seconds, and how long before the end it renews.
const DURATION: u64 = 15;
const GRACE: u64 = 5;

/// Between two attempts to reach a Lease that cannot be had.
const PAUSE: Duration = Duration::from_secs(5);

/// How long the end of the process waits for the Lease to be given back, so that the next leader need not wait.
const FAREWELL: Duration = Duration::from_secs(2);

/// One replica's candidacy.
pub struct Candidate {
    /// Of the API server.
    pub client: Client,
    /// Of the API server, for what takes many calls at once.
    pub for_scans: Client,
    /// Interlock's own namespace.
    pub namespace: String,
    /// Tells the replicas apart.
    pub identity: String,
    /// Answers what is to be known before something is written.
    pub world: Arc<dyn World>,
    /// What there is to do.
    pub losses: Arc<Losses>,
    /// What there is to report, where reports are wanted.
    pub reports: Option<Arc<Reports>>,
    /// Where releases are scanned.
    pub reach: Reach,
    /// Who rotates the CA, where it is ours.
    pub rotator: Option<Arc<Rotator>>,
    /// By which releases are scanned.
    pub policies: Arc<ArcSwap<Policies>>,
    /// Where what a scan finds is counted.
    pub metrics: Arc<Metrics>,
}

/// A candidacy on its way. It ends when this is dropped; [`Self::resign`] gives the Lease back too.
#[must_use]
pub struct Candidacy {
    task: JoinHandle<()>,
    leaving: watch::Sender<bool>,
}

impl Candidate {
    /// Stands as long as the process runs, and leads whenever the Lease is held.
    pub fn stand(self) -> Candidacy {
        let (leaving, mut left) = watch::channel(false);
        let task = tokio::spawn(async move {
            let leave = async move { _ = left.wait_for(|left| *left).await };
            self.run(leave).await;
        });
        Candidacy { task, leaving }
    }

    async fn run(&self, leave: impl Future<Output = ()>) {
        let mut leave = std::pin::pin!(leave);
        let manager = tokio::select! {
            () = &mut leave => return,
            manager = self.manager() => manager,
        };
        let (mut leads, renewals) = manager.watch().await;
        tokio::select! {
            () = &mut leave => {}
            () = self.serve(&mut leads) => {}
        }
        // The Lease is given back when nobody listens any more.
        drop(leads);
        _ = renewals.await;
    }

    /// A manager of the Lease, which is made where there is none: needs an API server that answers.
    async fn manager(&self) -> LeaseManager {
        let mut told = false;
        loop {
            let builder = LeaseManagerBuilder::new(self.client.clone(), LEASE)
                .with_namespace(&self.namespace)
                .with_identity(&self.identity)
                .with_field_manager("interlock")
                .with_duration(DURATION)
                .with_grace(GRACE);
            match builder.build().await {
                Ok(manager) => return manager,
                Err(error) if !told => {
                    told = true;
                    let namespace = &self.namespace;
                    tracing::warn!(%namespace, lease = LEASE, %error, "no Lease, so this replica cannot lead for now");
                }
                Err(_) => {}
            }
            sleep(PAUSE).await;
        }
    }

    /// Works whenever this replica leads; ends when the renewals do.
    async fn serve(&self, leads: &mut watch::Receiver<bool>) {
        while leads.wait_for(|leads| *leads).await.is_ok() {
            tracing::info!(identity = %self.identity, "leading");
            self.metrics.leads(true);
            tokio::select! {
                lost = leads.wait_for(|leads| !leads) => {
                    tracing::info!(identity = %self.identity, "leading no more");
                    self.metrics.leads(false);
                    if lost.is_err() {
                        return;
                    }
                }
                () = self.work() => {}
            }
            self.metrics.scans().stopped();
            if let Some(reports) = &self.reports {
                reports.stopped();
            }
        }
    }

    /// All that a leader does, for ever.
    async fn work(&self) {
        let notes = notes::write_all(&self.client, self.world.as_ref(), &self.losses);
        let reports = async {
            if let Some(reports) = &self.reports {
                reports.keep().await;
            }
        };
        let scans = scan::background(&self.for_scans, &self.policies, &self.reach, scan::SCAN_INTERVAL, |report| {
            self.metrics.scans().scanned(report);
            if let Some(reports) = &self.reports {
                reports.state(state::entries(report), report.is_whole());
            }
        });
        let rotations = async {
            if let Some(rotator) = &self.rotator {
                rotator.lead().await;
            }
        };
        tokio::join!(notes, reports, scans, rotations);
    }
}

impl Candidacy {
    /// Ends it, and gives the Lease back if the API server answers in time.
    pub async fn resign(mut self) {
        _ = self.leaving.send(true);
        _ = timeout(FAREWELL, &mut self.task).await;
    }
}

impl Drop for Candidacy {
    fn drop(&mut self) {
        self.task.abort();
    }
}
