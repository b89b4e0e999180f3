//! Lets entries fail closed once a review has arrived through their configuration.
//!
//! An entry that fails closed before the API server can reach a replica refuses every operation on a release. So installers leave such
//! entries open and name them in an annotation. The leader sends a probe through the API server, and closes the entries when the nonce
//! comes back in its own response. Replicas report nothing, so nobody can forge an arrival. Nothing here opens an entry.

mod event;
mod rollout;

use std::time::Duration;

use http::Request;
use kube::Client;
use kube::Error;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::metrics::LeaderMetrics;
use crate::inspect::arrival::{Half, Obstacle, Passage, Registration, probe};
use crate::world::kubernetes::api_error::reason;
use event::EventWriter;
use rollout::Rollout;

/// The pause between two looks at the registration: each reads two objects, and a proof is wanted within seconds.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// How long a registration must have been unchanged before a probe counts: every API server has loaded it by then. Otherwise a probe
/// could pass through the version before.
const SETTLED: Duration = Duration::from_secs(3);

/// How long old pods may answer after the last one was replaced, over connections that are still open.
const OLD_PODS_LEAVE: Duration = Duration::from_secs(15);

/// The pause between two probes while nothing waits, after one that did not arrive.
const RETRY_AT_REST: Duration = Duration::from_secs(60);

/// The field manager of what is written here. It stays in `managedFields` for a moment only.
const FIELD_MANAGER: &str = "interlock-closing";

/// What the leader needs to close entries.
pub(super) struct Closing<'l> {
    pub(super) client: &'l Client,
    pub(super) namespace: &'l str,
    pub(super) identity: &'l str,
    pub(super) metrics: &'l LeaderMetrics,
}

/// What is remembered of one configuration between two looks.
#[derive(Default)]
struct Memory {
    /// The generation that was read last, and since when it has been so.
    seen: Option<(u64, Instant)>,
    /// When the last probe was sent, and whether it arrived.
    probed: Option<(Instant, bool)>,
    /// The problem that was reported last, and when.
    reported: Option<(Problem, Instant)>,
}

impl Memory {
    /// Any change of an entry needs another probe.
    fn observe(&mut self, generation: u64) {
        if self.seen.is_none_or(|(seen, _)| seen != generation) {
            self.seen = Some((generation, Instant::now()));
            self.probed = None;
        }
    }

    fn is_settling(&self) -> bool {
        self.seen.is_some_and(|(_, since)| since.elapsed() < SETTLED)
    }

    fn is_due(&self, is_waiting: bool) -> bool {
        match self.probed {
            None => true,
            Some((at, arrived)) => is_waiting || !arrived && at.elapsed() >= RETRY_AT_REST,
        }
    }
}

/// Why entries are not closed, as far as a report differs from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    NotProved(Option<Obstacle>),
    /// Pods of a former template may still answer, as in every rollout.
    Replaced,
    NotRead,
    NotWritten,
    Strangers,
}

/// Events expire after an hour.
const REPORT_AGAIN: Duration = Duration::from_secs(45 * 60);

