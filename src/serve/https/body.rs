//! Reading request bodies into memory that is accounted for.
//!
//! A body takes its room before it is read, at its announced size: if it took room piece by piece, several large ones
//! would end up waiting for each other. The price is that an announced body which never comes keeps room from others, so
//! while somebody waits for room, the bodies being read have only [`PRESSED`] left.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout_at};

use super::Refusal;
use super::limits::BODY_BYTES;

/// How long a body waits for room. Longer than [`PRESSED`], so that it gets the room of those that are cut for it.
const ROOM_WAIT: Duration = Duration::from_secs(1);

/// How long a body that holds room may still be read once another one waits for room. An API server on the same network
/// sends the longest body in a tenth of this.
const PRESSED: Duration = Duration::from_millis(500);

/// How much of an unwanted body is read and dropped, so that the client is still listening when the answer comes: one
/// that is cut off while it writes may see a broken connection in place of the sentence.
const DISCARD_BYTES: usize = 2 * BODY_BYTES;

/// Room for bodies, in bytes, shared by all connections.
#[derive(Clone, Debug)]
pub(super) struct Room {
    room: Arc<Semaphore>,
    /// How many wait for room.
    waiting: watch::Sender<usize>,
    held: Gauge,
}

/// The room that one body takes, given back on drop.
#[derive(Debug)]
pub(super) struct Held {
    permit: OwnedSemaphorePermit,
    held: Gauge,
}

impl Room {
    pub(super) fn new(bytes: usize, held: Gauge) -> Self {
        let room = Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)));
        Self { room, waiting: watch::Sender::new(0), held }
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
        // The API server always announces; whoever does not is charged for the longest body.
        let announced = body.size_hint().exact().unwrap_or(BODY_BYTES as u64);
        let announced =
            usize::try_from(announced).ok().filter(|bytes| *bytes <= BODY_BYTES).ok_or(Refusal::TooLarge)?;
        let mut held = self.take(announced, until).await?;
        let bytes = tokio::select! {
            biased;
            joined = join(body, announced, until) => joined?,
            () = self.pressed() => return Err(Refusal::NoMemory),
        };
        held.shrink(bytes.len());
        Ok((bytes, held))
    }

    /// Takes room, in turn.
    async fn take(&self, bytes: usize, until: Instant) -> Result<Held, Refusal> {
        let permits = u32::try_from(bytes).map_err(|_| Refusal::TooLarge)?;
        let permit = match Arc::clone(&self.room).try_acquire_many_owned(permits) {
            Ok(permit) => permit,
            Err(_) => {
                let _waiting = Waiting::new(&self.waiting);
                let wait = until.min(Instant::now() + ROOM_WAIT);
                let room = Arc::clone(&self.room).acquire_many_owned(permits);
                // The semaphore is never closed; if it were, there would be no room either.
                timeout_at(wait, room).await.map_err(|_| Refusal::NoMemory)?.map_err(|_| Refusal::NoMemory)?
            }
        };
        self.held.inc_by(i64::from(permits));
        Ok(Held { permit, held: self.held.clone() })
    }

    /// Resolves when others have waited for too long for the room of a body that is being read.
    async fn pressed(&self) {
        // Ends only with somebody waiting: the sender is ours.
        let _ = self.waiting.subscribe().wait_for(|count| *count > 0).await;
        sleep(PRESSED).await;
    }
}

