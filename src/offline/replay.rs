//! Judges recorded reviews one by one, as in a cluster.

mod appliers;
mod audit;
mod context;
mod gaps;
mod line;
mod registered;
mod review_result;
mod source;
mod witness;

use std::sync::Arc;
use std::time::Duration;

use interlock_engine::decision::DecisionFinding;
use interlock_engine::facts::storing_kind;
use interlock_engine::json::{Patch, RawObject};
use interlock_engine::object::ObjectKey;
use interlock_engine::policy::Policies;
use interlock_engine::release::ReleaseRef;
use interlock_engine::release::record::INFLATE_LIMIT;
use interlock_engine::review::{BadReview, Request, Review};
use interlock_engine::stamp::recording;
use interlock_engine::ways_out::WaysOut;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::budget::Budget;
use crate::judge::{Judge, Judgement};
use crate::offline::log::AuditEvent;
use crate::offline::registration::Registration;
use crate::serve::page::{OverviewPage, PageSource};
use crate::serve::report::refusals::LastRefusals;
use crate::world::memory::Memory;
use appliers::Appliers;
use audit::AuditedChange;
use line::RecordingLine;

pub(crate) use appliers::Applier;
pub use context::ReplayedContext;
pub(crate) use gaps::counted;
pub use gaps::{NothingJudged, ReplayGaps, UnknownKind};
pub(crate) use review_result::ReviewResult;
pub use source::{Source, SourceError, SourceLine, SourceNotes};
use witness::Witness;

/// The deadline of a review. Only the replay's own memory budget can delay a review.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum size of remembered objects, in bytes. It suffices for a large cluster in a long log.
const MAX_WORLD_BYTES: usize = 512 << 20;

/// A world in memory and a judge over it.
pub struct Replay {
    judge: Judge,
    memory: Arc<Memory>,
    witness: Arc<Witness>,
    as_recorded: bool,
    /// `None` judges every request.
    registration: Option<Arc<Registration>>,
    now: Timestamp,
    gaps: ReplayGaps,
    refusals: Option<Arc<LastRefusals>>,
    appliers: Appliers,
}

/// The result of one recorded review; one line of `replay -o json`.
#[derive(Debug, Serialize)]
pub struct Replayed {
    /// The line in the recording, from 1.
    pub line: usize,
    pub uid: String,
    /// CREATE, UPDATE, DELETE or CONNECT.
    pub operation: String,
    /// `secrets`, `deployments.apps/scale`.
    pub resource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
    pub user: String,
    pub allowed: bool,
    /// 200, or the status code of the rule that refuses.
    pub code: u16,
    /// Broken or undecided rules, in any mode.
    pub violations: Vec<ReplayedViolation>,
    /// Warnings that the user would have seen.
    pub warnings: Vec<String>,
    /// The patch of the mutating webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    #[serde(skip)]
    pub release: Option<ReleaseRef>,
    /// The time of the request.
    #[serde(skip)]
    pub at: Timestamp,
    #[serde(skip)]
    pub context: ReplayedContext,
}

/// One broken or undecided rule.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayedViolation {
    pub rule: &'static str,
    /// enforce, warn or audit.
    pub mode: &'static str,
    pub message: String,
    /// The ways out that the message names.
    pub ways_out: WaysOut,
    /// Only present if true.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// Whether this violation refuses the request.
    #[serde(skip)]
    pub refuses: bool,
    /// JSON pointers to the fields concerned, at most 20.
    #[serde(skip)]
    pub pointers: Vec<String>,
}

impl From<DecisionFinding> for ReplayedViolation {
    fn from(finding: DecisionFinding) -> Self {
        Self {
            rule: finding.rule.as_str(),
            mode: finding.mode.as_str(),
            undecided: finding.is_undecided(),
            message: finding.message,
            ways_out: finding.ways_out,
            refuses: finding.refuses,
            pointers: finding.pointers,
        }
    }
}

/// A line of a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct ReplayError {
    /// From 1.
    pub line: usize,
    pub why: String,
}

