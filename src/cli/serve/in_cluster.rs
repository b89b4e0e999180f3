//! The webhook in a cluster: caches, certificates, and the work of the leader.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::ensure;
use arc_swap::ArcSwap;
use interlock_engine::policy::Policies;
use kube::{Client, Config};
use tokio::time::sleep;

use super::arguments::Arguments;
use super::certificates::CertificateCluster;
use super::clients::ApiClients;
use super::policies::PolicySource;
use super::running::{Background, Running};
use super::shared::{Shared, traced};
use crate::judge::Judge;
use crate::readiness::{Gate, Readiness};
use crate::serve::callers;
use crate::serve::https::KnownPeers;
use crate::serve::leader::Candidate;
use crate::serve::page::{
    CarriedOperationsList, ClusterSources, HistoryReader, OverviewPage, PageSource, ReplicaList, Reported,
};
use crate::serve::report::metrics::ReportMetrics;
use crate::serve::report::namespace_labels::NamespaceLabels;
use crate::serve::report::openreports::{ReportSettings, Reports};
use crate::serve::report::{Reporter, events};
use crate::serve::webhook::Webhook;
use crate::world::kubernetes::clock::{self, ServerClock};
use crate::world::kubernetes::{Cluster, Reach, identity, server_version};

/// The interval at which the metric of overrides is updated, because overrides expire without an event.
const OVERRIDE_COUNT_INTERVAL: Duration = Duration::from_secs(15);

pub(super) fn in_cluster(
    arguments: &Arguments,
    config: Config,
    PolicySource { policies, directory }: PolicySource,
    shared: &Shared,
) -> anyhow::Result<Running> {
    ensure!(
        arguments.overrides.is_none(),
        "--overrides is for a standalone server. In a cluster use `interlock override`"
    );
    let Shared { decodes, metrics, readiness, cluster_name } = shared;
    let clients = ApiClients::new(&config)?;
    let reach = Reach::only(arguments.namespaces.iter().cloned());
    let world = world(&clients, shared, &reach, &arguments.namespace);
    let watches = world.watch(&clients.watches, readiness, gate_of_labels(&policies, readiness));
    let cluster =
        CertificateCluster { client: clients.certificates, watches: &clients.watches, namespace: &arguments.namespace };
    let certificates = arguments.certificates.load(Some(cluster), &metrics.certificates, readiness)?;
    let identity = replica_identity();
    let own_user = own_user(&clients.reviews, readiness);
    tokio::spawn(server_version::warn_if_too_old(clients.reviews.clone()));
    let clock = Arc::<ServerClock>::default();
    tokio::spawn(clock::follow(clients.reviews.clone(), clock.clone(), readiness.gate("the API server's clock")));
    let judge = Judge::new(policies, traced(world.clone()), decodes.clone()).with_own_user(own_user);
    directory.follow(&judge, shared);
    let labels = Arc::new(NamespaceLabels::new(clients.reports.clone(), judge.policies()));
    let writer = events::Writer { instance: identity.clone(), cluster: cluster_name.clone() };
    let (queue, events) =
        events::start(clients.reports.clone(), writer, world.clone(), metrics.reports.clone(), labels.clone());
    let report_settings = arguments.reports.settings(&arguments.namespace, &reach, cluster_name.as_ref());
    let reports = report_settings.clone().map(|settings| {
        let (client, watches) = (clients.reports.clone(), clients.watches.clone());
        Arc::new(Reports::new(client, watches, world.clone(), metrics.reports.clone(), labels, settings))
    });
    tokio::spawn(count_overrides(world.clone(), judge.policies(), clock.clone(), metrics.reports.clone()));
    let refusals = arguments.page.then(Arc::default);
    let page = refusals.clone().map(|refusals| {
        let sources = sources_of_page(&clients.reports, arguments, &reach, report_settings, &identity);
        let (world, policies, clock) = (world.clone(), judge.policies(), clock.clone());
        let (cluster_name, cluster) = (cluster_name.clone(), Some(sources));
        OverviewPage::new(PageSource { world, policies, clock, refusals, cluster_name, cluster })
    });
    let peers = known_peers(clients.reviews.clone(), arguments.namespace.clone());
    let candidate = Candidate {
        client: clients.reviews,
        for_scans: clients.reports,
        for_closing: clients.closing,
        namespace: arguments.namespace.clone(),
        identity,
        deleted_pending: world.deleted_pending(),
        world: world.clone(),
        cluster: world,
        reports,
        reach,
        rotator: certificates.rotator.clone(),
        policies: judge.policies(),
        clock: clock.clone(),
        metrics: metrics.leader.clone(),
    };
    let reporter = Reporter::new(metrics.reports.clone()).with_events(queue).with_refusals(refusals);
    let webhook = Webhook::new(judge, reporter).with_clock(clock);
    let background = Background { watches, candidacy: candidate.stand(), events };
    Ok(Running { webhook, certificates, page, peers, background: Some(background) })
}

/// The user name of this account at the API server, once it is known. Readiness waits for it.
fn own_user(client: &Client, readiness: &Readiness) -> Arc<OnceLock<String>> {
    let own_user = Arc::<OnceLock<String>>::default();
    let known = readiness.gate("our user name at the API server");
    tokio::spawn(identity::fetch_username(client.clone(), own_user.clone(), known));
    own_user
}

/// What the page reads from the API server.
fn sources_of_page(
    client: &Client,
    arguments: &Arguments,
    reach: &Reach,
    reports: Option<ReportSettings>,
    identity: &str,
) -> ClusterSources {
    ClusterSources {
        carried: CarriedOperationsList::new(client.clone(), reach.clone()),
        reported: Reported::new(client.clone(), reports),
        replicas: ReplicaList::new(client.clone(), arguments.namespace.clone(), identity.to_owned()),
        history: HistoryReader::new(client.clone()),
    }
}

/// What reviews read, within the namespaces in reach. Losses are noted in Interlock's own namespace.
fn world(clients: &ApiClients, shared: &Shared, reach: &Reach, own: &str) -> Arc<Cluster> {
    let client = || clients.reviews.clone();
    let world = Cluster::counted(client(), shared.decodes.clone(), shared.metrics.intake.clone());
    Arc::new(world.within(reach.clone()).noting_losses(client(), own))
}

/// The gate for the labels of Namespaces. Readiness waits for these only if the policies have a selector.
fn gate_of_labels(policies: &Policies, readiness: &Readiness) -> Gate {
    let unused = Readiness::new();
    let readiness = if policies.uses_labels() { readiness } else { &unused };
    readiness.gate("the labels of Namespaces")
}

/// The addresses from which the API server calls. A task keeps them up to date.
fn known_peers(client: Client, namespace: String) -> Arc<KnownPeers> {
    let peers = Arc::<KnownPeers>::default();
    tokio::spawn(callers::follow(client, namespace, peers.clone()));
    peers
}

async fn count_overrides(
    world: Arc<Cluster>,
    policies: Arc<ArcSwap<Policies>>,
    clock: Arc<ServerClock>,
    metrics: Arc<ReportMetrics>,
) {
    loop {
        let count = world.overrides_in_force(&policies.load(), clock.now());
        metrics.overrides_in_force.set(i64::try_from(count).unwrap_or(i64::MAX));
        sleep(OVERRIDE_COUNT_INTERVAL).await;
    }
}

/// Unique for each replica: the name of the pod, and the process id, because one machine may run several processes.
fn replica_identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "interlock".to_owned());
    format!("{host}-{}", std::process::id())
}
