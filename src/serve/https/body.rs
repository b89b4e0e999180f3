//! Reads request bodies within a memory budget.
//!
//! A body takes its bytes from the budget as they arrive, so a body that is announced but never sent takes nothing. If the budget is
//! used up, the server drops the body that grew the least lately, bodies of strangers first. An API server on the same network sends
//! the longest body in a few milliseconds. Ordinary, small reviews have their own reserve.

mod ledger;

use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use prometheus_client::metrics::gauge::Gauge;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use super::limits::BODY_BYTES;
use super::rejection::Rejection;
use crate::budget::Peer;
use ledger::{Entry, Ledger};

/// How much of a body is kept if memory runs out, in bytes: the head of the review, with the user and the operation.
const HEAD_BYTES: usize = 16 << 10;

/// How much of a rejected body is read and dropped, in bytes. Otherwise a client that is still writing may see a broken connection
/// instead of the answer.
const DISCARD_BYTES: usize = 2 * BODY_BYTES;

/// Bytes for bodies, shared by all connections.
#[derive(Clone, Debug)]
pub(super) struct BodyBudget(Arc<Ledger>);

/// The bytes of one body. Returned to the budget on drop.
pub(super) type HeldBytes = Entry;

/// A body that was not read to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotRead {
    pub(super) why: Rejection,
    /// The first bytes of the body, if there was no memory for the rest.
    pub(super) head: Bytes,
}

impl From<Rejection> for NotRead {
    fn from(why: Rejection) -> Self {
        Self { why, head: Bytes::new() }
    }
}

impl BodyBudget {
    pub(super) fn new(bytes: usize, held: Gauge) -> Self {
        Self(Arc::new(Ledger::new(bytes, held)))
    }

    /// Reads `body` to its end.
    ///
    /// # Errors
    /// [`Rejection::TooLarge`] above [`BODY_BYTES`], [`Rejection::BodyTooSlow`] when `until` passes,
    /// [`Rejection::BodyBroken`] when it ends early, [`Rejection::NoMemory`] when other bodies hold the bytes.
    pub(super) async fn read(&self, mut body: Body, peer: Peer, until: Instant) -> Result<(Bytes, HeldBytes), NotRead> {
        match self.collect(&mut body, peer, until).await {
            Err(unread) if matches!(unread.why, Rejection::TooLarge | Rejection::NoMemory) => {
                discard(body, until).await;
                Err(unread)
            }
            read => read,
        }
    }

    async fn collect(&self, body: &mut Body, peer: Peer, until: Instant) -> Result<(Bytes, HeldBytes), NotRead> {
        // The API server always sends a Content-Length. A body without one counts as the longest.
        let announced = body.size_hint().exact().unwrap_or(BODY_BYTES as u64);
        let announced = usize::try_from(announced).ok().filter(|bytes| *bytes <= BODY_BYTES);
        let announced = announced.ok_or(Rejection::TooLarge)?;
        let (mut entry, mut dropped) = self.0.enter(peer, announced);
        let mut collected = BytesMut::new();
        let read = tokio::select! {
            biased;
            () = dropped.received() => Err(Rejection::NoMemory),
            read = join(body, announced, &mut collected, &mut entry, until) => read,
        };
        match read {
            Ok(bytes) => {
                entry.complete();
                Ok((bytes, entry))
            }
            Err(Rejection::NoMemory) => {
                let head = Bytes::copy_from_slice(&collected[..collected.len().min(HEAD_BYTES)]);
                Err(NotRead { why: Rejection::NoMemory, head })
            }
            Err(why) => Err(why.into()),
        }
    }
}

/// Reads a body of at most [`BODY_BYTES`] into one piece, without a copy if it arrives as one piece. If the body ends early, `collected`
/// contains the part that arrived.
async fn join(
    body: &mut Body,
    announced: usize,
    collected: &mut BytesMut,
    entry: &mut Entry,
    until: Instant,
) -> Result<Bytes, Rejection> {
    while let Some(data) = next(body, until).await? {
        if collected.len() + data.len() > BODY_BYTES {
            return Err(Rejection::TooLarge);
        }
        let is_all = collected.is_empty() && body.is_end_stream();
        if !is_all {
            // Reserved memory costs nothing until it is written.
            collected.reserve(announced.saturating_sub(collected.len()).max(data.len()));
            collected.extend_from_slice(&data);
        }
        if !entry.grow(data.len(), until).await {
            if is_all {
                collected.extend_from_slice(&data);
            }
            return Err(Rejection::NoMemory);
        }
        if is_all {
            return Ok(data);
        }
        // Otherwise a long body that arrives at once would block its thread for short bodies.
        yield_now().await;
    }
    Ok(collected.split().freeze())
}

/// Reads and drops the rest of a rejected body, up to a limit.
pub(super) async fn discard(mut body: Body, until: Instant) {
    let mut left = DISCARD_BYTES;
    while let Ok(Some(data)) = next(&mut body, until).await {
        match left.checked_sub(data.len()) {
            Some(rest) => left = rest,
            None => return,
        }
        yield_now().await;
    }
}

/// The next piece of the body. `None` at the end.
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
mod tests;
