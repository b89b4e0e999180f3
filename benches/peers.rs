//! Interlock beside a webhook that does nothing, `ValidatingAdmissionPolicy`, OPA, Gatekeeper and Kyverno: rate, times and cost.
//!
//!     cargo bench --bench peers [-- --quick] [PART OF THE NAME OF A PEER OR OF SOME TRAFFIC]...
//!
//! Each peer has the nearest rules that it can express: no change of an image of a Deployment that Helm manages, and no change
//! of the status label of a release record. A peer whose rules do not work does not take part; the table says why.
//!
//! Every webhook is a process of its own; this one is the client, on the same machine. The webhooks take turns in short rounds,
//! in swapped order, so that whatever else the machine does falls on all of them: first over direct HTTPS, then as the only
//! webhook of a real API server. The figures are medians of the rounds. `--quick` makes one very short round of each, which
//! shows that everything works, and no more.
//!
//! Needs Go, and `target/controlplane/`, which the e2e tests build. The first run builds OPA, Gatekeeper and Kyverno into
//! `target/peers/`. Interlock is built with this benchmark.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a benchmark fails by a panic"
)]

#[path = "peers/bite.rs"]
mod bite;
#[path = "peers/certificate.rs"]
mod certificate;
#[path = "peers/cluster.rs"]
mod cluster;
#[path = "peers/direct.rs"]
mod direct;
#[path = "fixtures/edits.rs"]
#[allow(dead_code, reason = "some fixtures belong to other benchmarks")]
mod edits;
#[path = "peers/gatekeeper.rs"]
mod gatekeeper;
#[path = "peers/kyverno.rs"]
mod kyverno;
#[path = "peers/load.rs"]
mod load;
#[path = "peers/null_webhook.rs"]
mod null_webhook;
#[path = "peers/opa.rs"]
mod opa;
#[path = "peers/peer.rs"]
mod peer;
#[path = "fixtures/plane.rs"]
#[allow(dead_code, reason = "some fixtures belong to other benchmarks")]
mod plane;
#[path = "peers/policies.rs"]
mod policies;
#[path = "fixtures/process.rs"]
mod process;
#[path = "peers/programs.rs"]
mod programs;
#[path = "peers/registration.rs"]
mod registration;
#[path = "peers/report.rs"]
mod report;
#[path = "fixtures/reviews.rs"]
mod reviews;
#[path = "peers/selection.rs"]
mod selection;
#[path = "peers/writes.rs"]
mod writes;

use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use cluster::{Cluster, NAMESPACE};
use peer::{NULL_WEBHOOK, Peer};
use registration::Judge;
use report::Report;
use selection::{ADMISSION_POLICY, GATEKEEPER, INTERLOCK, KYVERNO, NOBODY, NULL, OPA, Selection, WRITES};

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if std::env::args().nth(1).as_deref() == Some(NULL_WEBHOOK) {
        return runtime.block_on(null_webhook::serve());
    }
    let selection = Selection::from_arguments(std::env::args().skip(1))?;
    let cluster = Arc::new(Cluster::start()?);
    cluster.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))?;
    cluster.install("web", 6, &[edits::deployment().document])?;
    let mut report = Report::default();
    let mut peers = started(&cluster, &runtime, &selection, &mut report)?;
    for peer in &mut peers {
        peer.at_rest = peer.memory()?;
    }
    runtime.block_on(direct::run(&peers, cluster.api_server()?, &selection, &mut report))?;
    let judges = judges(&peers, &selection);
    if selection.has_traffic(WRITES) {
        registration::prepare(&cluster)?;
        writes::prepare(&cluster)?;
        runtime.block_on(writes::run(&cluster, &judges, &selection, &mut report))?;
    }
    let version: Value = serde_json::from_str(&cluster.kubectl(&["get", "--raw", "/version"])?)?;
    let names: Vec<_> = judges.iter().map(|judge| judge.name().to_owned()).collect();
    report.print_table(&names, &peers, version["gitVersion"].as_str().context("no version")?);
    Ok(())
}

/// Starts every webhook, and proves that its rules work. Only a foreign one may be missing.
fn started(cluster: &Cluster, runtime: &Runtime, selection: &Selection, report: &mut Report) -> Result<Vec<Peer>> {
    type Start = fn(&Cluster) -> Result<Peer>;
    let starts: [(_, Start); 5] = [
        (NULL, |_| Peer::null()),
        (INTERLOCK, Peer::interlock),
        (OPA, opa::start),
        (GATEKEEPER, gatekeeper::start),
        (KYVERNO, kyverno::start),
    ];
    let mut peers = Vec::new();
    for (name, start) in starts.into_iter().filter(|(name, _)| selection.has_peer(name)) {
        let proven = start(cluster).and_then(|mut peer| {
            runtime.block_on(bite::prove(&mut peer))?;
            Ok(peer)
        });
        match proven {
            Ok(peer) => peers.push(peer),
            Err(error) if [NULL, INTERLOCK].contains(&name) => return Err(error.context(name)),
            Err(error) => {
                eprintln!("peers: {name} does not take part: {error:#}");
                report.missing.push((name, error));
            }
        }
    }
    Ok(peers)
}

/// Who judges writes, in the order of the table.
fn judges<'a>(peers: &'a [Peer], selection: &Selection) -> Vec<Judge<'a>> {
    let policy = [(NOBODY, Judge::Nobody), (ADMISSION_POLICY, Judge::AdmissionPolicy)];
    let builtin = policy.into_iter().filter(|(name, _)| selection.has_peer(name)).map(|(_, judge)| judge);
    builtin.chain(peers.iter().map(Judge::Webhook)).collect()
}
