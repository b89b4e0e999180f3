//! Readiness: one gate for each condition that the server needs to answer correctly.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Ready while every gate is open and no shutdown was requested. Clones share their state.
#[derive(Clone, Default)]
pub struct Readiness {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    leaving: AtomicBool,
    gates: Mutex<Vec<(&'static str, Arc<AtomicBool>)>>,
    notes: Mutex<Vec<(&'static str, Note)>>,
}

/// Describes something that does not affect readiness.
type Note = Box<dyn Fn() -> String + Send + Sync>;

/// One condition of readiness, closed until its owner opens it.
#[derive(Clone, Debug)]
pub struct Gate(Arc<AtomicBool>);

/// Why the server is not ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// A signal requested a shutdown.
    #[error("shutting down")]
    Leaving,
    /// Some gates are closed.
    #[error("waiting for {}", .0.join(", "))]
    Waiting(Vec<&'static str>),
}

impl Readiness {
    /// Ready from the start, until a gate is added.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a closed gate. `/readyz` shows `name` while it is closed.
    #[must_use]
    pub fn gate(&self, name: &'static str) -> Gate {
        let open = Arc::new(AtomicBool::new(false));
        self.inner.gates.lock().unwrap_or_else(PoisonError::into_inner).push((name, Arc::clone(&open)));
        Gate(open)
    }

    /// Adds one line to `/readyz?verbose`. It does not affect readiness.
    pub fn note(&self, name: &'static str, note: impl Fn() -> String + Send + Sync + 'static) {
        self.inner.notes.lock().unwrap_or_else(PoisonError::into_inner).push((name, Box::new(note)));
    }

    /// Every gate and every note, one line each.
    #[must_use]
    pub fn describe(&self) -> String {
        let gates = self.inner.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let notes = self.inner.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let gates = gates.iter().map(|(name, open)| {
            let sign = if open.load(Ordering::Relaxed) { '+' } else { '-' };
            format!("[{sign}] {name}\n")
        });
        gates.chain(notes.iter().map(|(name, note)| format!("[i] {name}: {}\n", note()))).collect()
    }

    /// Whether the server is ready.
    ///
    /// # Errors
    /// [`NotReady`] says why not.
    pub fn check(&self) -> Result<(), NotReady> {
        if self.inner.leaving.load(Ordering::Relaxed) {
            return Err(NotReady::Leaving);
        }
        let gates = self.inner.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let closed: Vec<_> =
            gates.iter().filter(|(_, open)| !open.load(Ordering::Relaxed)).map(|(name, _)| *name).collect();
        if closed.is_empty() { Ok(()) } else { Err(NotReady::Waiting(closed)) }
    }

    /// Makes the server unready for good, because it shuts down.
    pub fn leave(&self) {
        self.inner.leaving.store(true, Ordering::Relaxed);
    }

    /// Adds the metric `ready` to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }
}

/// Read at each scrape.
impl Collector for Readiness {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let ready = ConstGauge::new(i64::from(self.check().is_ok()));
        ready.encode(encoder.encode_descriptor("ready", "Whether this replica is ready", None, ready.metric_type())?)
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Readiness").field(&self.check()).finish()
    }
}

impl Gate {
    /// Notes that the condition holds.
    pub fn open(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Notes that the condition no longer holds.
    pub fn close(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_ready_only_when_every_gate_is_open() {
        let readiness = Readiness::new();
        assert_eq!(readiness.check(), Ok(()));
        let (policies, caches) = (readiness.gate("policies"), readiness.gate("caches"));
        assert_eq!(readiness.check(), Err(NotReady::Waiting(vec!["policies", "caches"])));
        policies.open();
        assert_eq!(readiness.check().unwrap_err().to_string(), "waiting for caches");
        caches.open();
        assert_eq!(readiness.check(), Ok(()));
        policies.close();
        assert_eq!(readiness.check(), Err(NotReady::Waiting(vec!["policies"])));
    }

    #[test]
    fn notes_are_shown_and_do_not_affect_readiness() {
        let readiness = Readiness::new();
        readiness.gate("caches").open();
        readiness.note("policies", || "loaded".to_owned());
        assert_eq!(readiness.describe(), "[+] caches\n[i] policies: loaded\n");
        assert_eq!(readiness.check(), Ok(()));
        let _closed = readiness.gate("leader");
        assert_eq!(readiness.describe(), "[+] caches\n[-] leader\n[i] policies: loaded\n");
    }

    #[test]
    fn a_shutdown_cannot_be_undone() {
        let readiness = Readiness::new();
        readiness.leave();
        readiness.gate("caches").open();
        assert_eq!(readiness.check(), Err(NotReady::Leaving));
    }
}
