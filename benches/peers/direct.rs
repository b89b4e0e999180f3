//! Rounds of reviews, sent straight to each webhook.

use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;

use crate::bite::request;
use crate::load::{Load, Round, round};
use crate::peer::Peer;
use crate::report::{Report, Series};
use crate::selection::{FOREIGN, IMAGE, LABEL, RECORD, Selection};
use crate::{edits, reviews};

/// As many as an API server keeps open under load.
const CONNECTIONS: u32 = 32;
/// Reviews a second that every peer can answer on two cores.
pub(crate) const STEADY: f64 = 100.0;

/// `api_server`: its process, because a webhook may ask it.
pub(crate) async fn run(peers: &[Peer], api_server: u32, selection: &Selection, report: &mut Report) -> Result<()> {
    let traffic = [
        (FOREIGN, reviews::deployment_review()),
        (LABEL, edits::deployment_label().review()),
        (IMAGE, edits::deployment().review()),
        (RECORD, reviews::record_review(300 << 10)),
    ];
    for (name, review) in traffic.into_iter().filter(|(name, _)| selection.has_traffic(name)) {
        let review = Bytes::from(review);
        for rate in [None, Some(STEADY)] {
            let rounds = rounds(peers, api_server, selection, &review, rate).await?;
            let series = peers.iter().zip(rounds).map(|(peer, rounds)| (peer.name.clone(), rounds));
            report.add(Series { traffic: name, rate, rounds: series.collect() });
        }
    }
    Ok(())
}

async fn rounds(
    peers: &[Peer],
    api_server: u32,
    selection: &Selection,
    review: &Bytes,
    rate: Option<f64>,
) -> Result<Vec<Vec<Round>>> {
    let mut rounds: Vec<Vec<Round>> = peers.iter().map(|_| Vec::new()).collect();
    for number in 0..selection.rounds {
        for index in selection.order(number, peers.len()) {
            let peer = &peers[index];
            let (path, review) = (peer.path, review.clone());
            let load = Load {
                target: &peer.target,
                connections: CONNECTIONS,
                requests: Arc::new(move |_, _| request(path, review.clone())),
                rate,
                measured: selection.measured,
                webhook: Some(peer.pid()),
                api_server,
            };
            rounds[index].push(round(&load).await.with_context(|| peer.name.clone())?);
        }
    }
    Ok(rounds)
}
