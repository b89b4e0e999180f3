//! Makes webhook entries fail closed once a review has arrived through their configuration.
//!
//! If an entry fails closed before the API server can reach a replica, every operation on a release is refused. So installers create the
//! entries open and list them in an annotation. The leader sends a probe through the API server, and closes the entries when the API
//! server's response to the leader contains the nonce. Replicas report nothing, so nobody can forge an arrival. Nothing here opens an
//! entry.

mod event;
mod rollout;

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use kube::{Client, Error};
use tokio::time::{Instant, sleep};

use super::metrics::LeaderMetrics;
use crate::inspect::arrival::{Half, Obstacle, Passage, Registration, probe};
use crate::serve::openmetrics::Label;
use crate::world::kubernetes::api_error::reason;
use event::EventWriter;
use rollout::Rollout;

/// The pause between two checks of the registration. A check reads two objects, and a proof should follow within seconds.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long a registration must be unchanged before a probe counts. By then every API server has loaded the registration. Otherwise a
/// probe could use the previous version.
const SETTLED: Duration = Duration::from_secs(3);

/// How long old pods may still answer over open connections after the last old pod was replaced.
const OLD_PODS_LEAVE: Duration = Duration::from_secs(15);

/// The pause after a probe that did not arrive, if no entry waits to be closed.
const RETRY_AT_REST: Duration = Duration::from_secs(60);

/// The field manager of writes to the registration. It is removed from `managedFields` at once.
const FIELD_MANAGER: &str = "interlock-closing";

/// Closes entries.
pub(super) struct Closing<'l> {
    pub(super) client: &'l Client,
    pub(super) namespace: &'l str,
    pub(super) identity: &'l str,
    pub(super) metrics: &'l LeaderMetrics,
}

/// The state of one configuration between two checks.
#[derive(Default)]
struct ProofState {
    /// The generation that was read last, and when it was first read.
    seen: Option<(u64, Instant)>,
    /// When the last probe was sent, and whether it arrived.
    probed: Option<(Instant, bool)>,
    /// The problem that was reported last, and when.
    reported: Option<(Problem, Instant)>,
}

impl ProofState {
    /// A new generation needs another probe.
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

/// Why entries are not closed. Reasons that differ are reported separately.
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
        let mut states = [ProofState::default(), ProofState::default()];
        // The previous leader may have been one of the last old pods.
        let mut replaced = Instant::now();
        loop {
            for (half, state) in Half::ALL.into_iter().zip(&mut states) {
                self.check(half, state, &mut replaced, &events).await;
            }
            sleep(if states.iter().any(ProofState::is_settling) { SETTLED } else { CHECK_INTERVAL }).await;
        }
    }

    async fn check(&self, half: Half, state: &mut ProofState, replaced: &mut Instant, events: &EventWriter<'_>) {
        let registration = match Registration::read(self.client, half).await {
            Ok(Some(registration)) => registration,
            Ok(None) => {
                *state = ProofState::default();
                self.metrics.registration_proven.remove(&label(half));
                return;
            }
            Err(error) => {
                let why = format!("it cannot be read: {}", reason(&error));
                return self.report(half, state, Problem::NotRead, &why, &[], events).await;
            }
        };
        self.give_up_fields(half, &registration).await;
        state.observe(registration.generation());
        let waiting = registration.waiting();
        if state.is_settling() || !state.is_due(!waiting.is_empty()) {
            return;
        }
        if !waiting.is_empty()
            && let Some(why) = self.old_pods(replaced).await
        {
            return self.report(half, state, Problem::Replaced, &why, &waiting, events).await;
        }
        let passage = match registration.probed_name() {
            Some(_) => probe(self.client, self.namespace, half).await,
            None => Passage::Unknown("there is no entry for probes: apply the manifests of this version".to_owned()),
        };
        let arrived = passage == Passage::Arrived;
        state.probed = Some((Instant::now(), arrived));
        self.metrics.registration_proven.get_or_create(&label(half)).set(arrived.into());
        if let Some(problem) = passage.problem() {
            // No entry waits, and the probe was never sent: the API server restarts, or lacks the definition.
            if waiting.is_empty() && !passage.shows_the_way() {
                return;
            }
            let obstacle = passage.obstacle();
            let usual = obstacle.map(Obstacle::usual_cause).unwrap_or_default();
            let why = format!("{problem}. {usual}");
            return self.report(half, state, Problem::NotProved(obstacle), &why, &waiting, events).await;
        }
        self.close(half, state, &registration, events).await;
    }

    /// Why a pod of a former template may answer a probe. Such an answer proves nothing about the new pods.
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

    /// Closes the entries that the proof covers.
    async fn close(&self, half: Half, state: &mut ProofState, registration: &Registration, events: &EventWriter<'_>) {
        let closed = registration.provable();
        if !closed.is_empty() {
            let patch = Patch::Merge(registration.closing());
            match registration.patch(self.client, &closing_params(), &patch).await {
                Ok(changed) => {
                    let entries = closed.join(", ");
                    let kind = half.kind();
                    tracing::info!(configuration = kind, %entries, "a review arrived: these entries fail closed now");
                    events
                        .proved(&format!(
                            "A review arrived through {kind} interlock. These entries fail closed now: {entries}"
                        ))
                        .await;
                    self.give_up_fields(half, &changed).await;
                }
                // The configuration has changed, so the proof is for another version.
                Err(Error::Api(status)) if matches!(status.code, 404 | 409) => return,
                Err(error) => {
                    let why = format!("a review arrived, but the entries cannot be closed: {}", reason(&error));
                    return self.report(half, state, Problem::NotWritten, &why, &closed, events).await;
                }
            }
        }
        let strangers = registration.strangers();
        if strangers.is_empty() {
            state.reported = None;
            return;
        }
        let probed = registration.probed_name().unwrap_or_default();
        let why = format!(
            "a review arrived, but not by their way: their Service, port or caBundle differs from that of {probed}"
        );
        self.report(half, state, Problem::Strangers, &why, &strangers, events).await;
    }

    /// Reports a problem once, and again before its Event expires.
    async fn report(
        &self,
        half: Half,
        state: &mut ProofState,
        problem: Problem,
        why: &str,
        open: &[&str],
        events: &EventWriter<'_>,
    ) {
        if state.reported.is_some_and(|(reported, at)| reported == problem && at.elapsed() < REPORT_AGAIN) {
            return;
        }
        state.reported = Some((problem, Instant::now()));
        let (configuration, open) = (half.kind(), open.join(", "));
        if problem == Problem::Replaced {
            tracing::info!(configuration, %open, %why, "a probe proves nothing yet, so what fails open stays open");
            return;
        }
        tracing::warn!(configuration, %open, %why, "no review arrives through this configuration, so what fails open stays open");
        if !open.is_empty() {
            events.not_proved(&format!("{configuration} interlock is not proved, so {open} fail open: {why}")).await;
        }
    }

    async fn give_up_fields(&self, half: Half, registration: &Registration) {
        if let Err(error) = registration.disown(self.client, FIELD_MANAGER).await {
            tracing::debug!(configuration = half.kind(), %error, "managedFields are as they were; trying again");
        }
    }
}

/// The label of the metric.
fn label(half: Half) -> [Label; 1] {
    [("configuration", half.as_str())]
}

fn closing_params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

#[cfg(test)]
mod tests;
