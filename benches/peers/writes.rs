//! Rounds of writes to the API server, judged by each peer in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE};
use crate::edits;
use crate::load::{Load, Requests, Round, round};
use crate::registration::Judge;
use crate::report::{Report, Series};
use crate::selection::{Selection, WRITES};

/// Each writes to a Deployment of its own, so that no write meets a conflict.
const WRITERS: u32 = 16;
/// Writes a second, below what the API server can do on two cores with the slowest peer.
pub(crate) const STEADY: f64 = 50.0;
/// There are fewer writes in a second than reviews: these rounds are longer by this factor.
const LONGER: u32 = 2;

/// Installs the release whose objects are written.
pub(crate) fn prepare(cluster: &Cluster) -> Result<()> {
    let documents: Vec<Value> = (0..WRITERS)
        .map(|number| {
            let mut document = edits::deployment().document;
            document["metadata"]["name"] = format!("writer-{number}").into();
            // No pods, and nothing for the Deployment's controller to do: only the write is measured.
            document["spec"]["replicas"] = 0.into();
            document["spec"]["paused"] = true.into();
            document
        })
        .collect();
    cluster.install("writers", 1, &documents)
}

pub(crate) async fn run(
    cluster: &Arc<Cluster>,
    judges: &[Judge<'_>],
    selection: &Selection,
    report: &mut Report,
) -> Result<()> {
    let mut rounds = [None, Some(STEADY)].map(|rate| (rate, judges.iter().map(|_| Vec::new()).collect::<Vec<_>>()));
    let requests = requests(cluster);
    for number in 0..selection.rounds {
        for index in selection.order(number, judges.len()) {
            let judge = &judges[index];
            judge.register(cluster).await?;
            for (rate, rounds) in &mut rounds {
                let load = Load {
                    target: &cluster.target,
                    connections: WRITERS,
                    requests: Arc::clone(&requests),
                    rate: *rate,
                    measured: selection.measured * LONGER,
                    webhook: judge.process(),
                    api_server: cluster.api_server()?,
                };
                rounds[index].push(round(&load).await.with_context(|| judge.name().to_owned())?);
            }
            judge.remove(cluster).await?;
        }
    }
    for (rate, rounds) in rounds {
        let series =
            judges.iter().zip(rounds).map(|(judge, rounds): (_, Vec<Round>)| (judge.name().to_owned(), rounds));
        report.add(Series { traffic: WRITES, rate, rounds: series.collect() });
    }
    Ok(())
}

/// A changed label of the writer's Deployment, each time another one: the API server does not store a write without a change.
fn requests(cluster: &Arc<Cluster>) -> Arc<Requests> {
    let (cluster, written) = (Arc::clone(cluster), AtomicU64::new(0));
    Arc::new(move |connection, _| {
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/writer-{connection}");
        let number = written.fetch_add(1, Ordering::Relaxed).to_string();
        cluster.request(Method::PATCH, &path, &json!({"metadata": {"labels": {"written": number}}}))
    })
}
