//! What everybody who acts shares.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::harness::clients::{Identity, Kubectl};
use crate::harness::cluster::Cluster;
use crate::harness::eventually::within;
use crate::harness::process::Output;

use super::ledger::Ledger;

/// How long the API server may be away.
pub(crate) const AWAY: Duration = Duration::from_secs(90);

/// The accounts of controllers.
pub(crate) struct Controllers {
    pub(crate) flux: Identity,
    pub(crate) argo: Identity,
}

pub(crate) struct Site<'c> {
    pub(crate) cluster: &'c Cluster,
    pub(crate) ledger: &'c Ledger,
    pub(crate) controllers: Controllers,
    /// Duties of the leader: done, and not done with the reason.
    duties: Mutex<BTreeMap<&'static str, (u64, Vec<String>)>>,
    stop: AtomicBool,
}

impl<'c> Site<'c> {
    pub(crate) fn new(cluster: &'c Cluster, ledger: &'c Ledger, controllers: Controllers) -> Self {
        Self { cluster, ledger, controllers, duties: Mutex::default(), stop: AtomicBool::new(false) }
    }

    /// Everybody ends at the next step, or may begin again.
    pub(crate) fn set_stopped(&self, stop: bool) {
        self.stop.store(stop, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps, but not beyond the stop.
    pub(crate) fn sleep(&self, how_long: Duration) {
        let start = std::time::Instant::now();
        while start.elapsed() < how_long && !self.is_stopped() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Notes whether a duty of the leader was done.
    pub(crate) fn duty(&self, what: &'static str, done: Result<(), String>) {
        let mut duties = self.duties.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, lost) = duties.entry(what).or_default();
        match done {
            Ok(()) => *count += 1,
            Err(why) => lost.push(why),
        }
    }

    /// The duties that were done, and the reasons of the others.
    pub(crate) fn duties(&self) -> Vec<(&'static str, u64, Vec<String>)> {
        let duties = self.duties.lock().unwrap_or_else(PoisonError::into_inner);
        duties.iter().map(|(what, (done, lost))| (*what, *done, lost.clone())).collect()
    }
}

/// Repeats a command that must succeed while the API server may be away. `None` if it never does.
pub(crate) fn steady(kubectl: &Kubectl, args: &[&str]) -> Option<Output> {
    within(AWAY, "the API server obeys", || kubectl.run(args).into_result()).ok()
}
