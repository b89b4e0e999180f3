//! Takes one review through the engine. Only here do the engine and a world meet.

mod not_judged;
mod steps;

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use interlock_engine::decide::{ReviewFailure, Step, decide, outcome_of_failure};
use interlock_engine::decision::{Decision, ReviewRun, Transition};
use interlock_engine::effort::Effort;
use interlock_engine::evidence::{Answer, Evidence, Query};
use interlock_engine::facts::{Facts, Payloads, RecordBodies, RequestObjects, Subject};
use interlock_engine::freezes;
use interlock_engine::json::Patch;
use interlock_engine::outcome::{Outcome, WeighedViolation};
use interlock_engine::overrides;
use interlock_engine::policy::{Accounts, Policies, Policy};
use interlock_engine::review::{BadReview, Request, Review, head_of};
use interlock_engine::stamp::{self, ClusterStamps};
use interlock_engine::violation::ViolationKind;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::budget::{Budget, Flow, Peer};
use crate::world::{LossVerdict, World};
use steps::{ORDINARY_BYTES, Steps};

pub use not_judged::NotJudged;
pub use steps::Call;

/// Judges reviews by a policy. A world answers its queries.
pub struct Judge {
    policies: Arc<ArcSwap<Policies>>,
    world: Arc<dyn World>,
    shared: Arc<Budget>,
    own_user: Arc<OnceLock<String>>,
}

/// Why a query has no answer at the deadline.
const LATE: &str = "the API server did not answer in time";

/// Whether what a verdict is based on is noted with it.
enum Noted {
    Done,
    JudgeAgain,
}

/// A request under judgement. The first step of the rules determines its facts.
struct Case<'c> {
    judge: &'c Judge,
    request: &'c Request<'c>,
    contents: &'c Contents<'c>,
    accounts: &'c Accounts,
    policy: &'c Policy,
    steps: &'c Steps<'c>,
    facts: OnceLock<Facts<'c>>,
    started: Instant,
    now: Timestamp,
}

/// The objects of a request, and the bodies of its records.
struct Contents<'r> {
    objects: RequestObjects<'r>,
    payloads: Payloads,
    /// The bodies as they are before they are inflated.
    unread: RecordBodies,
    inflated: OnceLock<Inflated>,
}

/// The bodies of the records of a request, and how long inflating them took.
struct Inflated {
    bodies: RecordBodies,
    took: Duration,
}

/// The result of a review.
pub struct Judgement {
    /// For the reply.
    pub outcome: Outcome,
    /// For the log, metrics, Events and reports.
    pub decision: Decision,
}

impl Judge {
    /// Creates a judge. `shared` limits the memory for concurrently inflated record bodies, and the cores in use.
    #[must_use]
    pub fn new(policies: impl Into<Policies>, world: Arc<dyn World>, shared: Arc<Budget>) -> Self {
        Self { policies: Arc::new(ArcSwap::from_pointee(policies.into())), world, shared, own_user: Arc::default() }
    }

    /// The policies in force. A stored replacement applies from the next review on.
    #[must_use]
    pub fn policies(&self) -> Arc<ArcSwap<Policies>> {
        Arc::clone(&self.policies)
    }

    /// The policies in force, with the namespace labels that the world knows now.
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

    /// Adds Interlock's own user name at the API server, by which the judge recognises Interlock's writes once the name is set.
    #[must_use]
    pub fn with_own_user(self, own_user: Arc<OnceLock<String>>) -> Self {
        Self { own_user, ..self }
    }

