//! The steps of a review, and what they cost.
//!
//! An ordinary review is a matter of microseconds and is judged at once. A large object or record can cost many milliseconds,
//! or a second if it is hostile: each step of such a review waits for its turn at a core. A review that gets none, or is not done
//! because of what it contains, is refused: whatever else goes on, size and cost must not open the guard.

use std::sync::atomic::{AtomicU64, Ordering};

use interlock_engine::decide::Unjudged;
use interlock_engine::effort::Effort;
use interlock_engine::evidence::Answer;
use interlock_engine::facts::{Payloads, RequestObjects, record_name};
use interlock_engine::json::RawObject;
use interlock_engine::review::{BadReview, Operation, Request};
use tokio::time::{Instant, timeout_at};

use crate::budget::{Budget, Busy, Flow, Holdings, Peer, Price};
use crate::world::Payer;

/// The largest text that is judged at once, in bytes: one object, or two together. Ordinary objects have a few KiB.
pub(super) const ORDINARY_BYTES: usize = 64 << 10;

/// The largest bodies of records that are judged at once, in bytes of JSON: at worst some milliseconds.
pub(super) const ORDINARY_BODY_BYTES: usize = 1 << 20;

/// About the steps to read and compare a byte of an object.
const TEXT_STEPS: u64 = 20;

/// About the steps to inflate, read and compare a byte of a record.
pub(super) const BODY_STEPS: u64 = 30;

/// About the steps to read a byte of a manifest for its workloads.
const YAML_STEPS: u64 = 150;

/// What a large object takes while its fields are compared, as a multiple of its text.
const COMPARED_FACTOR: usize = 32;

/// When a review must be answered, and who asks.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub deadline: Instant,
    pub peer: Peer,
}

/// The call of who is known.
impl From<Instant> for Call {
    fn from(deadline: Instant) -> Self {
        Self { deadline, peer: Peer::Known }
    }
}

/// The steps of a review: at once if they are short, otherwise each in its turn.
pub(super) struct Steps<'r> {
    shared: &'r Budget,
    flow: Flow<'r>,
    pub(super) deadline: Instant,
    are_short: bool,
    /// About the steps of what was sent, which say whether the review is small.
    price: u64,
    /// Whether the policy may say what becomes of it undecided. What is large or costs much is refused.
    is_small: bool,
    /// Whether it creates or deletes a record. Without a turn it is refused, and its client tries again. A client does not try an
    /// UPDATE again, and leaves a release pending.
    is_tried_again: bool,
    /// About the steps of what was read for it.
    of_answers: AtomicU64,
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
            are_short: is_ordinary,
            price: bytes as u64 * TEXT_STEPS,
            is_small: is_ordinary,
            is_tried_again: false,
            of_answers: AtomicU64::new(0),
            effort: Effort::of_review(),
            holdings: Holdings::default(),
        }
    }

    /// Reads the objects of a request. The size of a record's body is known only then.
    pub(super) async fn read(
        &mut self,
        request: &'r Request<'r>,
    ) -> Result<Result<(RequestObjects<'r>, Payloads), BadReview>, Unjudged> {
        let read = || {
            RequestObjects::read(request).map(|objects| {
                let payloads = objects.payloads(request.operation);
                (objects, payloads)
            })
        };
        let read = self.run(read).await?;
        if let Ok((_, payloads)) = &read {
            let is_large = payloads.inflated_size() > ORDINARY_BODY_BYTES;
            let is_yaml = is_read_as_yaml(request, payloads);
            self.are_short &= !is_large && !is_yaml;
            self.price += payloads.inflated_size() as u64 * if is_yaml { YAML_STEPS } else { BODY_STEPS };
        }
        self.is_small &= Price::of_steps(self.price).is_small();
        self.is_tried_again = record_name(request).is_some() && request.operation != Operation::Update;
        Ok(read)
    }

    /// Waits for the memory of what is large in a review: the bodies of records, or an object whose fields are compared with a
    /// document. All at once, because two reviews that hold memory and wait for more would wait for each other.
    pub(super) async fn take_memory(
        &self,
        request: &Request<'_>,
        objects: &RequestObjects<'_>,
        payloads: &Payloads,
    ) -> Result<(), Unjudged> {
        let trees = |bytes| self.effort.most_trees_of(bytes);
        let bytes = match (payloads.memory(), &objects.managed) {
            (0, Some(_)) if !self.are_short => bytes_of(request) * COMPARED_FACTOR + trees(usize::MAX),
            (0, _) => return Ok(()),
            (bodies, _) if is_read_as_yaml(request, payloads) => bodies + trees(payloads.inflated_size()),
            (bodies, _) => bodies,
        };
        match Box::pin(timeout_at(self.deadline, self.shared.grant(self.flow, bytes))).await {
            Ok(grant) => {
                self.holdings.keep(grant);
                Ok(())
            }
            Err(_) => Err(self.without_turn()),
        }
    }

    /// Why there is no judgement if a step got no turn or no memory.
    fn without_turn(&self) -> Unjudged {
        if self.is_small && !self.is_tried_again { Unjudged::Late } else { Unjudged::Busy }
    }

    /// Why there is no judgement if the world did not answer in time. Reading what the API server answers takes turns too.
    pub(super) fn without_answer(&self) -> Unjudged {
        if self.is_small && !self.holdings.is_waiting() { Unjudged::Late } else { Unjudged::Busy }
    }

    /// Runs one step.
    pub(super) async fn run<T>(&self, step: impl FnOnce() -> T) -> Result<T, Unjudged> {
        let of_answers = self.of_answers.load(Ordering::Relaxed);
        if self.are_short && Price::of_steps(of_answers).is_short() {
            return Ok(step());
        }
        let price = Price::of_steps(self.price.saturating_add(of_answers));
        // Boxed, because the future of every review would be as large otherwise.
        match Box::pin(timeout_at(self.deadline, self.shared.work(self.flow, price, step))).await {
            Ok(done) => done.map_err(|Busy| self.without_turn()),
            Err(_) => Err(self.without_turn()),
        }
    }

    /// Notes what the next step reads.
    pub(super) fn note(&self, answer: &Answer) {
        self.of_answers.fetch_add(answer.steps(), Ordering::Relaxed);
    }

    /// On whose behalf the world answers.
    pub(super) fn payer(&self) -> Payer<'_> {
        Payer { flow: self.flow, effort: &self.effort, holdings: &self.holdings }
    }
}

/// The length of the objects of a request, in bytes.
fn bytes_of(request: &Request<'_>) -> usize {
    let bytes = |object: Option<RawObject<'_>>| object.map_or(0, |object| object.get().len());
    bytes(request.object) + bytes(request.old_object)
}

/// Whether the manifest of a record is read: a deletion needs its workloads. YAML takes far more time and memory than JSON.
fn is_read_as_yaml(request: &Request<'_>, payloads: &Payloads) -> bool {
    request.operation == Operation::Delete && payloads.inflated_size() > 0
}
