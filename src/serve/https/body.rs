//! Reads request bodies into memory that is accounted for.
//!
//! A body takes its bytes from the budget before it is read, at its announced size: if it took them piece by piece, several
//! large bodies would end up waiting for each other. The drawback is that an announced body which never arrives keeps bytes
//! from others. So while a body waits for bytes, the bodies being read have only [`PRESSED`] left.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::limits::BODY_BYTES;
use super::rejection::Rejection;
use crate::budget::{Budget, Grant};

/// How long a body waits for bytes. Longer than [`PRESSED`], so that it gets the bytes of the bodies that are cut for it.
const GRANT_WAIT: Duration = Duration::from_secs(1);

/// How long a body may still be read once another one waits for bytes. An API server on the same network sends the longest
/// body in a tenth of this.
const PRESSED: Duration = Duration::from_millis(500);

/// How much of a rejected body is read and dropped, so that the client is still listening when the answer comes: a client
/// that is cut off while it writes may see a broken connection instead of the sentence.
const DISCARD_BYTES: usize = 2 * BODY_BYTES;

/// Bytes for bodies, shared by all connections.
#[derive(Clone, Debug)]
pub(super) struct BodyBudget {
    budget: Budget,
    /// How many bodies wait for bytes.
    waiting: watch::Sender<usize>,
    held: Gauge,
}

/// The bytes that one body holds, given back on drop.
#[derive(Debug)]
pub(super) struct HeldBytes {
    grant: Grant,
    held: Gauge,
}

impl BodyBudget {
    pub(super) fn new(bytes: usize, held: Gauge) -> Self {
        Self { budget: Budget::new(bytes), waiting: watch::Sender::new(0), held }
    }

    /// Reads `body` to its end.
    ///
    /// # Errors
    /// [`Rejection::TooLarge`] above [`BODY_BYTES`], [`Rejection::BodyTooSlow`] when `until` passes,
    /// [`Rejection::BodyBroken`] when it ends early, [`Rejection::NoMemory`] when other bodies hold the bytes.
    pub(super) async fn read(&self, mut body: Body, until: Instant) -> Result<(Bytes, HeldBytes), Rejection> {
        let read = self.collect(&mut body, until).await;
        if matches!(read, Err(Rejection::TooLarge | Rejection::NoMemory)) {
            discard(body, until).await;
        }
        read
    }

    async fn collect(&self, body: &mut Body, until: Instant) -> Result<(Bytes, HeldBytes), Rejection> {
        // The API server always sends a Content-Length. Without one a body is charged as the longest body.
        let announced = body.size_hint().exact().unwrap_or(BODY_BYTES as u64);
        let announced =
            usize::try_from(announced).ok().filter(|bytes| *bytes <= BODY_BYTES).ok_or(Rejection::TooLarge)?;
        let mut held = self.take(announced, until).await?;
        let bytes = tokio::select! {
            biased;
            joined = join(body, announced, until) => joined?,
            () = self.pressed() => return Err(Rejection::NoMemory),
        };
        held.shrink(bytes.len());
        Ok((bytes, held))
    }

    /// Takes bytes, in the order of the calls.
    async fn take(&self, bytes: usize, until: Instant) -> Result<HeldBytes, Rejection> {
        let grant = match self.budget.try_grant(bytes) {
            Some(grant) => grant,
            None => {
                let _waiting = Waiting::new(&self.waiting);
                let wait = until.min(Instant::now() + GRANT_WAIT);
                let granted = timeout_at(wait, self.budget.grant(bytes)).await;
                granted.ok().flatten().ok_or(Rejection::NoMemory)?
            }
        };
        self.held.inc_by(gauge(grant.bytes()));
        Ok(HeldBytes { grant, held: self.held.clone() })
    }

    /// Resolves when others have waited too long for the bytes of a body that is being read.
    async fn pressed(&self) {
        // The sender is ours, so this ends only when a body waits.
        let _ = self.waiting.subscribe().wait_for(|count| *count > 0).await;
        sleep(PRESSED).await;
    }
}

impl HeldBytes {
    /// Gives back bytes that were announced and did not arrive.
    fn shrink(&mut self, bytes: usize) {
        let before = self.grant.bytes();
        self.grant.shrink(bytes);
        self.held.dec_by(gauge(before - self.grant.bytes()));
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.held.dec_by(gauge(self.grant.bytes()));
    }
}

fn gauge(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Counts a waiting body until dropped.
struct Waiting<'a>(&'a watch::Sender<usize>);

