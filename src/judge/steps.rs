//! The steps of a review, and what they cost.
//!
//! An ordinary review takes microseconds and runs inline. A large object or record can take many milliseconds, and a hostile one a
//! second: each step of such a review waits for its turn at a core. A large review that gets no turn, or does not end in time, is
//! refused: size and cost must never open the guard.

use std::sync::atomic::{AtomicU64, Ordering};

use interlock_engine::decide::ReviewFailure;
use interlock_engine::effort::Effort;
use interlock_engine::evidence::Answer;
use interlock_engine::facts::{Payloads, RequestObjects, record_name};
use interlock_engine::json::RawObject;
use interlock_engine::review::{BadReview, Operation, Request};
use tokio::time::{Instant, timeout_at};

use super::not_judged::NotJudged;
use crate::budget::{Budget, Busy, Flow, Holdings, Peer, Price};
use crate::world::QueryBudget;

/// The largest text that is judged inline, in bytes: one object, or two together. Ordinary objects have a few KiB.
pub(super) const ORDINARY_BYTES: usize = 64 << 10;

/// The largest bodies of records that are judged inline, in bytes of JSON. They take at most a few milliseconds.
pub(super) const ORDINARY_BODY_BYTES: usize = 1 << 20;

/// Approximate steps to read and compare a byte of an object.
const TEXT_STEPS: u64 = 20;

/// Approximate steps to inflate, read and compare a byte of a record.
pub(super) const BODY_STEPS: u64 = 30;

/// Approximate steps to read a byte of a manifest for its workloads.
const YAML_STEPS: u64 = 150;

/// The memory for the comparison of a large object, as a multiple of its text.
const COMPARED_FACTOR: usize = 32;

/// The deadline of a review, and the peer that sent it.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub deadline: Instant,
    pub peer: Peer,
}

/// A call of a known peer.
impl From<Instant> for Call {
    fn from(deadline: Instant) -> Self {
        Self { deadline, peer: Peer::Known }
    }
}

/// The steps of a review. Short steps run inline, and each other step waits for its turn.
pub(super) struct Steps<'r> {
    shared: &'r Budget,
    flow: Flow<'r>,
    pub(super) deadline: Instant,
    runs_inline: bool,
    /// The approximate steps for the request. They decide whether the review is small.
    price: u64,
    /// Whether the policy decides about the review if it stays undecided. A large or expensive review is refused.
    is_small: bool,
    /// Whether the request creates or deletes a record. Without a turn it is refused, because its client tries again. Clients do
    /// not retry an UPDATE, and a refused one leaves the release pending.
    is_tried_again: bool,
    /// The approximate steps for the answers of the world.
    answer_steps: AtomicU64,
    pub(super) effort: Effort,
    /// The memory of the review.
    holdings: Holdings,
}

impl<'r> Steps<'r> {
    /// The steps to judge a request.
    pub(super) fn of(shared: &'r Budget, request: &'r Request<'_>, call: Call) -> Self {
        Self::new(shared, &request.user_info.username, call, bytes_of(request))
    }

    /// The steps of a user's review of so many bytes.
    pub(super) fn new(shared: &'r Budget, user: &'r str, call: Call, bytes: usize) -> Self {
        let is_ordinary = bytes <= ORDINARY_BYTES;
        Self {
            shared,
            flow: Flow::of(call.peer, user),
            deadline: call.deadline,
            runs_inline: is_ordinary,
            price: bytes as u64 * TEXT_STEPS,
            is_small: is_ordinary,
            is_tried_again: false,
            answer_steps: AtomicU64::new(0),
            effort: Effort::of_review(),
            holdings: Holdings::default(),
        }
    }

