//! The body of an answer. A projected body is kept in parts, and any other body is limited in total.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use kube::client::Body;

use super::metrics::IntakeMetrics;
use super::projector::{Keep, Malformed, Projector};
use crate::budget::{Budget, Flow, Grant};

/// The largest text of one object, in bytes. etcd stores 1.5 MiB by default, and the API server accepts at most 3 MiB. base64 and
/// JSON enlarge them.
const MAX_TEXT_BYTES: usize = 8 << 20;

/// The maximum kept size of a list, in bytes.
const MAX_KEPT_BYTES: usize = 16 << 20;

/// The size of an answer that is not charged, in bytes. Most answers are smaller.
const FREE_BYTES: usize = 64 << 10;

/// The minimum factor by which a charge grows.
const CHARGE_FACTOR: usize = 4;

/// Why an answer of the API server cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IntakeError {
    #[error("the answer is larger than {} MiB", .0 >> 20)]
    TooLarge(usize),
    #[error("the answer is not JSON")]
    Malformed,
}

impl From<Malformed> for IntakeError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

type AwaitedGrant = Pin<Box<dyn Future<Output = Grant> + Send>>;

/// The body of an answer.
pub(super) struct IntakeBody {
    body: Body,
    reading: Reading,
    charge: Option<Charge>,
    /// The part that was read and waits for its charge.
    held: Bytes,
    metrics: Arc<IntakeMetrics>,
}

enum Reading {
    Unprojected { read: usize },
    Projected { projector: Box<Projector>, resource: &'static str, kept: usize },
}

/// The memory that an answer is charged for.
struct Charge {
    budget: Budget,
    grants: Vec<Grant>,
    /// Whether the budget cannot grant more.
    is_full: bool,
    /// The requested number of bytes, and the pending grant.
    awaited: Option<(usize, AwaitedGrant)>,
}

impl IntakeBody {
    /// A body that is kept unchanged.
    pub(super) fn complete(body: Body, budget: Budget, metrics: Arc<IntakeMetrics>) -> Self {
        Self::new(body, Reading::Unprojected { read: 0 }, Some(Charge::to(budget)), metrics)
    }

    /// The body of an object, a list or a watch, of which these fields are kept. `budget` is `None` for a watch: each line is read
    /// before the next one arrives, so none is charged.
    pub(super) fn projected(
        body: Body,
        resource: &'static str,
        keep: &'static Keep,
        budget: Option<Budget>,
        metrics: Arc<IntakeMetrics>,
    ) -> Self {
        let projector = Box::new(Projector::new(keep));
        Self::new(body, Reading::Projected { projector, resource, kept: 0 }, budget.map(Charge::to), metrics)
    }

    fn new(body: Body, reading: Reading, charge: Option<Charge>, metrics: Arc<IntakeMetrics>) -> Self {
        Self { body, reading, charge, held: Bytes::new(), metrics }
    }

    /// The kept bytes of the next part.
    fn read(&mut self, part: Bytes) -> Result<Bytes, IntakeError> {
        self.metrics.count_bytes(part.len());
        match &mut self.reading {
            Reading::Unprojected { read } => {
                *read += part.len();
                if *read > MAX_TEXT_BYTES {
                    self.metrics.count_too_large("object", 1);
                    return Err(IntakeError::TooLarge(MAX_TEXT_BYTES));
                }
                Ok(part)
            }
            Reading::Projected { projector, resource, kept } => {
                projector.push(&part)?;
                self.metrics.count_too_large(resource, projector.take_cut());
                let part = projector.take();
                *kept += part.len();
                if self.charge.is_some() && *kept > MAX_KEPT_BYTES {
                    self.metrics.count_too_large(resource, 1);
                    return Err(IntakeError::TooLarge(MAX_KEPT_BYTES));
                }
                Ok(part.into())
            }
        }
    }

    fn bytes(&self) -> usize {
        match self.reading {
            Reading::Unprojected { read } => read,
            Reading::Projected { kept, .. } => kept,
        }
    }
}

impl Charge {
    fn to(budget: Budget) -> Self {
        Self { budget, grants: Vec::new(), is_full: false, awaited: None }
    }

    /// Waits until so many bytes are charged.
    fn poll(&mut self, bytes: usize, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some((lacking, awaited)) = &mut self.awaited {
                let grant = ready!(awaited.as_mut().poll(cx));
                self.is_full = grant.bytes() < *lacking;
                self.grants.push(grant);
                self.awaited = None;
            }
            let charged = FREE_BYTES + self.grants.iter().map(Grant::bytes).sum::<usize>();
            if bytes <= charged || self.is_full {
                return Poll::Ready(());
            }
            let budget = self.budget.clone();
            let lacking = bytes.max(charged * CHARGE_FACTOR) - charged;
            self.awaited = Some((lacking, Box::pin(async move { budget.grant(Flow::own(), lacking).await })));
        }
    }
}

impl HttpBody for IntakeBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        loop {
            let bytes = this.bytes();
            if let Some(charge) = &mut this.charge {
                ready!(charge.poll(bytes, cx));
            }
            if !this.held.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.held)))));
            }
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Some(Ok(frame)) => frame,
            };
            let Ok(part) = frame.into_data() else { continue };
            match this.read(part) {
                Ok(kept) => this.held = kept,
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
    }
}

impl fmt::Debug for IntakeBody {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("IntakeBody").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
