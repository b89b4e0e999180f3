//! The handle of the certificate tasks: whether this replica leads, the state of the certificates, and a way to wake the tasks.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};

/// The handle of the certificate tasks for the rest of the program.
#[derive(Debug)]
pub struct Rotator {
    leads: AtomicBool,
    wake: Notify,
    state: watch::Sender<String>,
}

impl Rotator {
    pub(super) fn new() -> Self {
        let state = watch::Sender::new("not checked yet".to_owned());
        Self { leads: AtomicBool::new(false), wake: Notify::new(), state }
    }

    /// Rotates the CA until the future is dropped. If two replicas lead, their writes conflict, without harm.
    pub async fn lead(&self) {
        struct Leading<'r>(&'r Rotator);
        impl Drop for Leading<'_> {
            fn drop(&mut self) {
                self.0.leads.store(false, Ordering::Relaxed);
            }
        }
        let _leading = Leading(self);
        self.leads.store(true, Ordering::Relaxed);
        self.wake();
        std::future::pending().await
    }

    /// The state of the certificates, as a sentence.
    #[must_use]
    pub fn state(&self) -> String {
        self.state.borrow().clone()
    }

    pub(super) fn leads(&self) -> bool {
        self.leads.load(Ordering::Relaxed)
    }

    pub(super) fn set_state(&self, state: String) {
        self.state.send_replace(state);
    }

    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Resolves when an object or the leadership has changed.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }
}
