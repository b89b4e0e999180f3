//! Reads request bodies into memory that is accounted for.
//!
//! A body takes its bytes as they arrive: what is announced and never sent keeps nothing from others. If there are no more, the
//! body that has grown the least lately is dropped, strangers' first: an API server on the same network sends the longest body in
//! a few milliseconds. Bodies of ordinary reviews have a reserve of their own.

mod ledger;

use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::{Instant, timeout_at};

use super::limits::BODY_BYTES;
use super::rejection::Rejection;
use crate::budget::Peer;
use ledger::{Entry, Ledger};

/// How much of a body is kept that there is no memory for, in bytes: the head of the review, which says who wants what.
const HEAD_BYTES: usize = 16 << 10;

/// How much of a rejected body is read and dropped, so that the client is still listening when the answer comes: a client
/// that is cut off while it writes may see a broken connection instead of the sentence.
const DISCARD_BYTES: usize = 2 * BODY_BYTES;

/// Bytes for bodies, shared by all connections.
#[derive(Clone, Debug)]
pub(super) struct BodyBudget(Arc<Ledger>);

/// The bytes that one body holds, given back on drop.
pub(super) type HeldBytes = Entry;

/// A body that was not read to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotRead {
    pub(super) why: Rejection,
    /// Its first bytes, if there was no memory for the rest.
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
        let read = self.collect(&mut body, peer, until).await;
        if read.as_ref().is_err_and(|not| matches!(not.why, Rejection::TooLarge | Rejection::NoMemory)) {
            discard(body, until).await;
        }
        read
    }

    async fn collect(&self, body: &mut Body, peer: Peer, until: Instant) -> Result<(Bytes, HeldBytes), NotRead> {
        // The API server always sends a Content-Length. Without one a body may be as long as the longest.
        let announced = body.size_hint().exact().unwrap_or(BODY_BYTES as u64);
        let announced = usize::try_from(announced).ok().filter(|bytes| *bytes <= BODY_BYTES);
        let announced = announced.ok_or(Rejection::TooLarge)?;
        let (mut entry, mut cut) = self.0.enter(peer, announced);
        let mut whole = Whole::new(announced);
        loop {
            let data = tokio::select! {
                biased;
                () = cut.happens() => return Err(whole.not_read(Rejection::NoMemory)),
                data = next(body, until) => data?,
            };
            let Some(data) = data else {
                entry.complete();
                return Ok((whole.into_bytes(), entry));
            };
            if whole.len() + data.len() > BODY_BYTES {
                return Err(Rejection::TooLarge.into());
            }
            let grown = tokio::select! {
                biased;
                () = cut.happens() => false,
                grown = entry.grow(data.len(), until) => grown,
            };
            whole.push(data, body.is_end_stream());
            if !grown {
                return Err(whole.not_read(Rejection::NoMemory));
            }
        }
    }
}

/// The pieces of a body, joined without a copy if it arrives as one.
enum Whole {
    One(Bytes),
    Several(BytesMut, usize),
}

impl Whole {
    fn new(announced: usize) -> Self {
        Self::Several(BytesMut::new(), announced)
    }

    fn len(&self) -> usize {
        match self {
            Self::One(bytes) => bytes.len(),
            Self::Several(bytes, _) => bytes.len(),
        }
    }

    fn push(&mut self, data: Bytes, is_last: bool) {
        match self {
            Self::Several(bytes, _) if bytes.is_empty() && is_last => *self = Self::One(data),
            Self::Several(bytes, announced) => {
                // Memory that is never touched costs nothing.
                bytes.reserve(announced.saturating_sub(bytes.len()).max(data.len()));
                bytes.extend_from_slice(&data);
            }
            Self::One(first) => {
                let mut bytes = BytesMut::from(first.as_ref());
                bytes.extend_from_slice(&data);
                let announced = bytes.len();
                *self = Self::Several(bytes, announced);
            }
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::One(bytes) => bytes,
            Self::Several(bytes, _) => bytes.freeze(),
        }
    }

    fn not_read(self, why: Rejection) -> NotRead {
        let bytes = self.into_bytes();
        NotRead { why, head: Bytes::copy_from_slice(&bytes[..bytes.len().min(HEAD_BYTES)]) }
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
mod tests;
