//! Takes one review through the engine. The only place where the engine and a world meet.
//!
//! An ordinary review is a matter of microseconds and is judged at once. A large object or record can cost many milliseconds,
//! or a second if it is hostile: each step of such a review waits for its turn at a core. A review that gets none, or is not done
//! because of what it contains, is refused: whatever else goes on, size and cost must not open the guard.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::budget::{Budget, Busy, Flow, Holdings, Peer, Price};
use crate::engine::decide::{Step, Unjudged, decide, unjudged};
use crate::engine::decision::{Decision, Transition};
use crate::engine::effort::Effort;
use crate::engine::evidence::{Answer, Evidence, Query};
use crate::engine::facts::{Facts, Payloads, RecordBodies, RequestObjects, Subject, storing_kind};
use crate::engine::json::{Patch, RawObject};
use crate::engine::outcome::{Outcome, WeighedViolation};
use crate::engine::overrides;
use crate::engine::policy::{Accounts, Policies, Policy};
use crate::engine::release::RecordName;
use crate::engine::review::{BadReview, Operation, Request, Review, head_of};
use crate::engine::stamp;
use crate::engine::violation::ViolationKind;
use crate::world::{Payer, World};

/// The largest text that is judged at once, in bytes: one object, or two together. Ordinary objects have a few KiB.
const ORDINARY_BYTES: usize = 64 << 10;

/// The largest bodies of records that are judged at once, in bytes of JSON: at worst some milliseconds.
const ORDINARY_BODY_BYTES: usize = 1 << 20;

/// The most steps that a review takes at once: a millisecond.
const STEPS_AT_ONCE: u64 = 1_000_000;

/// About the steps to read and compare a byte of an object.
const TEXT_STEPS: u64 = 20;

/// About the steps to inflate, read and compare a byte of a record.
const BODY_STEPS: u64 = 30;

/// About the steps to read a byte of a manifest for its workloads.
const YAML_STEPS: u64 = 150;

/// What a large object takes while its fields are compared, as a multiple of its text.
const COMPARED_FACTOR: usize = 32;

/// Judges reviews by a policy. A world answers its queries.
pub struct Judge {
    policies: Arc<ArcSwap<Policies>>,
    world: Arc<dyn World>,
    shared: Arc<Budget>,
    own_user: Arc<OnceLock<String>>,
}

/// The bodies of the records of a request, and the time that they took.
struct Inflated {
    bodies: RecordBodies,
    took: Duration,
}

/// When a review must be answered, and who asks.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub deadline: Instant,
    pub peer: Peer,
}

/// The steps of a review: at once if they are short, otherwise each in its turn.
struct Steps<'r> {
    shared: &'r Budget,
    flow: Flow<'r>,
    deadline: Instant,
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
    effort: Effort,
    /// The memory of the review.
    holdings: Holdings,
}

/// Why there is no judgement.
enum NotJudged {
    Bad(BadReview),
    Unjudged(Unjudged),
}

/// The result of a review.
pub struct Judgement {
    /// For the reply.
    pub outcome: Outcome,
    /// For the log, metrics, Events and reports.
    pub decision: Decision,
}

impl Judge {
    /// A judge; `shared` bounds the memory of record bodies that are inflated at once, and the cores in use.
    #[must_use]
    pub fn new(policies: impl Into<Policies>, world: Arc<dyn World>, shared: Arc<Budget>) -> Self {
        Self { policies: Arc::new(ArcSwap::from_pointee(policies.into())), world, shared, own_user: Arc::default() }
    }

    /// The policies in force. A stored replacement counts from the next review on.
    #[must_use]
    pub fn policies(&self) -> Arc<ArcSwap<Policies>> {
        Arc::clone(&self.policies)
    }

    /// The same judge, which recognises the writes of Interlock itself by its user name at the API server, once that is set.
    #[must_use]
    pub fn with_own_user(self, own_user: Arc<OnceLock<String>>) -> Self {
        Self { own_user, ..self }
    }

