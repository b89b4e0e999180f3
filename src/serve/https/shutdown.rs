//! Shutdown: signals, and the phases that every connection watches.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::limits::Limits;
use crate::readiness::Readiness;

/// The phases of the server, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShutdownPhase {
    Serving,
    /// The server still accepts connections and answers, but every answer closes its connection.
    Leaving,
    /// The port is closed, and requests in flight finish. The server asks clients to close idle connections.
    Closing,
    /// The server drops the remaining connections.
    Aborting,
}

/// How the server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Every request in flight was answered.
    Drained,
    /// The drain timed out.
    OutOfTime { cut: usize },
    /// A second signal arrived.
    Aborted { cut: usize },
}

impl Stopped {
    /// With the number of connections that were cut. Without any, every request was answered, whatever ended the wait.
    pub(super) fn with_cut(self, cut: usize) -> Self {
        match self {
            _ if cut == 0 => Self::Drained,
            Self::Drained => Self::Drained,
            Self::OutOfTime { .. } => Self::OutOfTime { cut },
            Self::Aborted { .. } => Self::Aborted { cut },
        }
    }
}

/// Requests to stop: the first one stops gracefully, the second one at once.
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
pub(super) async fn reached(phase: &mut watch::Receiver<ShutdownPhase>, wanted: ShutdownPhase) {
    if phase.wait_for(|now| *now >= wanted).await.is_err() {
        // The sender is dropped, so the server is being dropped too.
        std::future::pending::<()>().await;
    }
}

/// When the last connection arrived. Clones share the value.
#[derive(Clone, Debug)]
pub(super) struct Arrivals(Arc<Mutex<Instant>>);

impl Arrivals {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// Notes that a connection has just arrived.
    pub(super) fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until no client connects any more: until [`Limits::drain_delay`] has passed since the signal and since the last connection. A
/// client that connects does not know yet that the endpoint is removed. Half of [`Limits::drain`] is reserved for requests in flight,
/// even if connections still arrive.
async fn until_nobody_connects(arrivals: &Arrivals, limits: &Limits) {
    let signal = Instant::now();
    let latest = signal + limits.drain_delay + limits.drain / 2;
    loop {
        let closing = (arrivals.last().max(signal) + limits.drain_delay).min(latest);
        if closing <= Instant::now() {
            return;
        }
        sleep_until(closing).await;
    }
}

/// Turns signals into phases. Resolves once the phase is [`ShutdownPhase::Aborting`].
pub(super) async fn run_phases(
    mut signals: Signals,
    phase: &watch::Sender<ShutdownPhase>,
    readiness: &Readiness,
    arrivals: &Arrivals,
    limits: &Limits,
) -> Stopped {
    signals.next().await;
    readiness.leave();
    phase.send_replace(ShutdownPhase::Leaving);
    tracing::info!(accepting_for = ?limits.drain_delay, "shutting down");
    let end = Instant::now() + limits.drain_delay + limits.drain;
    let stopped = tokio::select! {
        stopped = async {
            until_nobody_connects(arrivals, limits).await;
            phase.send_replace(ShutdownPhase::Closing);
            sleep_until(end).await;
            Stopped::OutOfTime { cut: 0 }
        } => stopped,
        () = signals.next() => Stopped::Aborted { cut: 0 },
    };
    phase.send_replace(ShutdownPhase::Aborting);
    stopped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_signal_leaves_then_closes_then_times_out() {
        let (phase, mut watched) = watch::channel(ShutdownPhase::Serving);
        let (sender, signals) = Signals::manual();
        let readiness = Readiness::new();
        let limits = Limits::default();
        sender.send(()).await.unwrap();
        let started = Instant::now();

        let watch = async {
            reached(&mut watched, ShutdownPhase::Leaving).await;
            assert_eq!(started.elapsed(), Duration::ZERO);
            assert!(readiness.check().is_err());
            reached(&mut watched, ShutdownPhase::Closing).await;
            assert!(started.elapsed() >= limits.drain_delay);
        };
        let arrivals = Arrivals::new();
        let (stopped, ()) = tokio::join!(run_phases(signals, &phase, &readiness, &arrivals, &limits), watch);
        assert_eq!(stopped, Stopped::OutOfTime { cut: 0 });
        assert!(started.elapsed() >= limits.drain_delay + limits.drain);
    }

    #[tokio::test(start_paused = true)]
    async fn arriving_connections_keep_the_port_open_for_a_limited_time() {
        let limits = Limits::default();
        for (until, closes) in [(Duration::from_secs(7), 11), (Duration::MAX, 15)] {
            let (arrivals, started) = (Arrivals::new(), Instant::now());
            let arriving = arrivals.clone();
            let client = tokio::spawn(async move {
                while started.elapsed() < until {
                    arriving.note();
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            });
            until_nobody_connects(&arrivals, &limits).await;
            client.abort();
            assert_eq!(started.elapsed().as_secs(), closes, "connections arrive for {until:?}");
        }
    }

    #[test]
    fn a_second_signal_while_nothing_is_in_flight_cuts_nothing() {
        let (late, aborted) = (Stopped::OutOfTime { cut: 0 }, Stopped::Aborted { cut: 0 });
        assert_eq!((late.with_cut(0), aborted.with_cut(0)), (Stopped::Drained, Stopped::Drained));
        assert_eq!(aborted.with_cut(2), Stopped::Aborted { cut: 2 });
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_aborts_at_once() {
        let (phase, _watched) = watch::channel(ShutdownPhase::Serving);
        let (sender, signals) = Signals::manual();
        sender.send(()).await.unwrap();
        sender.send(()).await.unwrap();
        let started = Instant::now();
        let stopped = run_phases(signals, &phase, &Readiness::new(), &Arrivals::new(), &Limits::default()).await;
        assert_eq!(stopped, Stopped::Aborted { cut: 0 });
        assert_eq!(started.elapsed(), Duration::ZERO);
        assert_eq!(*phase.borrow(), ShutdownPhase::Aborting);
    }
}
