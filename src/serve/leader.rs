//! Work that one replica does for all. A Lease decides which replica leads. Two replicas may do the work at once without harm.

mod closing;
mod election;
mod interruptions;
pub mod metrics;
mod past_objects;
mod protections;
mod scan_findings;

use std::sync::Arc;

use arc_swap::ArcSwap;
use interlock_engine::policy::Policies;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::Api;
use tokio::sync::watch;

use super::background::BackgroundTask;
use super::pki::managed::Rotator;
use super::report::openreports::Reports;
use crate::inspect::scan;
use crate::world::World;
use crate::world::kubernetes::clock::ServerClock;
use crate::world::kubernetes::{Cluster, DeletedPendingRecords, Reach};
use closing::Closing;
use election::Election;
use metrics::LeaderMetrics;

/// The name of the Lease, in Interlock's own namespace.
pub const LEASE: &str = "interlock-leader";

/// The annotation of the Lease with the digest of the leader's policies in force.
const POLICIES: &str = "interlock.dev/policies";

/// The digest of the policies in force, as reported by the leader of an installation.
///
/// # Errors
/// When the API server does not answer, or denies the read.
pub(crate) async fn reported_policies(client: &Client, namespace: &str) -> Result<Option<String>, kube::Error> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let annotations = leases.get_opt(LEASE).await?.and_then(|lease| lease.metadata.annotations);
    Ok(annotations.and_then(|mut annotations| annotations.remove(POLICIES)))
}

/// A replica that can become the leader.
pub struct Candidate {
    pub client: Client,
    /// A separate client for many requests.
    pub for_scans: Client,
    /// A separate client for probes, so that a scan does not delay them.
    pub for_closing: Client,
    pub namespace: String,
    /// Unique among the replicas.
    pub identity: String,
    /// Answers the queries that precede a write.
    pub world: Arc<dyn World>,
    /// Provides the overrides and Freezes, to delete ended ones.
    pub cluster: Arc<Cluster>,
    /// The deleted pending records, whose interruption must be noted.
    pub deleted_pending: Arc<DeletedPendingRecords>,
    /// `None` if reports are disabled.
    pub reports: Option<Arc<Reports>>,
    /// The namespaces to scan.
    pub reach: Reach,
    /// Rotates the CA, if it is managed.
    pub rotator: Option<Arc<Rotator>>,
    /// The policies for scans.
    pub policies: Arc<ArcSwap<Policies>>,
    /// The clock for the ages of operations in scans.
    pub clock: Arc<ServerClock>,
    pub metrics: Arc<LeaderMetrics>,
}

impl Candidate {
    /// Runs as long as the process, and leads while this replica holds the Lease. At the end the Lease is released, so that the next leader
    /// need not wait for its expiry.
    pub fn stand(self) -> BackgroundTask {
        BackgroundTask::start(|mut left| async move {
            self.run(async move { _ = left.wait_for(|left| *left).await }).await;
        })
    }

    async fn run(&self, leave: impl Future<Output = ()>) {
        let mut leave = std::pin::pin!(leave);
        let (sender, mut leads) = watch::channel(false);
        // A task of its own, so that the work does not delay a renewal.
        let election = tokio::spawn(self.election().stand(sender));
        tokio::select! {
            () = &mut leave => {}
            () = self.serve(&mut leads) => {}
        }
        // The election releases the Lease once this receiver is dropped.
        drop(leads);
        _ = election.await;
    }

    fn election(&self) -> Election {
        Election::new(self.client.clone(), &self.namespace, &self.identity, Arc::clone(&self.policies))
    }

    /// Does the work while this replica leads. Ends when the election ends.
    async fn serve(&self, leads: &mut watch::Receiver<bool>) {
        while leads.wait_for(|leads| *leads).await.is_ok() {
            tracing::info!(identity = %self.identity, "leading");
            self.metrics.leader.set(1);
            tokio::select! {
                lost = leads.wait_for(|leads| !leads) => {
                    tracing::info!(identity = %self.identity, "no longer leading");
                    self.metrics.leader.set(0);
                    if lost.is_err() {
                        return;
                    }
                }
                () = self.work() => {}
            }
            self.metrics.scan_findings.clear();
            self.metrics.registration_proven.clear();
            if let Some(reports) = &self.reports {
                reports.stopped();
            }
        }
    }

    /// All work of a leader, forever.
    async fn work(&self) {
        let notes = interruptions::write_all(&self.client, self.world.as_ref(), &self.deleted_pending);
        let reports = async {
            if let Some(reports) = &self.reports {
                reports.run().await;
            }
        };
        let scans = self.scans();
        let rotations = async {
            if let Some(rotator) = &self.rotator {
                rotator.lead().await;
            }
        };
        let past = past_objects::delete_all(&self.for_scans, &self.cluster, &self.policies);
        let protections = protections::stamp_all(&self.for_scans, &self.cluster);
        let closing = Closing {
            client: &self.for_closing,
            namespace: &self.namespace,
            identity: &self.identity,
            metrics: &self.metrics,
        };
        tokio::join!(notes, reports, scans, rotations, past, protections, closing.run());
    }

    /// Scans again and again, forever.
    async fn scans(&self) {
        let source = scan::ScanSource {
            client: &self.for_scans,
            policies: &self.policies,
            reach: &self.reach,
            clock: &self.clock,
        };
        scan::background(source, scan::SCAN_INTERVAL, |report| {
            self.metrics.set_findings(report);
            if let Some(reports) = &self.reports {
                reports.record_scan(scan_findings::entries(report), report.is_complete());
            }
        })
        .await;
    }
}