    /// Parses the body of a review.
    ///
    /// # Errors
    /// Why it was not even parsed: only a large body waits for its turn.
    pub async fn parse<'b>(
        &self,
        body: &'b [u8],
        call: impl Into<Call>,
    ) -> Result<Result<Review<'b>, BadReview>, Unjudged> {
        if body.len() <= ORDINARY_BYTES {
            return Ok(Review::parse(body));
        }
        let head = head_of(body);
        let user = head.as_ref().map(|head| head.user_info.username.as_ref()).unwrap_or_default();
        Steps::new(&self.shared, user, call.into(), body.len()).run(|| Review::parse(body)).await
    }

    /// Judges a request at a moment, answering by a deadline.
    ///
    /// # Errors
    /// If the objects of the request cannot be parsed.
    pub async fn validate(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        call: impl Into<Call>,
    ) -> Result<Judgement, BadReview> {
        match self.judged(request, now, call.into()).await {
            Ok(judgement) => Ok(judgement),
            Err(NotJudged::Bad(why)) => Err(why),
            Err(NotJudged::Unjudged(why)) => Ok(self.undecided(&request.head(), why)),
        }
    }

    /// Why a body of so many bytes has no answer although its time is over. A step that outlives the deadline still runs, and what is
    /// expensive holds or awaits memory.
    #[must_use]
    pub fn out_of_time(&self, head: &Request<'_>, body_bytes: usize, peer: Peer) -> Unjudged {
        let is_due = self.shared.is_busy_with(Flow::of(peer, &head.user_info.username));
        if is_due || body_bytes > ORDINARY_BYTES { Unjudged::Busy } else { Unjudged::Late }
    }

    /// The judgement of a request without its objects, as the policy says it for requests that cannot be judged.
    #[must_use]
    pub fn undecided(&self, head: &Request<'_>, why: Unjudged) -> Judgement {
        // There is nothing in it that could be malformed.
        let objects = RequestObjects::read(head).unwrap_or_default();
        let bodies = RecordBodies::default();
        let effort = Effort::of_review();
        let policies = self.policies.load();
        let facts = self.facts(head, &objects, &bodies, &effort, policies.accounts());
        let outcome = unjudged(head, &facts, policies.of(head.namespace()), why);
        let decision = Decision::of(head, &facts, &outcome, Duration::ZERO);
        // An Event needs an object that is known for sure.
        Judgement { outcome, decision: Decision { object: None, ..decision } }
    }

    async fn judged(&self, request: &Request<'_>, now: Timestamp, call: Call) -> Result<Judgement, NotJudged> {
        let started = Instant::now();
        let user = &request.user_info.username;
        let mut steps = Steps::new(&self.shared, user, call, bytes_of(request));
        let (objects, payloads) = steps.read(request).await??;
        let policies = self.policies.load();
        let (bodies, unread, facts) = (OnceLock::new(), payloads.unread(), OnceLock::new());
        let facts_of = |bodies| self.facts(request, &objects, bodies, &steps.effort, policies.accounts());
        let facts_with = |bodies| facts.get_or_init(|| facts_of(bodies));
        let policy = policies.of(request.namespace()).as_ref();
        let concluded = |request: &Request<'_>, facts: &Facts<'_>, outcome: Outcome| {
            let decision = Decision::of(request, facts, &outcome, started.elapsed());
            let decoded = objects.storage.and(bodies.get()).map(|inflated: &Inflated| inflated.took);
            let transition = (!decision.dry_run).then(|| Transition::of(facts, policy, now)).flatten().map(Box::new);
            Judgement { outcome, decision: Decision { decoded, transition, ..decision } }
        };
        let judgement = match steps.take_memory(request, &objects, &payloads).await {
            Ok(()) => {
                let facts = || facts_with(&bodies.get_or_init(|| Inflated::of(&payloads, &steps.effort)).bodies);
                let done = |facts: &Facts<'_>, outcome| concluded(request, facts, outcome);
                self.decide_with_world(facts, policy, now, &steps, done).await
            }
            Err(why) => Err(why),
        };
        judgement.or_else(|why| {
            // The facts say more than the head, and the objects are not read again.
            let facts = facts_with(&unread);
            Ok(concluded(&request.head(), facts, unjudged(request, facts, policy, why)))
        })
    }

    /// The stamps that a request must be given.
    ///
    /// # Errors
    /// If the objects of the request cannot be parsed.
    pub async fn mutate(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        call: impl Into<Call>,
    ) -> Result<Option<Patch>, BadReview> {
        let user = &request.user_info.username;
        let mut steps = Steps::new(&self.shared, user, call.into(), bytes_of(request));
        let Ok(read) = steps.read(request).await else {
            return Ok(None);
        };
        let (objects, payloads) = read?;
        let policies = self.policies.load();
        let stamp_with = |bodies: &RecordBodies| {
            stamp::stamp(&self.facts(request, &objects, bodies, &steps.effort, policies.accounts()), now)
        };
        let stamped = match steps.take_memory(request, &objects, &payloads).await {
            Ok(()) => steps.run(|| stamp_with(&payloads.inflate(&steps.effort))).await,
            Err(why) => Err(why),
        };
        // Without its body a record is still stamped with holder and start.
        Ok(stamped.unwrap_or_else(|_| stamp_with(&payloads.unread())))
    }

    fn facts<'r>(
        &self,
        request: &'r Request<'r>,
        objects: &'r RequestObjects<'r>,
        bodies: &'r RecordBodies,
        effort: &'r Effort,
        accounts: &'r Accounts,
    ) -> Facts<'r> {
        let facts = Facts::of(request, objects, bodies, effort);
        let own_user = self.own_user.get().map(String::as_str);
        Facts { actor: accounts.recognise(facts.actor).or_interlock(own_user), ..facts }
    }

    /// Runs the rules, answering their queries, until they reach a decision. The first step includes the facts, and the last one
    /// what is done with the outcome.
    async fn decide_with_world<'f, T>(
        &self,
        facts: impl Fn() -> &'f Facts<'f>,
        policy: &Policy,
        now: Timestamp,
        steps: &Steps<'_>,
        done: impl Fn(&Facts<'_>, Outcome) -> T,
    ) -> Result<T, Unjudged> {
        let mut evidence = Evidence::default();
        let mut in_time = true;
        loop {
            let step = || {
                let facts = facts();
                if let Subject::Override(write) = &facts.subject {
                    return Ok(done(facts, overrides::outcome(write, &facts.actor, &policy.overrides, now)));
                }
                match decide(facts, policy, &evidence, now) {
                    Step::Done(judged) if in_time => Ok(done(facts, Outcome::of(policy, judged))),
                    Step::Done(judged) => Ok(done(facts, Outcome::of(policy, judged.into_iter().map(late).collect()))),
                    Step::Ask(query) => Err(query),
                }
            };
            match steps.run(step).await? {
                Ok(judgement) => return Ok(judgement),
                Err(query) => {
                    let answer = self.ask(&query, steps).await;
                    if answer.is_none() && steps.without_answer() == Unjudged::Busy {
                        return Err(Unjudged::Busy);
                    }
                    in_time &= answer.is_some();
                    steps.of_answers.fetch_add(answer.as_ref().map_or(0, Answer::steps), Ordering::Relaxed);
                    let late = || Answer::Unavailable("the API server did not answer in time".into());
                    evidence.add(query, answer.unwrap_or_else(late));
                }
            }
        }
    }

    /// The world's answer; `None` if it comes too late.
    async fn ask(&self, query: &Query, steps: &Steps<'_>) -> Option<Answer> {
        let payer = Payer { flow: steps.flow, effort: &steps.effort, holdings: &steps.holdings };
        let answer = timeout_at(steps.deadline, self.world.answer_for(query, payer)).await.ok();
        // A world that is always ready would outrun the timer.
        answer.filter(|_| Instant::now() < steps.deadline)
    }
}