    /// Reads the objects of a request, which reveals the size of a record's body.
    pub(super) async fn read(&mut self, request: &'r Request<'r>) -> Result<(RequestObjects<'r>, Payloads), NotJudged> {
        let (objects, payloads) = self.run(|| read_objects(request)).await??;
        let is_large = payloads.inflated_size() > ORDINARY_BODY_BYTES;
        let is_yaml = is_read_as_yaml(request, &payloads);
        self.runs_inline &= !is_large && !is_yaml;
        self.price += payloads.inflated_size() as u64 * if is_yaml { YAML_STEPS } else { BODY_STEPS };
        self.is_small &= Price::of_steps(self.price).is_small();
        self.is_tried_again = record_name(request).is_some() && request.operation != Operation::Update;
        Ok((objects, payloads))
    }

    /// Waits for the memory of a large review: for the bodies of records, or for an object whose fields are compared with a
    /// document. Takes all memory at once: two reviews that hold memory and wait for more would wait for each other.
    pub(super) async fn take_memory(
        &self,
        request: &Request<'_>,
        objects: &RequestObjects<'_>,
        payloads: &Payloads,
    ) -> Result<(), ReviewFailure> {
        let trees = |bytes| self.effort.most_trees_of(bytes);
        let bytes = match (payloads.memory(), &objects.managed) {
            (0, Some(_)) if !self.runs_inline => bytes_of(request) * COMPARED_FACTOR + trees(usize::MAX),
            (0, _) => return Ok(()),
            (bodies, _) if is_read_as_yaml(request, payloads) => bodies + trees(payloads.inflated_size()),
            (bodies, _) => bodies,
        };
        let granted = Box::pin(timeout_at(self.deadline, self.shared.grant(self.flow, bytes))).await;
        self.holdings.keep(granted.map_err(|_| self.without_turn())?);
        Ok(())
    }

    /// The reason for no judgement if a step got no turn or no memory.
    fn without_turn(&self) -> ReviewFailure {
        if self.is_small && !self.is_tried_again { ReviewFailure::Late } else { ReviewFailure::Busy }
    }

    /// The reason for no judgement if the world did not answer in time. Reading an answer of the API server takes turns too.
    pub(super) fn without_answer(&self) -> ReviewFailure {
        if self.is_small && !self.holdings.is_waiting() { ReviewFailure::Late } else { ReviewFailure::Busy }
    }

    /// Runs one step.
    pub(super) async fn run<T>(&self, step: impl FnOnce() -> T) -> Result<T, ReviewFailure> {
        let answer_steps = self.answer_steps.load(Ordering::Relaxed);
        if self.runs_inline && Price::of_steps(answer_steps).is_short() {
            return Ok(step());
        }
        let price = Price::of_steps(self.price.saturating_add(answer_steps));
        // Boxed, so that the futures of small reviews stay small.
        let done = Box::pin(timeout_at(self.deadline, self.shared.work(self.flow, price, step))).await;
        done.unwrap_or(Err(Busy)).map_err(|Busy| self.without_turn())
    }

    /// Adds the steps of an answer that the next step reads.
    pub(super) fn note(&self, answer: &Answer) {
        self.answer_steps.fetch_add(answer.steps(), Ordering::Relaxed);
    }

    /// The flow, effort and memory that answers are charged to.
    pub(super) fn budget(&self) -> QueryBudget<'_> {
        QueryBudget { flow: self.flow, effort: &self.effort, holdings: &self.holdings }
    }
}

fn read_objects<'r>(request: &'r Request<'r>) -> Result<(RequestObjects<'r>, Payloads), BadReview> {
    let objects = RequestObjects::read(request)?;
    let payloads = objects.payloads(request.operation);
    Ok((objects, payloads))
}

/// The length of the objects of a request, in bytes.
fn bytes_of(request: &Request<'_>) -> usize {
    length(request.object) + length(request.old_object)
}

fn length(object: Option<RawObject<'_>>) -> usize {
    object.map_or(0, |object| object.get().len())
}

/// Whether the manifest of a record is read: the rules for a deletion need its workloads. YAML takes far more time and memory than
/// JSON.
fn is_read_as_yaml(request: &Request<'_>, payloads: &Payloads) -> bool {
    request.operation == Operation::Delete && payloads.inflated_size() > 0
}
