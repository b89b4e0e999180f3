//! Bodies whose pieces are sent by the test.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::*;

/// A body that ends when the sender is dropped.
struct Pieces {
    pieces: mpsc::UnboundedReceiver<Bytes>,
    announced: u64,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.pieces.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.announced)
    }
}

fn pieces(announced: usize) -> (mpsc::UnboundedSender<Bytes>, Body) {
    let (sender, pieces) = mpsc::unbounded_channel();
    (sender, Body::new(Pieces { pieces, announced: announced as u64 }))
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

impl BodyBudget {
    async fn reads(&self, body: Body) -> Result<(Bytes, HeldBytes), Rejection> {
        self.read(body, Peer::Known, soon()).await.map_err(|not_read| not_read.why)
    }
}

#[tokio::test]
async fn pieces_are_joined_and_charged_until_the_grant_is_dropped() {
    let bodies = bodies(BODY_BYTES);
    let (sender, body) = pieces(BODY_BYTES);
    sender.send(Bytes::from_static(b"one ")).unwrap();
    sender.send(Bytes::from_static(b"two")).unwrap();
    drop(sender);
    let (bytes, held) = bodies.reads(body).await.unwrap();
    assert_eq!((bytes.as_ref(), bodies.0.held()), (&b"one two"[..], 7));
    drop(held);
    assert_eq!(bodies.0.held(), 0);
}

#[tokio::test]
async fn the_limit_holds_for_announced_and_for_chunked_bodies() {
    let bodies = bodies(64 << 20);
    let (bytes, _held) = bodies.reads(Body::from(filler(BODY_BYTES))).await.unwrap();
    assert_eq!(bytes.len(), BODY_BYTES);
    assert_eq!(bodies.reads(Body::from(filler(BODY_BYTES + 1))).await.unwrap_err(), Rejection::TooLarge);

    let (sender, body) = pieces(BODY_BYTES);
    sender.send(filler(BODY_BYTES)).unwrap();
    sender.send(filler(1)).unwrap();
    drop(sender);
    assert_eq!(bodies.reads(body).await.unwrap_err(), Rejection::TooLarge);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_arriving_is_rejected_and_its_bytes_freed() {
    let bodies = bodies(BODY_BYTES);
    let (sender, body) = pieces(BODY_BYTES);
    sender.send(filler(40)).unwrap();
    let started = Instant::now();
    assert_eq!(bodies.reads(body).await.unwrap_err(), Rejection::BodyTooSlow);
    assert_eq!((started.elapsed().as_secs(), bodies.0.held()), (10, 0));
    drop(sender);
}

#[tokio::test(start_paused = true)]
async fn announced_bytes_take_no_memory_until_they_arrive() {
    let bodies = bodies(BODY_BYTES);
    let (_senders, silent): (Vec<_>, Vec<_>) = (0..100).map(|_| pieces(BODY_BYTES)).unzip();
    let mut silent: Vec<_> = silent.into_iter().map(|body| Box::pin(bodies.reads(body))).collect();
    for read in &mut silent {
        assert!(futures_util::poll!(read).is_pending());
    }
    let started = Instant::now();
    assert!(bodies.reads(Body::from(filler(4 << 20))).await.is_ok());
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_body_waits_for_memory_and_keeps_its_head_if_dropped() {
    let bodies = bodies(6 << 20);
    let (_, held) = bodies.reads(Body::from(filler(4 << 20))).await.unwrap();
    let large = || Body::from(filler(2 << 20));
    let not_read = bodies.read(large(), Peer::Known, Instant::now() + Duration::from_secs(1)).await.unwrap_err();
    assert_eq!((not_read.why, not_read.head.len()), (Rejection::NoMemory, HEAD_BYTES));
    // A small body has a reserve.
    assert!(bodies.reads(Body::from(filler(64 << 10))).await.is_ok());
    let (second, ()) = tokio::join!(bodies.reads(large()), async {
        sleep(Duration::from_secs(1)).await;
        drop(held);
    });
    assert!(second.is_ok());
}

/// Sends a piece now and then, until nobody reads any more.
async fn dribble(sender: mpsc::UnboundedSender<Bytes>, bytes: usize) {
    while sender.send(filler(bytes)).is_ok() {
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn slow_bodies_are_dropped_and_those_of_strangers_first() {
    for (slow, fast) in [(Peer::Known, Peer::Known), (Peer::Stranger, Peer::Known)] {
        let bodies = bodies(6 << 20);
        let ((stalled, first), (growing, second)) = (pieces(BODY_BYTES), pieces(BODY_BYTES));
        stalled.send(filler(2 << 20)).unwrap();
        growing.send(filler(2 << 20)).unwrap();
        let started = Instant::now();
        let (first, second, (), honest) = tokio::join!(
            async {
                let not_read = bodies.read(first, slow, soon()).await.unwrap_err();
                (not_read.why, started.elapsed())
            },
            async { tokio::time::timeout(Duration::from_secs(3), bodies.read(second, fast, soon())).await.is_err() },
            async {
                tokio::select! { () = dribble(growing, 1 << 10) => {}, () = sleep(Duration::from_secs(3)) => {} }
            },
            async {
                sleep(Duration::from_secs(1)).await;
                let read = bodies.reads(Body::from(filler(2 << 20))).await.map(|(bytes, _)| bytes.len());
                (read, started.elapsed())
            },
        );
        assert_eq!(first.0, Rejection::NoMemory);
        assert!(second, "the other one is still being read");
        assert_eq!(honest.0, Ok(2 << 20));
        assert!(honest.1 < Duration::from_millis(1_100), "{honest:?}");
        drop(stalled);
    }
}

#[tokio::test(start_paused = true)]
async fn strangers_hold_a_quarter_while_the_api_server_calls() {
    let bodies = bodies(8 << 20);
    let (_, all) = bodies.read(Body::from(filler(6 << 20)), Peer::Stranger, soon()).await.unwrap();
    drop(all);
    drop(bodies.reads(Body::from("called")).await.unwrap());
    let (_, quarter) = bodies.read(Body::from(filler(2 << 20)), Peer::Stranger, soon()).await.unwrap();
    let more = bodies.read(Body::from(filler(1 << 10)), Peer::Stranger, Instant::now() + Duration::from_secs(1)).await;
    assert_eq!(more.unwrap_err().why, Rejection::NoMemory);
    assert!(bodies.reads(Body::from(filler(4 << 20))).await.is_ok());
    drop(quarter);
}