impl<'a> Waiting<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Reads and drops the rest of a rejected body, up to a limit.
pub(super) async fn discard(mut body: Body, until: Instant) {
    let mut left = DISCARD_BYTES;
    while let Ok(Some(data)) = next(&mut body, until).await {
        match left.checked_sub(data.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// Reads a body of at most [`BODY_BYTES`] into one piece, without a copy if it arrives as one.
async fn join(body: &mut Body, announced: usize, until: Instant) -> Result<Bytes, Rejection> {
    let mut whole = BytesMut::new();
    while let Some(data) = next(body, until).await? {
        if whole.len() + data.len() > BODY_BYTES {
            return Err(Rejection::TooLarge);
        }
        if whole.is_empty() {
            if body.is_end_stream() {
                return Ok(data);
            }
            // Memory that is never touched costs nothing.
            whole.reserve(announced);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// The next piece of the body; `None` at its end.
async fn next(body: &mut Body, until: Instant) -> Result<Option<Bytes>, Rejection> {
    loop {
        match timeout_at(until, body.frame()).await {
            Err(_) => return Err(Rejection::BodyTooSlow),
            Ok(Some(Err(_))) => return Err(Rejection::BodyBroken),
            Ok(None) => return Ok(None),
            // No review has trailers.
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use tokio::sync::mpsc;

    use super::*;

    /// A body whose pieces are sent by the test; it ends when the sender is dropped.
    struct Pieces(mpsc::UnboundedReceiver<Bytes>);

    impl hyper::body::Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    fn pieces() -> (mpsc::UnboundedSender<Bytes>, Body) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (sender, Body::new(Pieces(receiver)))
    }

    fn bodies(bytes: usize) -> BodyBudget {
        BodyBudget::new(bytes, Gauge::default())
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    fn filler(bytes: usize) -> Bytes {
        Bytes::from(vec![b' '; bytes])
    }

    #[tokio::test]
    async fn pieces_are_joined_and_charged_until_the_grant_is_dropped() {
        let bodies = bodies(BODY_BYTES);
        let (sender, body) = pieces();
        sender.send(Bytes::from_static(b"one ")).unwrap();
        sender.send(Bytes::from_static(b"two")).unwrap();
        drop(sender);
        let (bytes, held) = bodies.read(body, soon()).await.unwrap();
        assert_eq!(bytes, "one two");
        assert_eq!((bodies.budget.free(), bodies.held.get()), (BODY_BYTES - 7, 7));
        drop(held);
        assert_eq!((bodies.budget.free(), bodies.held.get()), (BODY_BYTES, 0));
    }

    #[tokio::test]
    async fn the_limit_holds_for_announced_and_for_chunked_bodies() {
        let bodies = bodies(64 << 20);
        let (bytes, _held) = bodies.read(Body::from(filler(BODY_BYTES)), soon()).await.unwrap();
        assert_eq!(bytes.len(), BODY_BYTES);
        assert_eq!(bodies.read(Body::from(filler(BODY_BYTES + 1)), soon()).await.unwrap_err(), Rejection::TooLarge);

        let (sender, body) = pieces();
        sender.send(filler(BODY_BYTES)).unwrap();
        sender.send(filler(1)).unwrap();
        drop(sender);
        assert_eq!(bodies.read(body, soon()).await.unwrap_err(), Rejection::TooLarge);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_arriving_is_rejected_and_its_bytes_freed() {
        let bodies = bodies(BODY_BYTES);
        let (sender, body) = pieces();
        sender.send(filler(40)).unwrap();
        let started = Instant::now();
        assert_eq!(bodies.read(body, soon()).await.unwrap_err(), Rejection::BodyTooSlow);
        assert_eq!(started.elapsed().as_secs(), 10);
        assert_eq!((bodies.budget.free(), bodies.held.get()), (BODY_BYTES, 0));
        drop(sender);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_waits_a_moment_for_bytes_that_are_freed() {
        let bodies = bodies(10);
        let (_, held) = bodies.read(Body::from("12345678"), soon()).await.unwrap();
        assert_eq!(bodies.read(Body::from("123"), soon()).await.unwrap_err(), Rejection::NoMemory);
        let (second, ()) = tokio::join!(bodies.read(Body::from("123"), soon()), async {
            sleep(GRANT_WAIT / 2).await;
            drop(held);
        });
        assert_eq!(second.unwrap().0, "123");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_cut_for_one_that_waits() {
        let bodies = bodies(BODY_BYTES);
        let (sender, body) = pieces();
        let started = Instant::now();
        let (slow, honest, ()) = tokio::join!(
            async {
                let read = bodies.read(body, soon()).await.map(drop);
                (read, started.elapsed())
            },
            async {
                sleep(Duration::from_secs(2)).await;
                let read = bodies.read(Body::from("honest"), soon()).await.map(|(bytes, _)| bytes);
                (read, started.elapsed())
            },
            async {
                while sender.send(filler(1)).is_ok() {
                    sleep(PRESSED / 5).await;
                }
            },
        );
        // The slow body is still being discarded after its bytes have gone to the honest one.
        assert_eq!(slow.0, Err(Rejection::NoMemory));
        assert_eq!(honest.0.unwrap(), "honest");
        assert!(honest.1 <= Duration::from_secs(2) + PRESSED * 2, "{:?}", honest.1);
        assert!(honest.1 < slow.1);
    }
}