    /// Parses the body of a review.
    ///
    /// # Errors
    /// [`NotJudged`]. Only a large body waits for a turn, and can get none.
    pub async fn parse<'b>(&self, body: &'b [u8], call: impl Into<Call>) -> Result<Review<'b>, NotJudged> {
        if body.len() <= ORDINARY_BYTES {
            return Ok(Review::parse(body)?);
        }
        let head = head_of(body);
        let user = head.as_ref().map(|head| head.user_info.username.as_ref()).unwrap_or_default();
        let parsed = Steps::new(&self.shared, user, call.into(), body.len()).run(|| Review::parse(body)).await?;
        Ok(parsed?)
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
        let started = Instant::now();
        let mut steps = Steps::of(&self.shared, request, call.into());
        let (objects, payloads) = match steps.read(request).await {
            Ok(read) => read,
            Err(NotJudged::Malformed(why)) => return Err(why),
            Err(NotJudged::Failed(why)) => return Ok(self.undecided(&request.head(), why)),
        };
        let policies = self.policies_in_force();
        let contents = Contents { objects, unread: payloads.unread(), payloads, inflated: OnceLock::new() };
        let case = Case {
            judge: self,
            request,
            contents: &contents,
            accounts: policies.accounts(),
            policy: policies.of(request.namespace()),
            steps: &steps,
            facts: OnceLock::new(),
            started,
            now,
        };
        Ok(case.decide_with_world().await.unwrap_or_else(|why| case.undecided(why)))
    }

    /// Why a review has no reply at its deadline. A step that outlives the deadline still runs, and an expensive review holds or
    /// awaits memory.
    #[must_use]
    pub fn out_of_time(&self, head: &Request<'_>, body_bytes: usize, peer: Peer) -> ReviewFailure {
        let is_at_work = self.shared.is_busy_with(Flow::of(peer, &head.user_info.username));
        if is_at_work || body_bytes > ORDINARY_BYTES { ReviewFailure::Busy } else { ReviewFailure::Late }
    }

    /// The policy's judgement of a request that could not be judged, from its head alone.
    #[must_use]
    pub fn undecided(&self, head: &Request<'_>, why: ReviewFailure) -> Judgement {
        // A head has no objects that could be malformed.
        let objects = RequestObjects::read(head).unwrap_or_default();
        let bodies = RecordBodies::default();
        let effort = Effort::of_review();
        let policies = self.policies_in_force();
        let facts = self.facts(head, &objects, &bodies, &effort, policies.accounts());
        let outcome = outcome_of_failure(head, &facts, policies.of(head.namespace()), why);
        let decision = Decision::of(head, &facts, &outcome, ReviewRun::default());
        // An Event needs an object that is known for sure.
        Judgement { outcome, decision: Decision { object: None, ..decision } }
    }

    /// The stamps that a request must get.
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
        let (objects, payloads) = match steps.read(request).await {
            Ok(read) => read,
            Err(NotJudged::Malformed(why)) => return Err(why),
            Err(NotJudged::Failed(_)) => return Ok(None),
        };
        let policies = self.policies_in_force();
        let stamp_with = |bodies: &RecordBodies| {
            let facts = self.facts(request, &objects, bodies, &steps.effort, policies.accounts());
            let policy = policies.of(request.namespace());
            let void = overrides::void(&facts, policy, now);
            let known = ClusterStamps {
                driver: stamp::driver(&facts, policy, |records, matches| self.world.drivers_naming(records, matches)),
                protected_by: stamp::inherits_protector(&facts)
                    .and_then(|(storage, records)| self.world.protector_of(storage, &records)),
            };
            stamp::stamp(&facts, policy, void.as_deref(), known, now)
        };
        if steps.take_memory(request, &objects, &payloads).await.is_ok()
            && let Ok(stamps) = steps.run(|| stamp_with(&payloads.inflate(&steps.effort))).await
        {
            return Ok(stamps);
        }
        // A record without its body still gets the stamps of holder and start.
        Ok(stamp_with(&payloads.unread()))
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
}

impl<'c> Case<'c> {
    /// Runs the rules, answering their queries, until they reach a decision.
    async fn decide_with_world(&self) -> Result<Judgement, ReviewFailure> {
        let Contents { objects, payloads, .. } = self.contents;
        self.steps.take_memory(self.request, objects, payloads).await?;
        let mut evidence = Evidence::default();
        let mut in_time = true;
        loop {
            let query = match self.steps.run(|| self.step(&evidence, in_time)).await? {
                ControlFlow::Break(judgement) => match self.note_loss(&mut evidence, &judgement).await {
                    Noted::Done => return Ok(judgement),
                    Noted::JudgeAgain => continue,
                },
                ControlFlow::Continue(query) => query,
            };
            match self.ask(&query).await {
                Some(answer) => {
                    self.steps.note(&answer);
                    evidence.add(query, answer);
                }
                None if self.steps.without_answer() == ReviewFailure::Busy => return Err(ReviewFailure::Busy),
                None => {
                    in_time = false;
                    evidence.add(query, Answer::Unavailable(LATE.to_owned()));
                }
            }
        }
    }