impl Replay {
    /// Creates an empty world with policies. With `as_recorded`, refused writes are applied too, so that the rest of a recording
    /// made without Interlock stays consistent.
    #[must_use]
    pub fn new(policies: impl Into<Policies>, as_recorded: bool) -> Self {
        Self::over(policies.into(), Memory::new(MAX_WORLD_BYTES), as_recorded)
    }

    fn over(policies: Policies, memory: Memory, as_recorded: bool) -> Self {
        let memory = Arc::new(memory);
        // One review at a time, with an old and a new body of the maximum size.
        let decodes = Arc::new(Budget::new(2 * INFLATE_LIMIT));
        let witness = Arc::new(Witness::of(memory.clone()));
        let judge = Judge::new(policies, witness.clone(), decodes);
        let (now, gaps) = (Timestamp::UNIX_EPOCH, ReplayGaps::default());
        let appliers = Appliers::default();
        Self { judge, memory, witness, as_recorded, registration: None, now, gaps, refusals: None, appliers }
    }

    /// Notes the refusals from now on.
    #[must_use]
    pub(crate) fn noting(self, refusals: Arc<LastRefusals>) -> Self {
        Self { refusals: Some(refusals), ..self }
    }

    /// The page of a server that has this world and these refusals.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub(crate) fn page(&self, refusals: Arc<LastRefusals>) -> OverviewPage {
        let (world, policies, clock) = (self.memory.clone(), self.judge.policies(), Arc::default());
        OverviewPage::new(PageSource { world, policies, clock, refusals, cluster_name: None, cluster: None })
    }

    /// A copy that continues from here with the same policies. It does not apply refused writes.
    #[must_use]
    pub fn branch(&self) -> Self {
        let policies = Policies::clone(&self.judge.policies().load());
        Self { now: self.now, ..Self::over(policies, self.memory.branch(), false) }
    }

    /// The current JSON text of an object.
    #[must_use]
    pub fn object(&self, key: &ObjectKey) -> Option<String> {
        self.memory.get(key)
    }

    /// The time of the last review.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The objects of the input that apply others, with what they were seen to do.
    pub(crate) fn appliers(&self) -> impl Iterator<Item = (&ObjectKey, Applier)> {
        self.appliers.all()
    }

    /// The gaps so far.
    #[must_use]
    pub fn gaps(&self) -> ReplayGaps {
        ReplayGaps { forgotten: self.memory.forgotten(), unknown: self.witness.unknown(), ..self.gaps.clone() }
    }

    /// The groups and kinds that rules have queried so far.
    #[must_use]
    pub fn asked_kinds(&self) -> Vec<(String, String)> {
        self.witness.asked()
    }

    /// Replays one line. Marks, objects, and events other than writes have no result.
    ///
    /// # Errors
    /// When the line has an unknown format, or is incomplete.
    pub async fn line(&mut self, number: usize, text: &str) -> Result<Vec<Replayed>, ReplayError> {
        let error = |why: String| ReplayError { line: number, why };
        let mut results = Vec::new();
        match RecordingLine::read(text).map_err(error)? {
            RecordingLine::Mark => {}
            RecordingLine::Object(object) => self.put(object).map_err(|why| error(why.to_string()))?,
            RecordingLine::Remove(object) => {
                self.memory.remove_object(object.into()).map_err(|why| error(why.to_string()))?
            }
            RecordingLine::Review { review, at } => {
                let review = Review::parse(review.as_bytes()).map_err(|why| error(why.to_string()))?;
                let replayed = self.request(number, review.request, at, false).await;
                results.extend(replayed.map_err(|why| error(why.to_string()))?);
            }
            RecordingLine::Event(event) => results = self.event(number, &event).await.map_err(error)?,
        }
        Ok(results)
    }

    /// Replays one line of a source.
    ///
    /// # Errors
    /// As for [`Self::line`], with the file and the probable reason.
    pub async fn source_line(&mut self, line: &SourceLine<'_>) -> Result<Vec<Replayed>, SourceError> {
        self.line(line.number, line.text).await.map_err(|ReplayError { line: number, why }| {
            let hint = line.hint().map(|hint| format!(". {hint}")).unwrap_or_default();
            SourceError::Line { path: line.file.to_owned(), line: number, why: format!("{why}{hint}") }
        })
    }

    /// Counts an event, and judges the write in it.
    async fn event(&mut self, line: usize, event: &AuditEvent<'_>) -> Result<Vec<Replayed>, String> {
        self.gaps.count_event(event);
        let mut results = Vec::new();
        match event.change(&self.memory)? {
            AuditedChange::None => {}
            AuditedChange::NeverSent => self.count_never_sent(),
            AuditedChange::Refused(request) => {
                if self.may_be_sent(&request) {
                    self.gaps.count_refused(&event.verb);
                }
            }
            AuditedChange::WithoutObjects(request) => {
                if self.may_be_sent(&request) {
                    self.gaps.count_without_objects(&request.resource.resource);
                }
            }
            AuditedChange::Write(write) => {
                self.gaps.writes += 1;
                for request in write.requests() {
                    let replayed = self.request(line, request, Some(write.at), write.unseen).await;
                    results.extend(replayed.map_err(|why| why.to_string())?);
                }
            }
        }
        Ok(results)
    }

    /// Stores an object, with the stamps of the remembered object, which the source of the recording lacks.
    fn put(&mut self, object: &RawValue) -> Result<(), serde_json::Error> {
        let key = ObjectKey::of_object(object.into())?;
        self.appliers.note_object(&key, object.get());
        let known = self.memory.get(&key);
        let stamped = known.and_then(|known| recording::restored(object.into(), &known));
        self.memory.put(key, stamped.as_deref().unwrap_or(object).get().to_owned());
        self.gaps.objects += 1;
        Ok(())
    }

    async fn review(
        &mut self,
        line: usize,
        recorded: Request<'_>,
        at: Option<Timestamp>,
    ) -> Result<Replayed, BadReview> {
        let restored = self.restored(&recorded);
        let recorded =
            Request { old_object: restored.as_deref().map(RawObject::from).or(recorded.old_object), ..recorded };
        self.now = at.or_else(|| line::newest_timestamp(&recorded)).unwrap_or(self.now);

        let deadline = Instant::now() + REVIEW_TIMEOUT;
        let patch = self.judge.mutate(&recorded, self.now, deadline).await?;
        let stamped = patch.as_ref().and_then(|patch| recording::patched(recorded.object?, patch));
        let request = Request { object: stamped.as_deref().map(RawObject::from).or(recorded.object), ..recorded };
        let mut verdict = self.judge.validate(&request, self.now, deadline).await?;
        self.gaps.reviews += 1;
        // With `as_recorded`, refused writes took place.
        if verdict.outcome.allowed || self.as_recorded {
            self.memory.apply(&request);
        }
        let context = ReplayedContext::of(&request, &mut verdict.decision, patch.as_ref());
        let Judgement { outcome, decision } = verdict;
        if let Some(refusals) = &self.refusals {
            refusals.note(&decision, self.now);
        }
        Ok(Replayed {
            line,
            uid: decision.uid,
            operation: decision.operation.as_str().to_owned(),
            resource: decision.resource,
            namespace: decision.namespace,
            name: decision.name,
            user: decision.user,
            allowed: outcome.allowed,
            code: outcome.code,
            violations: decision.findings.into_iter().map(ReplayedViolation::from).collect(),
            warnings: outcome.warnings,
            patch,
            release: decision.release,
            at: self.now,
            context,
        })
    }

    /// The stored record, with the stamps of the remembered record.
    fn restored(&self, recorded: &Request<'_>) -> Option<Box<RawValue>> {
        storing_kind(recorded)?;
        let old = recorded.old_object?;
        recording::restored(old, &self.memory.get(&ObjectKey::of_request(recorded)?)?)
    }
}