impl Closing<'_> {
    /// Closes entries, forever.
    pub(super) async fn run(self) {
        let events = EventWriter::new(self.client, self.namespace, self.identity);
        let mut memories = [Memory::default(), Memory::default()];
        // The leader before this one may have been one of the last old pods.
        let mut replaced = Instant::now();
        loop {
            for (half, memory) in Half::ALL.into_iter().zip(&mut memories) {
                self.look(half, memory, &mut replaced, &events).await;
            }
            sleep(if memories.iter().any(Memory::is_settling) { SETTLED } else { LOOK_INTERVAL }).await;
        }
    }

    async fn look(&self, half: Half, memory: &mut Memory, replaced: &mut Instant, events: &EventWriter<'_>) {
        let registration = match read(self.client, half).await {
            Ok(Some(registration)) => registration,
            Ok(None) => {
                *memory = Memory::default();
                self.metrics.clear_proof(half);
                return;
            }
            Err(error) => {
                let why = format!("it cannot be read: {}", reason(&error));
                return self.report(half, memory, Problem::NotRead, &why, &[], events).await;
            }
        };
        self.give_up_fields(half, &registration).await;
        memory.observe(registration.generation());
        let waiting = registration.waiting();
        if memory.is_settling() || !memory.is_due(!waiting.is_empty()) {
            return;
        }
        if !waiting.is_empty()
            && let Some(why) = self.old_pods(replaced).await
        {
            return self.report(half, memory, Problem::Replaced, &why, &waiting, events).await;
        }
        let passage = match registration.probed_name() {
            Some(_) => probe(self.client, self.namespace, half).await,
            None => Passage::Unknown("there is no entry for probes: apply the manifests of this version".to_owned()),
        };
        let arrived = passage == Passage::Arrived;
        memory.probed = Some((Instant::now(), arrived));
        self.metrics.set_proof(half, arrived);
        if let Some(problem) = passage.problem() {
            // Nothing depends on a probe that was never on its way: the API server restarts, or lacks the definition.
            if waiting.is_empty() && !passage.shows_the_way() {
                return;
            }
            let obstacle = passage.obstacle();
            let usual = obstacle.map(Obstacle::usual_cause).unwrap_or_default();
            let why = format!("{problem}. {usual}");
            return self.report(half, memory, Problem::NotProved(obstacle), &why, &waiting, events).await;
        }
        self.close(half, memory, &registration, events).await;
    }

    /// Why a probe may be answered by a pod of a former template, about whose successors it proves nothing.
    async fn old_pods(&self, replaced: &mut Instant) -> Option<String> {
        match Rollout::read(self.client, self.namespace).await {
            Rollout::Never => None,
            Rollout::Complete if replaced.elapsed() >= OLD_PODS_LEAVE => None,
            Rollout::Complete => Some("the last pods of the former template may still answer".to_owned()),
            Rollout::Running => {
                *replaced = Instant::now();
                Some("the Deployment is replacing its pods".to_owned())
            }
            Rollout::Unknown(why) => Some(format!("the Deployment interlock cannot be read: {why}")),
        }
    }

    /// Closes what the proof covers.
    async fn close(&self, half: Half, memory: &mut Memory, registration: &Registration, events: &EventWriter<'_>) {
        let closed = registration.provable();
        if !closed.is_empty() {
            match patch(self.client, half, &registration.closing()).await {
                Ok(changed) => {
                    let entries = closed.join(", ");
                    let kind = half.kind();
                    tracing::info!(configuration = kind, %entries, "a review arrived: these entries fail closed now");
                    events
                        .proved(
                            half,
                            &format!(
                                "A review arrived through {kind} interlock. These entries fail closed now: {entries}"
                            ),
                        )
                        .await;
                    self.give_up_fields(half, &changed).await;
                }
                // Somebody has changed it, so the proof is one of another version.
                Err(Error::Api(status)) if matches!(status.code, 404 | 409) => return,
                Err(error) => {
                    let why = format!("a review arrived, but the entries cannot be closed: {}", reason(&error));
                    return self.report(half, memory, Problem::NotWritten, &why, &closed, events).await;
                }
            }
        }
        let strangers = registration.strangers();
        if strangers.is_empty() {
            memory.reported = None;
            return;
        }
        let probed = registration.probed_name().unwrap_or_default();
        let why = format!(
            "a review arrived, but not by their way: their Service, port or caBundle differs from that of {probed}"
        );
        self.report(half, memory, Problem::Strangers, &why, &strangers, events).await;
    }

    /// Reports a problem once, and again before its Event expires.
    async fn report(
        &self,
        half: Half,
        memory: &mut Memory,
        problem: Problem,
        why: &str,
        open: &[&str],
        events: &EventWriter<'_>,
    ) {
        if memory.reported.is_some_and(|(reported, at)| reported == problem && at.elapsed() < REPORT_AGAIN) {
            return;
        }
        memory.reported = Some((problem, Instant::now()));
        let (configuration, open) = (half.kind(), open.join(", "));
        if problem == Problem::Replaced {
            tracing::info!(configuration, %open, %why, "a probe proves nothing yet, so what fails open stays open");
            return;
        }
        tracing::warn!(configuration, %open, %why, "no review arrives through this configuration, so what fails open stays open");
        if !open.is_empty() {
            events
                .not_proved(half, &format!("{configuration} interlock is not proved, so {open} fail open: {why}"))
                .await;
        }
    }

    async fn give_up_fields(&self, half: Half, registration: &Registration) {
        if let Some(left) = registration.disowning(FIELD_MANAGER)
            && let Err(error) = write(self.client, half, &left, "").await
        {
            tracing::debug!(configuration = half.kind(), %error, "managedFields are as they were; trying again");
        }
    }
}

/// A configuration, if it exists.
async fn read(client: &Client, half: Half) -> Result<Option<Registration>, Error> {
    let request = Request::get(half.path()).body(Vec::new()).map_err(Error::HttpError)?;
    match client.request::<Value>(request).await {
        Ok(object) => Ok(Some(Registration::new(half, object))),
        Err(Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

async fn patch(client: &Client, half: Half, patch: &Value) -> Result<Registration, Error> {
    let parameters = format!("?fieldManager={FIELD_MANAGER}");
    write(client, half, patch, &parameters).await.map(|object| Registration::new(half, object))
}

async fn write(client: &Client, half: Half, patch: &Value, parameters: &str) -> Result<Value, Error> {
    let request = Request::patch(half.path() + parameters).header("content-type", "application/merge-patch+json");
    let request = request.body(patch.to_string().into_bytes()).map_err(Error::HttpError)?;
    client.request::<Value>(request).await
}

#[cfg(test)]
mod tests;
