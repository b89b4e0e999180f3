//! What hostile requests do to a running `interlock serve`: each alone, four of each at a time, and the worst four in a loop
//! beside the probes and honest reviews.
//!
//! Client and server share the machine. A limit that is missed ends the run with an error.
#![allow(missing_docs, reason = "a benchmark has no callers")]

#[path = "fixtures/hostile.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "some fixtures belong to tests")]
mod hostile;
#[path = "fixtures/reviews.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "fixtures do not fail")]
mod reviews;
#[path = "fixtures/served.rs"]
mod served;

#[path = "flood/crowd.rs"]
mod crowd;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};
use jiff::Timestamp;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use hostile::{ALL, Hostile, Situation, Stage};
use served::{Connection, Served};

const AT_A_TIME: usize = 4;
const LOOP: Duration = Duration::from_secs(30);

const MAX_ANSWER: Duration = Duration::from_millis(500);
const MAX_PROCESSOR_TIME: Duration = Duration::from_millis(500);
const MAX_MEMORY_MIB: f64 = 300.0;
const MAX_PROBE: Duration = Duration::from_millis(100);
const MAX_SMALL: Duration = Duration::from_millis(50);
/// A step of a hostile request is not interrupted.
const MAX_RECORD: Duration = Duration::from_secs(1);

/// Limits that were missed.
type Missed = Vec<String>;

fn main() -> Result<()> {
    let mut missed = Missed::new();
    Runtime::new()?.block_on(beside_four(&mut missed))?;
    crowd::beside(&mut missed)?;
    ensure!(missed.is_empty(), "missed: {missed:?}");
    Ok(())
}

/// The scenes with four hostile requests at a time.
async fn beside_four(missed: &mut Missed) -> Result<()> {
    let served = Served::start()?;
    println!(
        "{:<36}{:>10}{:>12}{:>12}{:>12}{:>10}{:>10}",
        "request", "alone", "processor", "4 together", "processor", "memory", "at most"
    );
    let mut costs = Vec::new();
    for (index, request) in ALL.iter().enumerate() {
        let stage = |kind: &str| Stage { namespace: format!("{kind}-{index}"), now: Timestamp::now() };
        let Hostile { name, padded, .. } = request(&stage("padded"));
        let Hostile { plain, .. } = request(&stage("plain"));
        costs.push(table_row(&served, name, padded, &plain, missed).await?);
    }
    let (_, peak) = served.memory()?;
    check(missed, &format!("memory: {peak:.0} MiB"), peak < MAX_MEMORY_MIB);
    costs.sort();
    let worst = costs.into_iter().rev().take(AT_A_TIME).map(|(_, review)| review);
    beside_honest_traffic(&served, worst, missed).await?;
    println!("memory at most {:.0} MiB", served.memory()?.1);
    Ok(())
}

/// Sends one request alone, then four times at once. Returns the processor time that one takes, and the request.
async fn table_row(
    served: &Served,
    name: &str,
    padded: Situation,
    plain: &Situation,
    missed: &mut Missed,
) -> Result<(Duration, Bytes)> {
    let mut connection = served.connect().await?;
    fill(&mut connection, plain).await?;
    let plain = connection.post(plain.review.clone().into()).await?;
    fill(&mut connection, &padded).await?;
    let review = Bytes::from(padded.review);

    let before = served.processor_time()?;
    let started = Instant::now();
    let answer = connection.post(review.clone()).await?;
    let (alone, cost) = (started.elapsed(), served.processor_time()? - before);
    let rules = |answer: &Value| answer["response"]["auditAnnotations"]["rule"].clone();
    // A record that cannot be read breaks fewer rules: those that need its body have nothing to say.
    let is_same = rules(&answer) == rules(&plain) || name.contains("60 MiB");
    check(missed, &format!("{name}: {answer}, not {plain}"), is_refused(&answer) && is_same);

    let mut connections = try_join_all((0..AT_A_TIME).map(|_| served.connect())).await?;
    let before = served.processor_time()?;
    let started = Instant::now();
    let answers = join_all(connections.iter_mut().map(|connection| connection.post(review.clone()))).await;
    let (together, cost_together) = (started.elapsed(), served.processor_time()? - before);
    for answer in answers {
        let answer = answer?;
        check(missed, &format!("{name}, four together: {answer}"), is_refused(&answer));
    }
    let (memory, peak) = served.memory()?;
    println!(
        "{name:<36}{alone:>10.1?}{cost:>12.1?}{together:>12.1?}{cost_together:>12.1?}{memory:>6.0} MiB{peak:>6.0} MiB"
    );
    check(missed, &format!("{name}: {alone:?}"), alone < MAX_ANSWER);
    check(missed, &format!("{name}: processor {cost:?}"), cost < MAX_PROCESSOR_TIME);
    Ok((cost, review))
}