impl Held {
    /// Gives back what was announced and did not come.
    fn shrink(&mut self, bytes: usize) {
        if let Some(surplus) =
            self.permit.num_permits().checked_sub(bytes).and_then(|surplus| self.permit.split(surplus))
        {
            self.held.dec_by(i64::try_from(surplus.num_permits()).unwrap_or(i64::MAX));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.held.dec_by(i64::try_from(self.permit.num_permits()).unwrap_or(i64::MAX));
    }
}

/// Counts somebody as waiting until dropped.
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

/// Reads a body of at most [`BODY_BYTES`] into one piece, without a copy if it comes as one.
async fn join(body: &mut Body, announced: usize, until: Instant) -> Result<Bytes, Refusal> {
    let mut whole = BytesMut::new();
    while let Some(data) = next(body, until).await? {
        if whole.len() + data.len() > BODY_BYTES {
            return Err(Refusal::TooLarge);
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

    fn room(bytes: usize) -> Room {
        Room::new(bytes, Gauge::default())
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    fn filler(bytes: usize) -> Bytes {
        Bytes::from(vec![b' '; bytes])
    }

    #[tokio::test]
    async fn pieces_are_joined_and_charged_until_the_holder_is_dropped() {
        let room = room(BODY_BYTES);
        let (sender, body) = pieces();
        sender.send(Bytes::from_static(b"one ")).unwrap();
        sender.send(Bytes::from_static(b"two")).unwrap();
        drop(sender);
        let (bytes, held) = room.read(body, soon()).await.unwrap();
        assert_eq!(bytes, "one two");
        assert_eq!((room.room.available_permits(), room.held.get()), (BODY_BYTES - 7, 7));
        drop(held);
        assert_eq!((room.room.available_permits(), room.held.get()), (BODY_BYTES, 0));
    }

    #[tokio::test]
    async fn the_limit_holds_for_announced_and_for_chunked_bodies() {
        let room = room(64 << 20);
        let (bytes, _held) = room.read(Body::from(filler(BODY_BYTES)), soon()).await.unwrap();
        assert_eq!(bytes.len(), BODY_BYTES);
        assert_eq!(room.read(Body::from(filler(BODY_BYTES + 1)), soon()).await.unwrap_err(), Refusal::TooLarge);

        let (sender, body) = pieces();
        sender.send(filler(BODY_BYTES)).unwrap();
        sender.send(filler(1)).unwrap();
        drop(sender);
        assert_eq!(room.read(body, soon()).await.unwrap_err(), Refusal::TooLarge);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_arriving_is_given_up_and_its_room_given_back() {
        let room = room(BODY_BYTES);
        let (sender, body) = pieces();
        sender.send(filler(40)).unwrap();
        let started = Instant::now();
        assert_eq!(room.read(body, soon()).await.unwrap_err(), Refusal::BodyTooSlow);
        assert_eq!(started.elapsed().as_secs(), 10);
        assert_eq!((room.room.available_permits(), room.held.get()), (BODY_BYTES, 0));
        drop(sender);
    }

    #[tokio::test(start_paused = true)]
    async fn without_room_a_body_waits_a_moment_and_takes_the_room_that_comes_free() {
        let room = room(10);
        let (_, held) = room.read(Body::from("12345678"), soon()).await.unwrap();
        assert_eq!(room.read(Body::from("123"), soon()).await.unwrap_err(), Refusal::NoMemory);
        let (second, ()) = tokio::join!(room.read(Body::from("123"), soon()), async {
            sleep(ROOM_WAIT / 2).await;
            drop(held);
        });
        assert_eq!(second.unwrap().0, "123");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_in_is_cut_for_one_that_waits() {
        let room = room(BODY_BYTES);
        let (sender, body) = pieces();
        let started = Instant::now();
        let (slow, honest, ()) = tokio::join!(
            async {
                let read = room.read(body, soon()).await.map(drop);
                (read, started.elapsed())
            },
            async {
                sleep(Duration::from_secs(2)).await;
                let read = room.read(Body::from("honest"), soon()).await.map(|(bytes, _)| bytes);
                (read, started.elapsed())
            },
            async {
                while sender.send(filler(1)).is_ok() {
                    sleep(PRESSED / 5).await;
                }
            },
        );
        // The slow one is still being discarded after its room has gone to the honest one.
        assert_eq!(slow.0, Err(Refusal::NoMemory));
        assert_eq!(honest.0.unwrap(), "honest");
        assert!(honest.1 <= Duration::from_secs(2) + PRESSED * 2, "{:?}", honest.1);
        assert!(honest.1 < slow.1);
    }
}
