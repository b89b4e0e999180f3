//! Interlock beside a webhook that does nothing: rate, times and cost over HTTPS.
//!
//!     cargo bench --bench peers [-- PART OF THE NAME OF SOME TRAFFIC]
//!
//! Every webhook is a process of its own; this one is the client, on the same machine. The webhooks take turns in short rounds,
//! in swapped order, and a ratio is the median over the rounds, so that whatever else the machine does falls on all of them.
//! Needs `target/controlplane/`, which the e2e tests build.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a benchmark fails by a panic"
)]

#[path = "fixtures/edits.rs"]
#[allow(dead_code, reason = "some fixtures belong to other benchmarks")]
mod edits;
#[path = "peers/load.rs"]
mod load;
#[path = "peers/null_webhook.rs"]
mod null_webhook;
#[path = "peers/peer.rs"]
mod peer;
#[path = "fixtures/plane.rs"]
#[allow(dead_code, reason = "some fixtures belong to other benchmarks")]
mod plane;
#[path = "fixtures/process.rs"]
mod process;
#[path = "fixtures/reviews.rs"]
mod reviews;

use std::io::Write;
use std::process::Stdio;

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use load::{Round, round};
use peer::{NULL_WEBHOOK, Peer};
use plane::Plane;

const ROUNDS: usize = 7;
/// Reviews a second that every webhook can answer.
const STEADY: f64 = 2_000.0;

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some(NULL_WEBHOOK) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        return runtime.block_on(null_webhook::serve());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let plane = Plane::start();
    create(&plane, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))?;
    create(&plane, &deployed_record(&edits::deployment().document))?;
    let peers = [Peer::null()?, Peer::interlock(plane.kubeconfig())?];
    println!(
        "{:<44}{:>10}{:>8}{:>9}{:>9}{:>8}{:>12}{:>8}",
        "median of rounds", "reviews/s", "ratio", "p50 ms", "p99 ms", "ratio", "CPU s/1,000", "ratio"
    );
    let traffic = [
        ("an object that is not ours", reviews::deployment_review()),
        ("a label of a release's object", edits::deployment_label().review()),
        ("an image of a release's object", edits::deployment().review()),
        ("CREATE of a record", reviews::record_review(300 << 10)),
    ];
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    for (name, review) in traffic.into_iter().filter(|(name, _)| name.contains(&wanted)) {
        let review = Bytes::from(review);
        for rate in [None, Some(STEADY)] {
            compare(&runtime, &peers, name, &review, rate)?;
        }
    }
    for peer in &peers {
        let (now, most) = peer.memory()?;
        println!("{:<44}{now:>6.1} MiB, at most {most:.1} MiB", peer.name);
    }
    Ok(())
}

fn compare(
    runtime: &tokio::runtime::Runtime,
    peers: &[Peer],
    traffic: &str,
    review: &Bytes,
    rate: Option<f64>,
) -> Result<()> {
    let mut rounds: Vec<Vec<Round>> = peers.iter().map(|_| Vec::new()).collect();
    for number in 0..ROUNDS {
        let mut order: Vec<_> = (0..peers.len()).collect();
        if !number.is_multiple_of(2) {
            order.reverse();
        }
        for index in order {
            rounds[index].push(runtime.block_on(round(&peers[index], review, rate))?);
        }
    }
    let pace = rate.map_or_else(|| "as fast as it goes".to_owned(), |rate| format!("{rate} a second"));
    println!("{traffic}, {} KiB, {pace}", review.len() / 1024);
    for (peer, own) in peers.iter().zip(&rounds) {
        let value = |of: fn(&Round) -> f64| median(own.iter().map(of));
        let ratio = |of: fn(&Round) -> f64| median(own.iter().zip(&rounds[0]).map(|(own, floor)| of(own) / of(floor)));
        println!(
            "    {:<40}{:>10.0}{:>8.2}{:>9.3}{:>9.3}{:>8.2}{:>12.3}{:>8.2}",
            peer.name,
            value(|round| round.rate),
            ratio(|round| round.rate),
            value(|round| round.p50) * 1e3,
            value(|round| round.p99) * 1e3,
            ratio(|round| round.p99),
            value(|round| round.cost),
            ratio(|round| round.cost),
        );
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn create(plane: &Plane, object: &Value) -> Result<()> {
    let mut kubectl = plane.command("kubectl");
    kubectl.args(["create", "-f", "-"]).env("KUBECONFIG", plane.kubeconfig());
    let mut kubectl = kubectl.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    kubectl.stdin.take().expect("a pipe").write_all(object.to_string().as_bytes())?;
    ensure!(kubectl.wait()?.success(), "kubectl could not create {}", object["kind"]);
    Ok(())
}

/// The record of the release `web`, which declares this document.
fn deployed_record(document: &Value) -> Value {
    let body = json!({
        "name": "web", "info": {"status": "deployed", "last_deployed": "2026-11-20T10:00:00Z"},
        "chart": {"metadata": {"name": "web", "version": "1.2.3"}}, "config": {}, "version": 6, "namespace": "shop",
        "manifest": format!("---\n# Source: web/templates/web.yaml\n{document}\n"),
    });
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(body.to_string().as_bytes()).unwrap();
    let release = STANDARD.encode(STANDARD.encode(gzip.finish().unwrap()));
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": {"release": release},
        "metadata": {
            "name": "sh.helm.release.v1.web.v6", "namespace": "shop",
            "labels": {"name": "web", "owner": "helm", "status": "deployed", "version": "6"},
        },
    })
}
