//! The end: signals, and the phases that every connection watches.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::Limits;
use crate::readiness::Readiness;

/// Where the server is in its life. Later phases are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Answering.
    Serving,
    /// Still answering and accepting, but every answer closes its connection.
    Leaving,
    /// The port is closed; requests in flight finish.
    Closing,
    /// Whatever is left is dropped.
    Aborting,
}

/// How the server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Every request in flight was answered.
    Drained,
    /// The drain ran out of time.
    OutOfTime {
        /// Connections that were dropped.
        cut: usize,
    },
    /// A second signal came.
    Aborted {
        /// Connections that were dropped.
        cut: usize,
    },
}

impl Stopped {
    pub(super) fn with_cut(self, cut: usize) -> Self {
        match self {
            Self::Drained => Self::Drained,
            Self::OutOfTime { .. } => Self::OutOfTime { cut },
            Self::Aborted { .. } => Self::Aborted { cut },
        }
    }
}

/// Requests to end: the first one gently, the second one at once.
#[derive(Debug)]
pub struct Signals {
    requests: mpsc::Receiver<()>,
}

impl Signals {
    /// SIGTERM (from the kubelet) and SIGINT (from a terminal) of this process.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn of_process() -> io::Result<Self> {
        let mut term = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (sender, signals) = Self::manual();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    Some(()) = term.recv() => {}
                    Some(()) = interrupt.recv() => {}
                    else => return,
                }
                if sender.send(()).await.is_err() {
                    return;
                }
            }
        });
        Ok(signals)
    }

    /// Signals sent by hand, for tests and for embedding. A dropped sender is not a signal.
    #[must_use]
    pub fn manual() -> (mpsc::Sender<()>, Self) {
        let (sender, requests) = mpsc::channel(2);
        (sender, Self { requests })
    }

    async fn next(&mut self) {
        if self.requests.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Resolves once the phase is at least `wanted`.
pub(super) async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    if phase.wait_for(|now| *now >= wanted).await.is_err() {
        // The conductor is gone without having said so; the server is being dropped as a whole.
        std::future::pending::<()>().await;
    }
}

/// Turns signals into phases; resolves once the phase is [`Phase::Aborting`].
pub(super) async fn conduct(
    mut signals: Signals,
    phase: &watch::Sender<Phase>,
    readiness: &Readiness,
    limits: &Limits,
) -> Stopped {
    signals.next().await;
    readiness.leave();
    phase.send_replace(Phase::Leaving);
    tracing::info!(accepting_for = ?limits.drain_delay, "shutting down");
    let closing = Instant::now() + limits.drain_delay;
    let stopped = tokio::select! {
        stopped = async {
            sleep_until(closing).await;
            phase.send_replace(Phase::Closing);
            sleep_until(closing + limits.drain).await;
            Stopped::OutOfTime { cut: 0 }
        } => stopped,
        () = signals.next() => Stopped::Aborted { cut: 0 },
    };
    phase.send_replace(Phase::Aborting);
    stopped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_signal_leaves_then_closes_then_runs_out_of_time() {
        let (phase, mut watched) = watch::channel(Phase::Serving);
        let (sender, signals) = Signals::manual();
        let readiness = Readiness::new();
        let limits = Limits::default();
        sender.send(()).await.unwrap();
        let started = Instant::now();

        let watch = async {
            reached(&mut watched, Phase::Leaving).await;
            assert_eq!(started.elapsed(), Duration::ZERO);
            assert!(readiness.check().is_err());
            reached(&mut watched, Phase::Closing).await;
            assert!(started.elapsed() >= limits.drain_delay);
        };
        let (stopped, ()) = tokio::join!(conduct(signals, &phase, &readiness, &limits), watch);
        assert_eq!(stopped, Stopped::OutOfTime { cut: 0 });
        assert!(started.elapsed() >= limits.drain_delay + limits.drain);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_aborts_at_once() {
        let (phase, _watched) = watch::channel(Phase::Serving);
        let (sender, signals) = Signals::manual();
        sender.send(()).await.unwrap();
        sender.send(()).await.unwrap();
        let started = Instant::now();
        let stopped = conduct(signals, &phase, &Readiness::new(), &Limits::default()).await;
        assert_eq!(stopped, Stopped::Aborted { cut: 0 });
        assert_eq!(started.elapsed(), Duration::ZERO);
        assert_eq!(*phase.borrow(), Phase::Aborting);
    }
}