impl Inflated {
    fn of(payloads: &Payloads, effort: &Effort) -> Self {
        let started = Instant::now();
        let bodies = payloads.inflate(effort);
        Self { bodies, took: started.elapsed() }
    }
}

impl<'r> Steps<'r> {
    /// The steps of a user's review of so many bytes.
    fn new(shared: &'r Budget, user: &'r str, call: Call, bytes: usize) -> Self {
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
    async fn read(
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
        self.is_tried_again = writes_record(request) && request.operation != Operation::Update;
        Ok(read)
    }

    /// Waits for the memory of what is large in a review: the bodies of records, or an object whose fields are compared with a
    /// document. All at once, because two reviews that hold memory and wait for more would wait for each other.
    async fn take_memory(
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
    fn without_answer(&self) -> Unjudged {
        if self.is_small && !self.holdings.is_waiting() { Unjudged::Late } else { Unjudged::Busy }
    }

    /// Runs one step.
    async fn run<T>(&self, step: impl FnOnce() -> T) -> Result<T, Unjudged> {
        let of_answers = self.of_answers.load(Ordering::Relaxed);
        if self.are_short && of_answers <= STEPS_AT_ONCE {
            return Ok(step());
        }
        let price = Price::of_steps(self.price.saturating_add(of_answers));
        // Boxed, because the future of every review would be as large otherwise.
        match Box::pin(timeout_at(self.deadline, self.shared.work(self.flow, price, step))).await {
            Ok(done) => done.map_err(|Busy| self.without_turn()),
            Err(_) => Err(self.without_turn()),
        }
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

/// Whether the object of a request is a record by its name.
fn writes_record(request: &Request<'_>) -> bool {
    storing_kind(request).and(request.name()).is_some_and(|name| name.parse::<RecordName>().is_ok())
}

/// The call of who is known.
impl From<Instant> for Call {
    fn from(deadline: Instant) -> Self {
        Self { deadline, peer: Peer::Known }
    }
}

impl From<BadReview> for NotJudged {
    fn from(why: BadReview) -> Self {
        Self::Bad(why)
    }
}

impl From<Unjudged> for NotJudged {
    fn from(why: Unjudged) -> Self {
        Self::Unjudged(why)
    }
}

/// Marks a violation that is undecided because the time of the review was over.
fn late(mut judged: WeighedViolation) -> WeighedViolation {
    if judged.violation.kind == ViolationKind::Unavailable {
        judged.violation.kind = ViolationKind::Late;
    }
    judged
}

#[cfg(test)]
mod tests;
