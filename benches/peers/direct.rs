//! Rounds of reviews, sent straight to each webhook.

use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;

use crate::bite::request;
use crate::load::{Load, Round, round};
use crate::peer::Peer;
use crate::report::{Report, Series, median};
use crate::selection::{FOREIGN, IMAGE, LABEL, RECORD, Selection};
use crate::{edits, reviews};

/// As many as an API server keeps open under load.
const CONNECTIONS: u32 = 32;
/// Reviews a second that every peer can answer on two cores.
pub(crate) const STEADY: f64 = 100.0;

/// Reviews a second that only some peers can answer: those that answered half as many again as fast as it goes.
const BRISK: f64 = 2000.0;

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
        let everybody: Vec<_> = peers.iter().collect();
        let fastest = rounds(&everybody, api_server, selection, &review, None).await?;
        let is_brisk = |rounds: &[Round]| median(rounds, |round| round.rate) >= 1.5 * BRISK;
        let brisk = everybody.iter().zip(&fastest).filter(|(_, rounds)| is_brisk(rounds)).map(|(peer, _)| *peer);
        let brisk: Vec<_> = brisk.collect();
        report.add(series(name, None, &everybody, fastest));
        for (rate, peers) in [(STEADY, everybody), (BRISK, brisk)].into_iter().filter(|(_, peers)| !peers.is_empty()) {
            let measured = rounds(&peers, api_server, selection, &review, Some(rate)).await?;
            report.add(series(name, Some(rate), &peers, measured));
        }
    }
    Ok(())
}

fn series(traffic: &'static str, rate: Option<f64>, peers: &[&Peer], rounds: Vec<Vec<Round>>) -> Series {
    Series { traffic, rate, rounds: peers.iter().map(|peer| peer.name.clone()).zip(rounds).collect() }
}

async fn rounds(
    peers: &[&Peer],
    api_server: u32,
    selection: &Selection,
    review: &Bytes,
    rate: Option<f64>,
) -> Result<Vec<Vec<Round>>> {
    let mut rounds: Vec<Vec<Round>> = peers.iter().map(|_| Vec::new()).collect();
    for number in 0..selection.rounds {
        for index in selection.order(number, peers.len()) {
            let peer = peers[index];
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
