//! Judges recorded reviews one after another, as a cluster would have seen them.

mod audit;
mod gaps;
mod line;
mod source;
mod stamping;
mod zstd;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::budget::Budget;
use crate::engine::facts::storing_kind;
use crate::engine::json::Patch;
use crate::engine::object::ObjectKey;
use crate::engine::policy::Policies;
use crate::engine::release::ReleaseRef;
use crate::engine::release::record::INFLATE_LIMIT;
use crate::engine::review::{BadReview, Request, Review};
use crate::judge::Judge;
use crate::world::memory::Memory;
use audit::AuditedChange;
use line::RecordingLine;

pub use gaps::ReplayGaps;
pub use source::{Source, SourceError, SourceLine};

/// How long a review may take; nothing is waited for here but memory of our own.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(30);

/// The objects of a world at most, in bytes: those of a large cluster, which a long log shows bit by bit.
const MAX_WORLD_BYTES: usize = 512 << 20;

/// A world in memory and a judge over it.
pub struct Replay {
    judge: Judge,
    memory: Arc<Memory>,
    as_recorded: bool,
    now: Timestamp,
    gaps: ReplayGaps,
}

/// What came of one recorded review; one line of `replay -o json`.
#[derive(Debug, Serialize)]
pub struct Replayed {
    /// The line in the recording, from 1.
    pub line: usize,
    /// Of the review.
    pub uid: String,
    /// CREATE, UPDATE, DELETE or CONNECT.
    pub operation: String,
    /// `secrets`, `deployments.apps/scale`.
    pub resource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Of the object.
    pub name: String,
    /// Who asked.
    pub user: String,
    /// Whether it would have been admitted.
    pub allowed: bool,
    /// 200, or that of the rule that refuses.
    pub code: u16,
    /// The rules that were broken or undecided, whatever their mode.
    pub violations: Vec<ReplayedViolation>,
    /// What the user would have been told all the same.
    pub warnings: Vec<String>,
    /// What the mutating half would have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// The release concerned, where one is known.
    #[serde(skip)]
    pub release: Option<ReleaseRef>,
    /// When it was asked.
    #[serde(skip)]
    pub at: Timestamp,
}

/// One broken or undecided rule.
#[derive(Debug, Serialize)]
pub struct ReplayedViolation {
    /// Its public name.
    pub rule: &'static str,
    /// enforce, warn or audit.
    pub mode: &'static str,
    /// The sentence for the user.
    pub message: String,
    /// Present when the rule could not be decided.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// Whether it is what refuses the request.
    #[serde(skip)]
    pub refuses: bool,
}

