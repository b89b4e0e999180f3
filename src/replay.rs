//! Judges recorded reviews one after another, as a cluster would have seen them.

mod audit;
mod line;
mod stamping;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::budget::Budget;
use crate::judge::Judge;
use crate::policy::Policies;
use crate::release::record::INFLATE_LIMIT;
use crate::review::{BadReview, Patch, Review};
use crate::world::ObjectKey;
use crate::world::memory::Memory;
use line::Line;

/// How long a review may take; nothing is waited for here but memory of our own.
const PATIENCE: Duration = Duration::from_secs(30);

/// A world in memory and a judge over it.
pub struct Replay {
    judge: Judge,
    memory: Arc<Memory>,
    as_recorded: bool,
    now: Timestamp,
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
        let memory = Arc::new(Memory::new(usize::MAX));
        // Reviews come one at a time: an old and a new body at their largest.
        let decodes = Arc::new(Budget::new(2 * INFLATE_LIMIT));
        Self { judge: Judge::new(policies, memory.clone(), decodes), memory, as_recorded, now: Timestamp::UNIX_EPOCH }
    }

    /// Replays one line. Marks, given objects and reads of an audit log give no result.
    ///
    /// # Errors
    /// When the line has none of the known shapes, or is not whole.
    pub async fn line(&mut self, number: usize, text: &str) -> Result<Vec<Replayed>, ReplayError> {
        let error = |why: String| ReplayError { line: number, why };
        let mut results = Vec::new();
        match Line::read(text).map_err(error)? {
            Line::Mark => {}
            Line::Object(object) => self.given(object).map_err(|why| error(why.to_string()))?,
            Line::Remove(object) => self.memory.remove_object(object).map_err(|why| error(why.to_string()))?,
            Line::Review { review, at } => {
                results.push(self.review(number, review.get(), at).await.map_err(|why| error(why.to_string()))?);
            }
            Line::Event(event) => {
                for review in audit::reviews(&event, &self.memory).map_err(error)? {
                    let at = Some(event.request_received_timestamp);
                    results.push(self.review(number, &review, at).await.map_err(|why| error(why.to_string()))?);
                }
            }
        }
        Ok(results)
    }

    /// Puts an object in, with the stamps of the copy that was there: whoever gives it has never seen them.
    fn given(&self, object: &RawValue) -> Result<(), serde_json::Error> {
        let key = ObjectKey::of_object(object)?;
        let known = self.memory.get(&key);
        let stamped = known.and_then(|known| stamping::restored(object.get(), "", &known));
        self.memory.put(key, stamped.unwrap_or_else(|| object.get().to_owned()));
        Ok(())
    }

    async fn review(&mut self, line: usize, text: &str, at: Option<Timestamp>) -> Result<Replayed, BadReview> {
        let recorded = Review::parse(text.as_bytes())?;
        let known = ObjectKey::of_request(&recorded.request).and_then(|key| self.memory.get(&key));
        let restored = stamping::restore(&recorded.request, text, known.as_deref());
        let text = restored.as_deref().unwrap_or(text);
        let recorded = Review::parse(text.as_bytes())?;
        self.now = at.or_else(|| line::newest_timestamp(&recorded.request)).unwrap_or(self.now);

        let deadline = Instant::now() + PATIENCE;
        let patch = self.judge.mutate(&recorded.request, self.now, deadline).await?;
        let stamped = patch.as_ref().and_then(|patch| stamping::patched(text, patch));
        let review = Review::parse(stamped.as_deref().unwrap_or(text).as_bytes())?;
        let verdict = self.judge.validate(&review.request, self.now, deadline).await?;
        // What is refused and was recorded all the same did happen.
        if verdict.outcome.allowed || self.as_recorded {
            self.memory.apply(&review.request);
        }
        let decision = verdict.decision;
        let violations = decision.findings.into_iter().map(|finding| ReplayedViolation {
            rule: finding.rule.as_str(),
            mode: finding.mode.as_str(),
            undecided: finding.is_undecided(),
            message: finding.message,
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
        })
    }
}
