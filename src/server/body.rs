//! Reading request bodies into memory that is accounted for.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::Refusal;
use super::limits::BODY_BYTES;

/// How long a body waits for room. Short, because bodies that wait hold room themselves: when several large ones wait
/// for each other, the one that gives up first lets the others through.
const ROOM_WAIT: Duration = Duration::from_secs(1);

/// How much of an unwanted body is read and dropped, so that the client is still listening when the answer comes: one
/// that is cut off while it writes may see a broken connection in place of the sentence.
const DISCARD_BYTES: usize = 2 * BODY_BYTES;

/// Room for bodies, in bytes, shared by all connections. Bytes are charged as they arrive, not as they are announced:
/// an announced body that never comes must not keep others out.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    room: Arc<Semaphore>,
    held: Gauge,
}

/// The room that one body takes, given back on drop.
#[derive(Debug)]
pub(super) struct Held {
    permit: Option<OwnedSemaphorePermit>,
    held: Gauge,
}

impl Budget {
    pub(super) fn new(bytes: usize, held: Gauge) -> Self {
        Self { room: Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))), held }
    }

    /// Reads `body` to its end.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] above [`BODY_BYTES`], [`Refusal::BodyTooSlow`] when `until` passes,
    /// [`Refusal::BodyBroken`] when it ends early, [`Refusal::NoMemory`] when other bodies take the room.
    pub(super) async fn read(&self, mut body: Body, until: Instant) -> Result<(Bytes, Held), Refusal> {
        let read = self.collect(&mut body, until).await;
        if matches!(read, Err(Refusal::TooLarge | Refusal::NoMemory)) {
            discard(body, until).await;
        }
        read
    }

    async fn collect(&self, body: &mut Body, until: Instant) -> Result<(Bytes, Held), Refusal> {
        let announced = body.size_hint().exact().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        if announced.is_some_and(|bytes| bytes > BODY_BYTES) {
            return Err(Refusal::TooLarge);
        }
        let mut held = Held { permit: None, held: self.held.clone() };
        let mut whole = BytesMut::new();
        while let Some(data) = next(body, until).await? {
            if whole.len() + data.len() > BODY_BYTES {
                return Err(Refusal::TooLarge);
            }
            self.charge(&mut held, data.len(), until).await?;
            if whole.is_empty() {
                if body.is_end_stream() {
                    return Ok((data, held));
                }
                // Untouched memory costs nothing, so the announced size may be believed here.
                whole.reserve(announced.unwrap_or(2 * data.len()));
            }
            whole.extend_from_slice(&data);
        }
        Ok((whole.freeze(), held))
    }

    async fn charge(&self, held: &mut Held, bytes: usize, until: Instant) -> Result<(), Refusal> {
        let permits = u32::try_from(bytes).map_err(|_| Refusal::TooLarge)?;
        let wait = until.min(Instant::now() + ROOM_WAIT);
        let permit = timeout_at(wait, Arc::clone(&self.room).acquire_many_owned(permits))
            .await
            .map_err(|_| Refusal::NoMemory)?
            // The semaphore is never closed; if it were, there would be no room either.
            .map_err(|_| Refusal::NoMemory)?;
        self.held.inc_by(i64::from(permits));
        match &mut held.permit {
            Some(whole) => whole.merge(permit),
            none => *none = Some(permit),
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let bytes = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        self.held.dec_by(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

/// Reads and drops what is left of an unwanted body, up to a limit.
pub(super) async fn discard(mut body: Body, until: Instant) {
    let mut left = DISCARD_BYTES;
    while let Ok(Some(data)) = next(&mut body, until).await {
        match left.checked_sub(data.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// The next piece of the body; `None` at its end.
async fn next(body: &mut Body, until: Instant) -> Result<Option<Bytes>, Refusal> {
    loop {
        match timeout_at(until, body.frame()).await {
            Err(_) => return Err(Refusal::BodyTooSlow),
            Ok(Some(Err(_))) => return Err(Refusal::BodyBroken),
            Ok(None) => return Ok(None),
            // Trailers carry nothing that a review needs.
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

    fn budget(bytes: usize) -> Budget {
        Budget::new(bytes, Gauge::default())
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    fn filler(bytes: usize) -> Bytes {
        Bytes::from(vec![b' '; bytes])
    }

    #[tokio::test]
    async fn pieces_are_joined_and_charged_until_the_holder_is_dropped() {
        let budget = budget(100);
        let (sender, body) = pieces();
        sender.send(Bytes::from_static(b"one ")).unwrap();
        sender.send(Bytes::from_static(b"two")).unwrap();
        drop(sender);
        let (bytes, held) = budget.read(body, soon()).await.unwrap();
        assert_eq!(bytes, "one two");
        assert_eq!((budget.room.available_permits(), budget.held.get()), (93, 7));
        drop(held);
        assert_eq!((budget.room.available_permits(), budget.held.get()), (100, 0));
    }

    #[tokio::test]
    async fn the_limit_holds_for_announced_and_for_chunked_bodies() {
        let budget = budget(64 << 20);
        let (bytes, _held) = budget.read(Body::from(filler(BODY_BYTES)), soon()).await.unwrap();
        assert_eq!(bytes.len(), BODY_BYTES);
        assert_eq!(budget.read(Body::from(filler(BODY_BYTES + 1)), soon()).await.unwrap_err(), Refusal::TooLarge);

        let (sender, body) = pieces();
        sender.send(filler(BODY_BYTES)).unwrap();
        sender.send(filler(1)).unwrap();
        drop(sender);
        assert_eq!(budget.read(body, soon()).await.unwrap_err(), Refusal::TooLarge);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_arriving_is_given_up_and_its_room_given_back() {
        let budget = budget(100);
        let (sender, body) = pieces();
        sender.send(filler(40)).unwrap();
        let started = Instant::now();
        assert_eq!(budget.read(body, soon()).await.unwrap_err(), Refusal::BodyTooSlow);
        assert_eq!(started.elapsed().as_secs(), 10);
        assert_eq!(budget.room.available_permits(), 100);
        drop(sender);
    }

    #[tokio::test(start_paused = true)]
    async fn without_room_a_body_waits_a_moment_and_takes_the_room_that_comes_free() {
        let budget = budget(10);
        let (_, held) = budget.read(Body::from("12345678"), soon()).await.unwrap();
        assert_eq!(budget.read(Body::from("123"), soon()).await.unwrap_err(), Refusal::NoMemory);
        let (second, ()) = tokio::join!(budget.read(Body::from("123"), soon()), async {
            tokio::time::sleep(ROOM_WAIT / 2).await;
            drop(held);
        });
        assert_eq!(second.unwrap().0, "123");
    }

    #[tokio::test(start_paused = true)]
    async fn an_announced_body_that_never_comes_takes_no_room() {
        let budget = budget(10);
        let (_sender, body) = pieces();
        let silent = tokio::spawn({
            let budget = budget.clone();
            async move { budget.read(body, soon()).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(budget.read(Body::from("1234567890"), soon()).await.unwrap().0, "1234567890");
        silent.abort();
    }
}
