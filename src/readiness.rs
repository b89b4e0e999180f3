//! Readiness: one gate for each thing that must be there before the first honest answer.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Ready when every gate is open and nobody has asked for the end. Clones share their state.
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

/// Says how something is that readiness does not hang on.
type Note = Box<dyn Fn() -> String + Send + Sync>;

/// One condition of readiness, closed until its owner opens it.
#[derive(Clone, Debug)]
pub struct Gate(Arc<AtomicBool>);

/// Why the server is not ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// A signal has asked for the end.
    #[error("shutting down")]
    Leaving,
    /// Something has not been there yet, or is gone.
    #[error("waiting for {}", .0.join(", "))]
    Waiting(Vec<&'static str>),
}

impl Readiness {
    /// Ready from the start, until a gate is added.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition, closed. `name` is shown to whoever asks why the server is not ready.
    #[must_use]
    pub fn gate(&self, name: &'static str) -> Gate {
        let open = Arc::new(AtomicBool::new(false));
        self.inner.gates.lock().unwrap_or_else(PoisonError::into_inner).push((name, Arc::clone(&open)));
        Gate(open)
    }

    /// Adds what is told to whoever asks for everything, on one line. It makes nobody wait.
    pub fn note(&self, name: &'static str, note: impl Fn() -> String + Send + Sync + 'static) {
        self.inner.notes.lock().unwrap_or_else(PoisonError::into_inner).push((name, Box::new(note)));
    }

    /// Every gate and every note, a line each.
    #[must_use]
    pub fn everything(&self) -> String {
        let gates = self.inner.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = |(name, open): &(&str, Arc<AtomicBool>)| {
            format!("[{}] {name}\n", if open.load(Ordering::Relaxed) { '+' } else { '-' })
        };
        let notes = self.inner.notes.lock().unwrap_or_else(PoisonError::into_inner);
        gates.iter().map(gate).chain(notes.iter().map(|(name, note)| format!("[i] {name}: {}\n", note()))).collect()
    }

    /// Asks.
    ///
    /// # Errors
    /// [`NotReady`] says what is missing.
    pub fn check(&self) -> Result<(), NotReady> {
        if self.inner.leaving.load(Ordering::Relaxed) {
            return Err(NotReady::Leaving);
        }
        let gates = self.inner.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let closed: Vec<_> =
            gates.iter().filter(|(_, open)| !open.load(Ordering::Relaxed)).map(|(name, _)| *name).collect();
        if closed.is_empty() { Ok(()) } else { Err(NotReady::Waiting(closed)) }
    }

    /// Not ready from now on, for good.
    pub fn leave(&self) {
        self.inner.leaving.store(true, Ordering::Relaxed);
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Readiness").field(&self.check()).finish()
    }
}

impl Gate {
    /// The condition holds.
    pub fn open(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The condition no longer holds.
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
    fn everything_is_told_and_notes_make_nobody_wait() {
        let readiness = Readiness::new();
        readiness.gate("caches").open();
        readiness.note("policies", || "loaded".to_owned());
        assert_eq!(readiness.everything(), "[+] caches\n[i] policies: loaded\n");
        assert_eq!(readiness.check(), Ok(()));
        let _closed = readiness.gate("leader");
        assert_eq!(readiness.everything(), "[+] caches\n[-] leader\n[i] policies: loaded\n");
    }

    #[test]
    fn leaving_is_for_good() {
        let readiness = Readiness::new();
        readiness.leave();
        readiness.gate("caches").open();
        assert_eq!(readiness.check(), Err(NotReady::Leaving));
    }
}
