//! Takes one review through the engine. The only place where the engine and a world meet.
//!
//! An ordinary review is a matter of microseconds and is judged at once. A large object or a record can cost milliseconds, or
//! a second if it is hostile: each step of such a review waits for its turn at a core.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use crate::budget::{Budget, Busy, Grant};
use crate::engine::decide::{Step, Unjudged, decide, unjudged};
use crate::engine::decision::Decision;
use crate::engine::effort::Effort;
use crate::engine::evidence::{Answer, Evidence, Query};
use crate::engine::facts::{Facts, RecordBodies, RequestObjects, Subject};
use crate::engine::json::Patch;
use crate::engine::outcome::{Outcome, WeighedViolation};
use crate::engine::overrides::objection;
use crate::engine::policy::{Policies, Policy};
use crate::engine::review::{BadReview, Operation, Request, Review, head_of};
use crate::engine::stamp;
use crate::engine::violation::ViolationKind;
use crate::world::{Payer, World};

/// The largest text that is judged at once, in bytes: one object, or two together. Ordinary objects have a few KiB.
const ORDINARY_BYTES: usize = 64 << 10;

/// Judges reviews by a policy. A world answers its queries.
pub struct Judge {
    policies: Arc<ArcSwap<Policies>>,
    world: Arc<dyn World>,
    shared: Arc<Budget>,
    own_user: Arc<OnceLock<String>>,
}

/// The bodies of the records of a request.
#[derive(Default)]
struct Decoded {
    bodies: RecordBodies,
    /// The memory that they take; `None` if there was none in time, and the bodies are unread.
    granted: Option<Grant>,
    took: Option<Duration>,
}