/// Repeats the worst requests on a connection each, and meanwhile probes and sends what honest clients send.
async fn beside_honest_traffic(served: &Served, worst: impl Iterator<Item = Bytes>, missed: &mut Missed) -> Result<()> {
    let small = Bytes::from(reviews::deployment_review());
    let [Hostile { padded: written_again, .. }, _] =
        hostile::legitimate(&Stage { namespace: "honest".to_owned(), now: Timestamp::now() });
    fill(&mut served.connect().await?, &written_again).await?;
    let record = Bytes::from(as_dry_run(&written_again.review)?);
    let mut attackers = JoinSet::new();
    let until = Instant::now() + LOOP;
    for request in worst {
        let mut connection = served.connect().await?;
        attackers.spawn(async move {
            let mut sent = 0;
            while Instant::now() < until {
                let answer = connection.post(request.clone()).await?;
                ensure!(is_refused(&answer), "a hostile request was admitted: {answer}");
                sent += 1;
            }
            Ok(sent)
        });
    }
    let (probes, small, records) = tokio::join!(
        timed(served, until, Duration::from_millis(100), Kind::Probes),
        timed(served, until, Duration::from_millis(10), Kind::Review(small)),
        timed(served, until, Duration::from_millis(500), Kind::Review(record)),
    );
    let sent: usize = attackers.join_all().await.into_iter().sum::<Result<usize>>()?;
    println!("\n{sent} hostile requests in {LOOP:?}, beside them");
    for (name, times, percent, limit) in [
        ("/livez and /readyz", probes?, 100, MAX_PROBE),
        ("honest small reviews", small?, 99, MAX_SMALL),
        ("honest records of 8 MiB", records?, 99, MAX_RECORD),
    ] {
        let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
        println!("{name:<36}{:>6} p50 {:>8.1?} p99 {:>8.1?} max {:>8.1?}", times.len(), at(50), at(99), at(100));
        check(missed, &format!("{name}: {:?}", at(percent)), at(percent) < limit);
    }
    Ok(())
}

enum Kind {
    Probes,
    Review(Bytes),
}

/// The times of requests that begin at an even pace, in order. Each must be answered well.
async fn timed(served: &Served, until: Instant, pace: Duration, kind: Kind) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    let mut pace = tokio::time::interval(pace);
    let mut connection = served.connect().await?;
    while Instant::now() < until {
        pace.tick().await;
        let started = Instant::now();
        match &kind {
            Kind::Probes => {
                let mut admin = served.connect_to_admin().await?;
                for path in ["/livez", "/readyz"] {
                    ensure!(admin.get(path).await?.is_success(), "{path} failed");
                }
            }
            Kind::Review(review) => {
                let answer = connection.post(review.clone()).await?;
                ensure!(answer["response"]["allowed"] == true, "an honest review was refused: {answer}");
                ensure!(answer["response"]["warnings"].is_null(), "an honest review was not judged: {answer}");
            }
        }
        times.push(started.elapsed());
    }
    times.sort();
    Ok(times)
}

/// Creates the objects of a situation.
async fn fill(connection: &mut Connection, situation: &Situation) -> Result<()> {
    for creation in situation.creations() {
        let answer = connection.post(creation.into()).await?;
        ensure!(answer["response"]["allowed"] == true, "{answer}");
    }
    Ok(())
}

/// The same review, which leaves nothing behind.
fn as_dry_run(review: &str) -> Result<String> {
    let mut review: Value = serde_json::from_str(review).context("a review")?;
    review["request"]["dryRun"] = true.into();
    Ok(review.to_string())
}

fn is_refused(answer: &Value) -> bool {
    answer["response"]["allowed"] == false
}

fn check(missed: &mut Missed, what: &str, holds: bool) {
    if !holds {
        missed.push(what.to_owned());
    }
}
