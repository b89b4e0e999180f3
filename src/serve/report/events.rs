//! Kubernetes Events about findings: denied, warned about, or would have been denied. `kubectl describe` and `kubectl events` show them.
//!
//! Every replica writes its own Events after its replies, from a bounded queue. The leader reads the Events of all replicas for its
//! [reports](super::openreports) on releases.
//!
//! kube's `Recorder` writes neither the labels nor the annotations, and makes one series of all users and causes. So these Events have a
//! writer of their own.

pub(crate) mod annotation;
mod body;
mod limit;
mod series;
mod series_key;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::metrics::{ReportMetrics, Sink, Write};
use super::namespace_labels::NamespaceLabels;
use crate::inspect::annotation::FIELD_MANAGER;
use crate::log_limit::LogLimit;
use crate::serve::background::BackgroundTask;
use crate::world::kubernetes::Cluster;
use crate::world::{NewestRecord, ask};
pub(crate) use annotation::CONTROLLER;
pub(super) use body::CLUSTER_SCOPED_NAMESPACE;
pub(crate) use body::{MAX_NOTE_BYTES, Writer, instance};
use interlock_engine::decision::{Decision, ObjectReference};
use interlock_engine::evidence::question;
use interlock_engine::json::first_at;
use interlock_engine::object::{ObjectKey, group_of};
use interlock_engine::owners::has_commits;

use series::{OpenSeries, SeriesTable};
use series_key::SeriesKey;

/// The longest queue of decisions. Each takes a few KiB.
const QUEUE_LENGTH: usize = 1_024;

/// The pause before Events that could not be written are tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The queue of the writer.
#[derive(Debug, Clone)]
pub struct EventQueue {
    sender: mpsc::Sender<Decision>,
    metrics: Arc<ReportMetrics>,
}

/// Starts to write Events as `writer`. The end of the task first writes the queued Events. The client must not be used for other requests, so that slow writes do not delay them.
pub(crate) fn start(
    client: Client,
    writer: Writer,
    world: Arc<Cluster>,
    metrics: Arc<ReportMetrics>,
    labels: Arc<NamespaceLabels>,
) -> (EventQueue, BackgroundTask) {
    let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
    let queue = EventQueue { sender, metrics: Arc::clone(&metrics) };
    let series = SeriesTable::new();
    let writer = EventWriter {
        client,
        writer,
        world,
        metrics,
        labels,
        series,
        names: RandomState::new(),
        log_limit: LogLimit::new(),
    };
    (queue, BackgroundTask::start(|left| writer.run(receiver, left)))
}

impl EventQueue {
    /// Queues a decision with findings, if there is room.
    pub(super) fn offer(&self, decision: Decision) {
        let findings = decision.findings.len() as u64;
        if self.sender.try_send(decision).is_err() {
            self.metrics.dropped(Sink::Events, findings);
        }
        self.metrics.waiting(Sink::Events, self.sender.max_capacity() - self.sender.capacity());
    }
}

struct EventWriter {
    client: Client,
    writer: Writer,
    world: Arc<Cluster>,
    metrics: Arc<ReportMetrics>,
    labels: Arc<NamespaceLabels>,
    series: SeriesTable,
    names: RandomState,
    /// Users who are denied in a namespace that is being deleted make every write of its Events fail.
    log_limit: LogLimit,
}

impl EventWriter {
    async fn run(mut self, mut receiver: mpsc::Receiver<Decision>, mut left: watch::Receiver<bool>) {
        let mut ticks = interval(RETRY_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut leave = std::pin::pin!(async move { _ = left.wait_for(|left| *left).await });
        let mut open = true;
        while open {
            tokio::select! {
                received = receiver.recv() => match received {
                    Some(decision) => {
                        self.observe(&decision);
                        self.metrics.waiting(Sink::Events, receiver.len());
                    }
                    None => open = false,
                },
                _ = ticks.tick() => self.series.end_idle(Instant::now()),
                () = &mut leave, if !receiver.is_closed() => receiver.close(),
            }
            self.write_due().await;
        }
        self.metrics.dropped(Sink::Events, self.series.unwritten());
    }

    fn observe(&mut self, decision: &Decision) {
        for finding in &decision.findings {
            if let Some(key) = SeriesKey::of(decision, finding) {
                let (at, now) = (Timestamp::now(), Instant::now());
                let forgotten = self.series.observe(key, finding.message.clone(), at, now);
                self.metrics.dropped(Sink::Events, forgotten);
            }
        }
    }

    async fn write_due(&mut self) {
        for (key, live) in self.series.due(Instant::now()) {
            let (write, written) = match &live.event {
                Some((namespace, name)) => (Write::Updated, self.update(namespace, name, &live).await),
                None => (Write::Created, self.create(&key, &live).await),
            };
            match written {
                Ok(event) => {
                    self.metrics.wrote(Sink::Events, write);
                    self.series.written(&key, &live, event);
                }
                // Events expire after an hour.
                Err(Error::Api(status)) if status.code == 404 && live.event.is_some() => {
                    self.series.vanished(&key);
                }
                Err(error) => {
                    self.metrics.wrote(Sink::Events, Write::Failed);
                    if is_final(&error) {
                        self.metrics.dropped(Sink::Events, self.series.refused(&key, &live));
                    }
                    if let Some(suppressed) = self.log_limit.admit("event") {
                        tracing::warn!(rule = %key.rule, %error, suppressed, "an Event cannot be written");
                    }
                }
            }
        }
    }

    async fn create(&self, key: &SeriesKey, live: &OpenSeries) -> Result<(String, String), Error> {
        let record: Option<NewestRecord> = key.release.as_ref().and_then(|release| self.world.newest(release).0);
        let name = format!("{}.{:016x}", key.rule, self.names.hash_one((key, live.first)));
        let shown = SeriesKey { object_uid: self.uid_of(key).await, ..key.clone() };
        let labels = self.labels.of(key.namespace()).await;
        let event = body::event(&shown, live, record.as_ref(), (name.clone(), labels), &self.writer);
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match self.api(&namespace).create(&params, &event).await {
            // The Event was written, but the answer was lost.
            Err(Error::Api(status)) if status.code == 409 => {}
            created => _ = created?,
        }
        Ok((namespace, name))
    }

    /// The uid of the object. `kubectl describe` shows an Event only with its uid. The object of a Sveltos commit is not the object of the
    /// request.
    async fn uid_of(&self, key: &SeriesKey) -> String {
        let object = key.object.as_ref().filter(|object| has_commits(group_of(&object.api_version)));
        let Some(ObjectReference { api_version, kind, namespace, name }) = object.filter(|_| key.object_uid.is_empty())
        else {
            return key.object_uid.clone();
        };
        let group = group_of(api_version);
        let found = ask(&*self.world, question::Object(ObjectKey::new(group, kind, namespace, name))).await;
        let text = found.ok().flatten().unwrap_or_default();
        first_at(&text, &["metadata", "uid"]).ok().flatten().unwrap_or_default()
    }

    async fn update(&self, namespace: &str, name: &str, live: &OpenSeries) -> Result<(String, String), Error> {
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"series": body::series(live)}));
        self.api(namespace).patch(name, &params, &patch).await?;
        Ok((namespace.to_owned(), name.to_owned()))
    }

    fn api(&self, namespace: &str) -> Api<Event> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// Whether a retry is pointless: the namespace is being deleted, or the API server rejects the Event.
fn is_final(error: &Error) -> bool {
    matches!(error, Error::Api(status) if matches!(status.code, 400 | 403 | 404 | 422))
}