/// Why a recording cannot be replayed, with the line.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct ReplayError {
    /// From 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl Replay {
    /// An empty world under some policies. With `as_recorded`, refused writes are applied
    /// too, so that the rest of a recording made without Interlock still makes sense.
    #[must_use]
    pub fn new(policies: impl Into<Policies>, as_recorded: bool) -> Self {
        Self::over(policies.into(), Memory::new(MAX_WORLD_BYTES), as_recorded)
    }

    fn over(policies: Policies, memory: Memory, as_recorded: bool) -> Self {
        let memory = Arc::new(memory);
        // Reviews come one at a time: an old and a new body at their largest.
        let decodes = Arc::new(Budget::new(2 * INFLATE_LIMIT));
        let judge = Judge::new(policies, memory.clone(), decodes);
        Self { judge, memory, as_recorded, now: Timestamp::UNIX_EPOCH, gaps: ReplayGaps::default() }
    }

    /// Another one that goes on from here, by the same policies, and in which what is refused does not happen.
    #[must_use]
    pub fn branch(&self) -> Self {
        let policies = Policies::clone(&self.judge.policies().load());
        Self { now: self.now, ..Self::over(policies, self.memory.branch(), false) }
    }

    /// The JSON text of an object as it is by now.
    #[must_use]
    pub fn object(&self, key: &ObjectKey) -> Option<String> {
        self.memory.get(key)
    }

    /// The time of the last review.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// What could not be judged so far.
    #[must_use]
    pub fn gaps(&self) -> ReplayGaps {
        ReplayGaps { forgotten: self.memory.forgotten(), ..self.gaps.clone() }
    }

    /// Replays one line. Marks, given objects, and what is no write in an audit log give no result.
    ///
    /// # Errors
    /// When the line has none of the known shapes, or is not whole.
    pub async fn line(&mut self, number: usize, text: &str) -> Result<Vec<Replayed>, ReplayError> {
        let error = |why: String| ReplayError { line: number, why };
        let mut results = Vec::new();
        match RecordingLine::read(text).map_err(error)? {
            RecordingLine::Mark => {}
            RecordingLine::Object(object) => self.put(object).map_err(|why| error(why.to_string()))?,
            RecordingLine::Remove(object) => self.memory.remove_object(object).map_err(|why| error(why.to_string()))?,
            RecordingLine::Review { review, at } => {
                let review = Review::parse(review.as_bytes()).map_err(|why| error(why.to_string()))?;
                results.push(self.review(number, review.request, at).await.map_err(|why| error(why.to_string()))?);
            }
            RecordingLine::Event(event) => match event.change(&self.memory).map_err(error)? {
                AuditedChange::None => {}
                AuditedChange::WithoutObjects(resource) => self.gaps.count_without_objects(resource),
                AuditedChange::Write(write) => {
                    self.gaps.count_write(write.unseen);
                    for request in write.requests() {
                        let replayed = self.review(number, request, Some(write.at)).await;
                        results.push(replayed.map_err(|why| error(why.to_string()))?);
                    }
                }
            },
        }
        Ok(results)
    }

    /// Puts an object in, with the stamps of the copy that was there: whoever gives it has never seen them.
    fn put(&self, object: &RawValue) -> Result<(), serde_json::Error> {
        let key = ObjectKey::of_object(object)?;
        let known = self.memory.get(&key);
        let stamped = known.and_then(|known| stamping::restored(object, &known));
        self.memory.put(key, stamped.as_deref().unwrap_or(object).get().to_owned());
        Ok(())
    }

    async fn review(
        &mut self,
        line: usize,
        recorded: Request<'_>,
        at: Option<Timestamp>,
    ) -> Result<Replayed, BadReview> {
        let restored = self.restored(&recorded);
        let recorded = Request { old_object: restored.as_deref().or(recorded.old_object), ..recorded };
        self.now = at.or_else(|| line::newest_timestamp(&recorded)).unwrap_or(self.now);

        let deadline = Instant::now() + REVIEW_TIMEOUT;
        let patch = self.judge.mutate(&recorded, self.now, deadline).await?;
        let stamped = patch.as_ref().and_then(|patch| stamping::patched(recorded.object?, patch));
        let request = Request { object: stamped.as_deref().or(recorded.object), ..recorded };
        let verdict = self.judge.validate(&request, self.now, deadline).await?;
        // What is refused and was recorded all the same did happen.
        if verdict.outcome.allowed || self.as_recorded {
            self.memory.apply(&request);
        }
        let decision = verdict.decision;
        let violations = decision.findings.into_iter().map(|finding| ReplayedViolation {
            rule: finding.rule.as_str(),
            mode: finding.mode.as_str(),
            undecided: finding.is_undecided(),
            message: finding.message,
            refuses: finding.refuses,
        });
        Ok(Replayed {
            line,
            uid: decision.uid,
            operation: decision.operation.as_str().to_owned(),
            resource: decision.resource,
            namespace: decision.namespace,
            name: decision.name,
            user: decision.user,
            allowed: verdict.outcome.allowed,
            code: verdict.outcome.code,
            violations: violations.collect(),
            warnings: verdict.outcome.warnings,
            patch,
            release: decision.release,
            at: self.now,
        })
    }

    /// The stored record with the stamps that the world knows of it.
    fn restored(&self, recorded: &Request<'_>) -> Option<Box<RawValue>> {
        storing_kind(recorded)?;
        let old = recorded.old_object?;
        stamping::restored(old, &self.memory.get(&ObjectKey::of_request(recorded)?)?)
    }
}