/// The steps of a review: at once if they are short, otherwise each in its turn.
struct Steps<'r> {
    shared: &'r Budget,
    user: &'r str,
    deadline: Instant,
    are_short: bool,
    effort: Effort,
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
        deadline: Instant,
    ) -> Result<Result<Review<'b>, BadReview>, Unjudged> {
        if body.len() <= ORDINARY_BYTES {
            return Ok(Review::parse(body));
        }
        let head = head_of(body);
        let user = head.as_ref().map(|head| head.user_info.username.as_ref()).unwrap_or_default();
        Steps { shared: &self.shared, user, deadline, are_short: false, effort: Effort::of_review() }
            .run(|| Review::parse(body))
            .await
    }

    /// Judges a request at a moment, answering by a deadline.
    ///
    /// # Errors
    /// If the objects of the request cannot be parsed.
    pub async fn validate(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<Judgement, BadReview> {
        match self.judged(request, now, deadline).await {
            Ok(judgement) => Ok(judgement),
            Err(NotJudged::Bad(why)) => Err(why),
            Err(NotJudged::Unjudged(why)) => Ok(self.undecided(&request.head(), why)),
        }
    }

    /// The judgement of a request without its objects, as the policy says it for requests that cannot be judged.
    #[must_use]
    pub fn undecided(&self, head: &Request<'_>, why: Unjudged) -> Judgement {
        // There is nothing in it that could be malformed.
        let objects = RequestObjects::read(head).unwrap_or_default();
        let bodies = RecordBodies::default();
        let effort = Effort::of_review();
        let facts = self.facts(head, &objects, &bodies, &effort);
        let outcome = unjudged(head, &facts, self.policies.load().of(head.namespace()), why);
        let decision = Decision::of(head, &facts, &outcome, Duration::ZERO);
        // An Event needs an object that is known for sure.
        Judgement { outcome, decision: Decision { object: None, ..decision } }
    }

    async fn judged(&self, request: &Request<'_>, now: Timestamp, deadline: Instant) -> Result<Judgement, NotJudged> {
        let started = Instant::now();
        let mut steps = self.steps(request, deadline);
        let objects = steps.run(|| RequestObjects::read(request)).await??;
        steps.are_short &= objects.storage.is_none();
        let Decoded { bodies, granted, took } = self.decode(&objects, request.operation, &steps).await?;
        let facts = steps.run(|| self.facts(request, &objects, &bodies, &steps.effort)).await?;
        let policies = self.policies.load();
        let policy = policies.of(request.namespace()).as_ref();
        let concluded = |request: &Request<'_>, outcome: Outcome| {
            let decision = Decision::of(request, &facts, &outcome, started.elapsed());
            Judgement { outcome, decision: Decision { decoded: objects.storage.and(took), ..decision } }
        };
        let judgement = match (&facts.subject, &granted) {
            (Subject::Override(write), _) => {
                let objection = objection(write, facts.actor.name, &policy.overrides, now);
                Ok(concluded(request, Outcome::of_override(objection)))
            }
            (_, Some(_)) => {
                let done = |judged| concluded(request, Outcome::of(policy, judged));
                self.decide_with_world(&facts, policy, now, &steps, done).await
            }
            // Only the bodies of records wait for memory.
            (_, None) => Err(steps.waited_in_vain()),
        };
        // The facts say more than the head, and the objects are not read again.
        let undecided = |why| concluded(&request.head(), unjudged(request, &facts, policy, why));
        Ok(judgement.unwrap_or_else(undecided))
    }

    /// The stamps that a request must be given.
    ///
    /// # Errors
    /// If the objects of the request cannot be parsed.
    pub async fn mutate(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<Option<Patch>, BadReview> {
        let mut steps = self.steps(request, deadline);
        let Ok(objects) = steps.run(|| RequestObjects::read(request)).await else {
            return Ok(None);
        };
        let objects = objects?;
        steps.are_short &= objects.storage.is_none();
        // Without its body a record is still stamped with holder and start.
        let decoded = self.decode(&objects, request.operation, &steps).await.unwrap_or_default();
        let stamp = || stamp::stamp(&self.facts(request, &objects, &decoded.bodies, &steps.effort), now);
        Ok(steps.run(stamp).await.unwrap_or_default())
    }

    /// The steps of a review, which are short if the objects are. A record turns out to be one in the first of them.
    fn steps<'r>(&'r self, request: &'r Request<'_>, deadline: Instant) -> Steps<'r> {
        let bytes = |object: Option<&RawValue>| object.map_or(0, |object| object.get().len());
        let are_short = bytes(request.object) + bytes(request.old_object) <= ORDINARY_BYTES;
        Steps {
            shared: &self.shared,
            user: &request.user_info.username,
            deadline,
            are_short,
            effort: Effort::of_review(),
        }
    }

    /// Inflates the bodies of the records of a request, once there is memory for them.
    async fn decode(
        &self,
        objects: &RequestObjects<'_>,
        operation: Operation,
        steps: &Steps<'_>,
    ) -> Result<Decoded, Unjudged> {
        let payloads = steps.run(|| objects.payloads(operation)).await?;
        let granted =
            timeout_at(steps.deadline, self.shared.grant_to(steps.user, payloads.inflated_size())).await.ok().flatten();
        if granted.is_none() {
            return Ok(Decoded { bodies: payloads.unread(), granted, took: None });
        }
        let inflate = || {
            let started = Instant::now();
            (payloads.inflate(&steps.effort), started.elapsed())
        };
        let (bodies, took) = steps.run(inflate).await?;
        Ok(Decoded { bodies, granted, took: Some(took) })
    }

    fn facts<'r>(
        &self,
        request: &'r Request<'r>,
        objects: &'r RequestObjects<'r>,
        bodies: &'r RecordBodies,
        effort: &'r Effort,
    ) -> Facts<'r> {
        let facts = Facts::of(request, objects, bodies, effort);
        let own_user = self.own_user.get().map(String::as_str);
        Facts { actor: facts.actor.or_interlock(own_user), ..facts }
    }

    /// Runs the rules, answering their queries, until they reach a decision. The last step includes what is done with it.
    async fn decide_with_world<T>(
        &self,
        facts: &Facts<'_>,
        policy: &Policy,
        now: Timestamp,
        steps: &Steps<'_>,
        done: impl Fn(Vec<WeighedViolation>) -> T,
    ) -> Result<T, Unjudged> {
        let mut evidence = Evidence::default();
        let mut in_time = true;
        loop {
            let step = || match decide(facts, policy, &evidence, now) {
                Step::Done(judged) if in_time => Ok(done(judged)),
                Step::Done(judged) => Ok(done(judged.into_iter().map(late).collect())),
                Step::Ask(query) => Err(query),
            };
            match steps.run(step).await? {
                Ok(judgement) => return Ok(judgement),
                Err(query) => {
                    let answer = self.ask(&query, steps).await;
                    in_time &= answer.is_some();
                    let late = || Answer::Unavailable("the API server did not answer in time".into());
                    evidence.add(query, answer.unwrap_or_else(late));
                }
            }
        }
    }

    /// The world's answer; `None` if it comes too late.
    async fn ask(&self, query: &Query, steps: &Steps<'_>) -> Option<Answer> {
        let payer = Payer { user: steps.user, effort: &steps.effort };
        let answer = timeout_at(steps.deadline, self.world.answer_for(query, payer)).await.ok();
        // A world that is always ready would outrun the timer.
        answer.filter(|_| Instant::now() < steps.deadline)
    }
}

impl Steps<'_> {
    /// Why there was no turn before the deadline: a flood of the same user must not open the guard, and a machine without time
    /// must not close it.
    fn waited_in_vain(&self) -> Unjudged {
        if self.shared.is_busy_with(self.user) { Unjudged::Busy } else { Unjudged::Late }
    }

    /// Runs one step.
    async fn run<T>(&self, step: impl FnOnce() -> T) -> Result<T, Unjudged> {
        if self.are_short {
            return Ok(step());
        }
        match timeout_at(self.deadline, self.shared.work(self.user, step)).await {
            Ok(done) => done.map_err(|Busy| Unjudged::Busy),
            Err(_) => Err(self.waited_in_vain()),
        }
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