    /// Notes what an object loses, and the verdict. If it is not known any longer what the verdict is based on, the request is judged
    /// again.
    async fn note_loss(&self, evidence: &mut Evidence, judgement: &Judgement) -> Noted {
        let Some((loss, known)) = evidence.loss().filter(|_| !self.request.dry_run.unwrap_or_default()) else {
            return Noted::Done;
        };
        let verdict = LossVerdict { loss, known, admitted: judgement.outcome.allowed, now: self.now };
        match timeout_at(self.steps.deadline, self.judge.world.note_loss(verdict)).await {
            Ok(Ok(true)) => return Noted::Done,
            Ok(Ok(false)) => evidence.forget_losses(None),
            Ok(Err(why)) => evidence.forget_losses(Some(why)),
            Err(_) => evidence.forget_losses(Some(LATE.to_owned())),
        }
        Noted::JudgeAgain
    }

    /// Runs the rules once, with the evidence so far. The first step includes the facts, and the last one the decision.
    fn step(&self, evidence: &Evidence, in_time: bool) -> ControlFlow<Judgement, Query> {
        let facts = self.facts_with(&self.inflated().bodies);
        let outcome = match &facts.subject {
            Subject::Own(write) => match freezes::outcome(write, &facts.actor, self.policy, evidence, self.now) {
                Ok(outcome) => outcome,
                Err(query) => return ControlFlow::Continue(query),
            },
            _ => match decide(facts, self.policy, evidence, self.now) {
                Step::Done(judged) if in_time => Outcome::of(self.policy, judged),
                Step::Done(judged) => Outcome::of(self.policy, judged.into_iter().map(mark_late).collect()),
                Step::Ask(query) => return ControlFlow::Continue(query),
            },
        };
        ControlFlow::Break(self.conclude(self.request, facts, evidence, outcome))
    }

    /// The world's answer; `None` after the deadline.
    async fn ask(&self, query: &Query) -> Option<Answer> {
        let deadline = self.steps.deadline;
        let answer = timeout_at(deadline, self.judge.world.answer_for(query, self.steps.budget())).await.ok();
        // The timer never fires for a world that is always ready.
        answer.filter(|_| Instant::now() < deadline)
    }

    /// The policy's judgement of a request for which the rules reached no decision.
    fn undecided(&self, why: ReviewFailure) -> Judgement {
        // The facts say more than the head, and the objects are not read again.
        let facts = self.facts_with(&self.contents.unread);
        let outcome = outcome_of_failure(self.request, facts, self.policy, why);
        self.conclude(&self.request.head(), facts, &Evidence::default(), outcome)
    }

    fn conclude(&self, request: &Request<'_>, facts: &Facts<'_>, evidence: &Evidence, outcome: Outcome) -> Judgement {
        let Contents { objects, inflated, .. } = self.contents;
        let is_dry_run = request.dry_run.unwrap_or_default();
        let run = ReviewRun {
            took: self.started.elapsed(),
            decoded: objects.storage.and(inflated.get()).map(|inflated| inflated.took),
            transition: if is_dry_run { None } else { Transition::of(facts, self.policy, evidence, self.now) },
        };
        let decision = Decision::of(request, facts, &outcome, run);
        Judgement { outcome, decision }
    }

    /// The facts, with these bodies if they are not known yet.
    fn facts_with(&self, bodies: &'c RecordBodies) -> &Facts<'c> {
        let Contents { objects, .. } = self.contents;
        self.facts.get_or_init(|| self.judge.facts(self.request, objects, bodies, &self.steps.effort, self.accounts))
    }

    fn inflated(&self) -> &'c Inflated {
        let Contents { payloads, inflated, .. } = self.contents;
        inflated.get_or_init(|| Inflated::of(payloads, &self.steps.effort))
    }
}

impl Inflated {
    fn of(payloads: &Payloads, effort: &Effort) -> Self {
        let started = Instant::now();
        let bodies = payloads.inflate(effort);
        Self { bodies, took: started.elapsed() }
    }
}

/// Marks a violation that is undecided because the deadline of the review has passed.
fn mark_late(mut judged: WeighedViolation) -> WeighedViolation {
    if judged.violation.kind == ViolationKind::Unavailable {
        judged.violation.kind = ViolationKind::Late;
    }
    judged
}

#[cfg(test)]
mod tests;
