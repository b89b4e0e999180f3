//! Takes one review through the engine. The only place where the engine and a world meet.

mod steps;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use interlock_engine::decide::{Step, Unjudged, decide, unjudged};
use interlock_engine::decision::{Decision, Transition};
use interlock_engine::effort::Effort;
use interlock_engine::evidence::{Answer, Evidence, Query};
use interlock_engine::facts::{Facts, Payloads, RecordBodies, RequestObjects, Subject};
use interlock_engine::freezes;
use interlock_engine::json::Patch;
use interlock_engine::outcome::{Outcome, WeighedViolation};
use interlock_engine::overrides;
use interlock_engine::policy::{Accounts, Policies, Policy};
use interlock_engine::review::{BadReview, Request, Review, head_of};
use interlock_engine::stamp;
use interlock_engine::violation::ViolationKind;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::budget::{Budget, Flow, Peer};
use crate::world::World;
use steps::{ORDINARY_BYTES, Steps};

pub use steps::Call;

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

    /// The policies in force, whose selectors select by the labels that the world knows now.
    fn policies_in_force(&self) -> Guard<Arc<Policies>> {
        let policies = self.policies.load();
        let labels = if policies.uses_labels() { self.world.namespace_labels() } else { None };
        match labels.filter(|labels| !policies.know(labels)) {
            None => policies,
            Some(labels) => {
                self.policies.rcu(|policies| Policies::clone(policies).knowing(Arc::clone(&labels)));
                self.policies.load()
            }
        }
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
        let policies = self.policies_in_force();
        let facts = self.facts(head, &objects, &bodies, &effort, policies.accounts());
        let outcome = unjudged(head, &facts, policies.of(head.namespace()), why);
        let decision = Decision::of(head, &facts, &outcome, Duration::ZERO);
        // An Event needs an object that is known for sure.
        Judgement { outcome, decision: Decision { object: None, ..decision } }
    }

    async fn judged(&self, request: &Request<'_>, now: Timestamp, call: Call) -> Result<Judgement, NotJudged> {
        let started = Instant::now();
        let mut steps = Steps::of(&self.shared, request, call);
        let (objects, payloads) = steps.read(request).await??;
        let policies = self.policies_in_force();
        let (bodies, unread, facts) = (OnceLock::new(), payloads.unread(), OnceLock::new());
        let facts_of = |bodies| self.facts(request, &objects, bodies, &steps.effort, policies.accounts());
        let facts_with = |bodies| facts.get_or_init(|| facts_of(bodies));
        let policy = policies.of(request.namespace()).as_ref();
        let concluded = |request: &Request<'_>, facts: &Facts<'_>, evidence: &Evidence, outcome: Outcome| {
            let decision = Decision::of(request, facts, &outcome, started.elapsed());
            let decoded = objects.storage.and(bodies.get()).map(|inflated: &Inflated| inflated.took);
            let transition =
                (!decision.dry_run).then(|| Transition::of(facts, policy, evidence, now)).flatten().map(Box::new);
            Judgement { outcome, decision: Decision { decoded, transition, ..decision } }
        };
        let judgement = match steps.take_memory(request, &objects, &payloads).await {
            Ok(()) => {
                let facts = || facts_with(&bodies.get_or_init(|| Inflated::of(&payloads, &steps.effort)).bodies);
                let done =
                    |facts: &Facts<'_>, evidence: &Evidence, outcome| concluded(request, facts, evidence, outcome);
                self.decide_with_world(facts, policy, now, &steps, done).await
            }
            Err(why) => Err(why),
        };
        judgement.or_else(|why| {
            // The facts say more than the head, and the objects are not read again.
            let facts = facts_with(&unread);
            Ok(concluded(&request.head(), facts, &Evidence::default(), unjudged(request, facts, policy, why)))
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
        let mut steps = Steps::of(&self.shared, request, call.into());
        let Ok(read) = steps.read(request).await else {
            return Ok(None);
        };
        let (objects, payloads) = read?;
        let policies = self.policies_in_force();
        let stamp_with = |bodies: &RecordBodies| {
            let facts = self.facts(request, &objects, bodies, &steps.effort, policies.accounts());
            let void = overrides::void(&facts, policies.of(request.namespace()), now);
            stamp::stamp(&facts, void.as_deref(), now)
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
        done: impl Fn(&Facts<'_>, &Evidence, Outcome) -> T,
    ) -> Result<T, Unjudged> {
        let mut evidence = Evidence::default();
        let mut in_time = true;
        loop {
            let step = || {
                let facts = facts();
                if let Subject::Own(write) = &facts.subject {
                    return freezes::outcome(write, &facts.actor, policy, &evidence, now)
                        .map(|outcome| done(facts, &evidence, outcome));
                }
                match decide(facts, policy, &evidence, now) {
                    Step::Done(judged) if in_time => Ok(done(facts, &evidence, Outcome::of(policy, judged))),
                    Step::Done(judged) => {
                        Ok(done(facts, &evidence, Outcome::of(policy, judged.into_iter().map(late).collect())))
                    }
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
                    answer.iter().for_each(|answer| steps.note(answer));
                    let late = || Answer::Unavailable("the API server did not answer in time".into());
                    evidence.add(query, answer.unwrap_or_else(late));
                }
            }
        }
    }

    /// The world's answer; `None` if it comes too late.
    async fn ask(&self, query: &Query, steps: &Steps<'_>) -> Option<Answer> {
        let answer = timeout_at(steps.deadline, self.world.answer_for(query, steps.payer())).await.ok();
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
