//! Takes one review through the engine. The only place where the engine and a world meet.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::budget::{Budget, Grant};
use crate::engine::decide::{Step, decide, overloaded};
use crate::engine::decision::Decision;
use crate::engine::evidence::{Answer, Evidence};
use crate::engine::facts::{Facts, RecordBodies, RequestObjects, Subject};
use crate::engine::json::Patch;
use crate::engine::outcome::{Outcome, WeighedViolation};
use crate::engine::overrides::objection;
use crate::engine::policy::{Policies, Policy};
use crate::engine::review::{BadReview, Operation, Request};
use crate::engine::stamp;
use crate::engine::violation::ViolationKind;
use crate::world::World;

/// Judges reviews by a policy. A world answers its queries.
pub struct Judge {
    policies: Arc<ArcSwap<Policies>>,
    world: Arc<dyn World>,
    decode_budget: Arc<Budget>,
    own_user: Arc<OnceLock<String>>,
}

/// The bodies of the records of a request.
struct Decoded {
    bodies: RecordBodies,
    /// The memory that they take; `None` if there was none in time, and the bodies are unread.
    granted: Option<Grant>,
    took: Option<Duration>,
}

/// The result of a review.
pub struct Judgement {
    /// For the reply.
    pub outcome: Outcome,
    /// For the log, metrics, Events and reports.
    pub decision: Decision,
}

impl Judge {
    /// A judge; `decode_budget` bounds the memory of record bodies that are inflated at once.
    #[must_use]
    pub fn new(policies: impl Into<Policies>, world: Arc<dyn World>, decode_budget: Arc<Budget>) -> Self {
        Self {
            policies: Arc::new(ArcSwap::from_pointee(policies.into())),
            world,
            decode_budget,
            own_user: Arc::default(),
        }
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
        let started = Instant::now();
        let objects = RequestObjects::read(request)?;
        let Decoded { bodies, granted, took } = self.decode(&objects, request.operation, deadline).await;
        let facts = self.facts(request, &objects, &bodies);
        let policies = self.policies.load();
        let policy = policies.of(request.namespace()).as_ref();
        let outcome = match (&facts.subject, &granted) {
            (Subject::Override(write), _) => {
                Outcome::of_override(objection(write, facts.actor.name, &policy.overrides, now))
            }
            (_, Some(_)) => Outcome::of(policy, self.decide_with_world(&facts, policy, now, deadline).await),
            // Only the bodies of records wait for memory.
            (_, None) => Outcome::of(policy, overloaded(&facts, policy)),
        };
        let decision = Decision::of(request, &facts, &outcome, started.elapsed());
        Ok(Judgement { outcome, decision: Decision { decoded: objects.storage.and(took), ..decision } })
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
        let objects = RequestObjects::read(request)?;
        // Without its body a record is still stamped with holder and start.
        let Decoded { bodies, granted: _granted, .. } = self.decode(&objects, request.operation, deadline).await;
        Ok(stamp::stamp(&self.facts(request, &objects, &bodies), now))
    }

    /// Inflates the bodies of the records of a request, once there is memory for them.
    async fn decode(&self, objects: &RequestObjects<'_>, operation: Operation, deadline: Instant) -> Decoded {
        let payloads = objects.payloads(operation);
        let granted = timeout_at(deadline, self.decode_budget.grant(payloads.inflated_size())).await.ok().flatten();
        if granted.is_none() {
            return Decoded { bodies: payloads.unread(), granted, took: None };
        }
        let started = Instant::now();
        Decoded { bodies: payloads.inflate(), granted, took: Some(started.elapsed()) }
    }

    fn facts<'r>(
        &self,
        request: &'r Request<'r>,
        objects: &'r RequestObjects<'r>,
        bodies: &'r RecordBodies,
    ) -> Facts<'r> {
        let facts = Facts::of(request, objects, bodies);
        let own_user = self.own_user.get().map(String::as_str);
        Facts { actor: facts.actor.or_interlock(own_user), ..facts }
    }

    /// Runs the rules, answering their queries, until they reach a decision.
    async fn decide_with_world(
        &self,
        facts: &Facts<'_>,
        policy: &Policy,
        now: Timestamp,
        deadline: Instant,
    ) -> Vec<WeighedViolation> {
        let mut evidence = Evidence::default();
        let mut in_time = true;
        loop {
            match decide(facts, policy, &evidence, now) {
                Step::Done(judged) if in_time => return judged,
                Step::Done(judged) => return judged.into_iter().map(late).collect(),
                Step::Ask(query) => {
                    let mut late = || {
                        in_time = false;
                        Answer::Unavailable("the API server did not answer in time".into())
                    };
                    let asked = self.world.answer(&query);
                    // A world that is always ready would outrun the timer.
                    let answer = match timeout_at(deadline, asked).await {
                        Ok(answer) if Instant::now() < deadline => answer,
                        _ => late(),
                    };
                    evidence.add(query, answer);
                }
            }
        }
    }
}

/// Marks a violation that is undecided because the time of the review was over.
fn late(mut judged: WeighedViolation) -> WeighedViolation {
    if judged.violation.kind == ViolationKind::Unavailable {
        judged.violation.kind = ViolationKind::Late;
    }
    judged
}
