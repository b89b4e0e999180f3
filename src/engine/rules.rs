//! The ordered table of rules, and the pure decision over it.

mod declarations;
mod documentation;
pub(crate) mod drivers;
mod need;
mod objects;
pub(crate) mod records;
mod relief;
pub(crate) mod wording;

use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;

use super::evidence::{Evidence, Query};
use super::facts::{ActorKind, Facts, ObjectChange, RecordChunk, Subject};
use super::policy::{Mode, Policy, Scope};
use super::release::{ReleaseRef, Storage};
use super::review::Operation;
use declarations::case::DeclarationCase;
pub use documentation::Documentation;
use need::{Need, migrated, terminating};
use objects::case::{Disturbance, ObjectCase};
use records::case::Case;
use relief::relieve;

pub use records::runbook::{Check, CheckName, Holds, inspect};
pub use relief::Relief;

/// The public name of a rule: policies, metrics and messages use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(usize)]
pub enum RuleId {
    /// No install or upgrade starts while another operation holds the release.
    ConcurrentOperation,
    /// Which way out of an operation in flight is open.
    PendingRecovery,
    /// An operation that was interrupted is finished before the next version is tried.
    ResumeInterrupted,
    /// A new record has a higher revision than every other one.
    RevisionOrder,
    /// A record comes to be in a pending status, by somebody who may start operations.
    UnusualCreate,
    /// A status changes only along edges that some client makes.
    IllegalTransition,
    /// Object name, labels and body of a record say the same.
    RecordIntegrity,
    /// What a record says of its release never changes.
    RecordTampering,
    /// The newest deployed record of a live release stays.
    RecordDeletion,
    /// The holder stamps are those that the mutating half wrote.
    ForgedStamp,
    /// While an operation is in flight, only its holder changes what the release declares.
    ForeignEditInTransition,
    /// A field that a release declares changes through the release.
    ManualEdit,
    /// An object that a release declares goes through the release.
    ManualDelete,
    /// A number of replicas that a release declares changes through the release.
    ManualScale,
    /// A commit of Sveltos leaves out nothing that was delivered and is still wanted.
    DroppedBundles,
    /// A commit of Sveltos names only bundles that exist.
    DanglingBundle,
    /// Sveltos' agent removes everything only once the ClusterSummary is being deleted.
    RemoveWhileLive,
    /// One HelmRelease drives a release.
    DuplicateRelease,
    /// An edit of a HelmRelease does not uninstall what it has installed.
    Retarget,
    /// A HelmRelease does not stall or destroy when something fails.
    RetryStrategy,
    /// A ClusterExtension keeps its version while an operation on it is in flight.
    ExtensionChangeWhilePending,
    /// A ClusterExtension keeps to what loses no data, and its revisions are left to OLM.
    ExtensionSafety,
}

impl RuleId {
    /// Every rule, in the order in which they are evaluated and reported: those over records, over objects, and over declarations.
    pub const ALL: [Self; 22] = [
        Self::ConcurrentOperation,
        Self::PendingRecovery,
        Self::ResumeInterrupted,
        Self::RevisionOrder,
        Self::UnusualCreate,
        Self::IllegalTransition,
        Self::RecordIntegrity,
        Self::RecordTampering,
        Self::RecordDeletion,
        Self::ForgedStamp,
        Self::ForeignEditInTransition,
        Self::ManualEdit,
        Self::ManualDelete,
        Self::ManualScale,
        Self::DroppedBundles,
        Self::DanglingBundle,
        Self::RemoveWhileLive,
        Self::DuplicateRelease,
        Self::Retarget,
        Self::RetryStrategy,
        Self::ExtensionChangeWhilePending,
        Self::ExtensionSafety,
    ];

    /// The rules over records.
    pub fn over_records() -> impl Iterator<Item = Self> {
        RECORD_RULES.into_iter().map(|(rule, _)| rule)
    }

    /// The HTTP status of a refusal: 403, because 409 would make retry-on-conflict loops spin, and 429 would make the
    /// client wait with a plan computed from what is stale by then. Of a commit of Sveltos 422: up to 1.12 its controller
    /// takes 403 in a teardown for a permission that it lacks and goes on, and 404 everywhere for nothing to do.
    #[must_use]
    pub fn status_code(self) -> u16 {
        match self {
            Self::DroppedBundles | Self::DanglingBundle | Self::RemoveWhileLive => 422,
            _ => 403,
        }
    }

    /// Whether what it judges is refused when nothing can be learnt, unless the policy says otherwise: whoever is refused a
    /// commit tries again within a minute, and no later moment shows what it takes away.
    #[must_use]
    pub fn is_gate(self) -> bool {
        matches!(self, Self::DroppedBundles | Self::DanglingBundle)
    }

    /// As policies and messages spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConcurrentOperation => "concurrent-operation",
            Self::PendingRecovery => "pending-recovery",
            Self::ResumeInterrupted => "resume-interrupted",
            Self::RevisionOrder => "revision-order",
            Self::UnusualCreate => "unusual-create",
            Self::IllegalTransition => "illegal-transition",
            Self::RecordIntegrity => "record-integrity",
            Self::RecordTampering => "record-tampering",
            Self::RecordDeletion => "record-deletion",
            Self::ForgedStamp => "forged-stamp",
            Self::ForeignEditInTransition => "foreign-edit-in-transition",
            Self::ManualEdit => "manual-edit",
            Self::ManualDelete => "manual-delete",
            Self::ManualScale => "manual-scale",
            Self::DroppedBundles => "dropped-bundles",
            Self::DanglingBundle => "dangling-bundle",
            Self::RemoveWhileLive => "remove-while-live",
            Self::DuplicateRelease => "duplicate-release",
            Self::Retarget => "retarget",
            Self::RetryStrategy => "retry-strategy",
            Self::ExtensionChangeWhilePending => "extension-change-while-pending",
            Self::ExtensionSafety => "extension-safety",
        }
    }
}

/// A rule over records.
type RecordRule = (RuleId, fn(&Case<'_>) -> Finding);

/// The rules over records, in the order of [`RuleId::ALL`].
const RECORD_RULES: [RecordRule; 10] = [
    (RuleId::ConcurrentOperation, records::concurrent_operation::check),
    (RuleId::PendingRecovery, records::pending_recovery::check),
    (RuleId::ResumeInterrupted, records::resume_interrupted::check),
    (RuleId::RevisionOrder, records::revision_order::check),
    (RuleId::UnusualCreate, records::unusual_create::check),
    (RuleId::IllegalTransition, records::illegal_transition::check),
    (RuleId::RecordIntegrity, records::record_integrity::check),
    (RuleId::RecordTampering, records::record_tampering::check),
    (RuleId::RecordDeletion, records::record_deletion::check),
    (RuleId::ForgedStamp, records::forged_stamp::check),
];

/// A rule over declarations: what a write of one announces can be wrong in several ways.
type DeclarationRule = (RuleId, fn(&DeclarationCase<'_>) -> Findings);

/// The rules over declarations, in the order of [`RuleId::ALL`].
const DECLARATION_RULES: [DeclarationRule; 8] = [
    (RuleId::DroppedBundles, declarations::dropped_bundles::check),
    (RuleId::DanglingBundle, declarations::dangling_bundle::check),
    (RuleId::RemoveWhileLive, declarations::remove_while_live::check),
    (RuleId::DuplicateRelease, declarations::duplicate_release::check),
    (RuleId::Retarget, declarations::retarget::check),
    (RuleId::RetryStrategy, declarations::retry_strategy::check),
    (RuleId::ExtensionChangeWhilePending, declarations::extension_change_while_pending::check),
    (RuleId::ExtensionSafety, declarations::extension_safety::check),
];

impl fmt::Display for RuleId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What a rule says of a request: nothing, what is wrong, or what it still needs.
pub(crate) type Finding = Result<Option<Refusal>, Need>;

/// The same of a rule that may find several things wrong.
pub(crate) type Findings = Result<Vec<Refusal>, Need>;

/// What is wrong, before the rule's name is put to it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    sentence: String,
    way_out: String,
    pointers: Vec<String>,
    /// Where it is about another release than the request.
    release: Option<ReleaseRef>,
}

impl Refusal {
    fn new(sentence: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), way_out: way_out.into(), pointers: Vec::new(), release: None }
    }

    /// What it is about: who asks must not choose the release by which their own request is judged.
    fn about(mut self, release: ReleaseRef) -> Self {
        self.release = Some(release);
        self
    }

    fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointers.push(pointer.into());
        self
    }

    fn at_all(mut self, lost: &Disturbance) -> Self {
        self.pointers.extend(lost.fields.iter().map(|field| field.pointer().to_string()));
        self
    }
}

/// A rule that a request breaks, or that could not be decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: RuleId,
    /// Broken or undecided.
    pub kind: Kind,
    /// What was refused, the release and its state.
    pub sentence: String,
    /// What to do about it.
    pub way_out: String,
    /// The places in the object that are concerned.
    pub pointers: Vec<String>,
    /// The release concerned, where one is known.
    pub release: Option<ReleaseRef>,
    /// By what it does not refuse all the same.
    pub overridden: Option<Relief>,
}

impl Violation {
    fn refused(rule: RuleId, release: Option<ReleaseRef>, refusal: Refusal) -> Self {
        let Refusal { sentence, way_out, pointers, release: about } = refusal;
        let release = about.or(release);
        Self { rule, kind: Kind::Refused, sentence, way_out, pointers, release, overridden: None }
    }

    fn undecided(rule: RuleId, release: Option<ReleaseRef>, subject: &str, need: Need) -> Result<Self, Query> {
        let (kind, why, way_out) = need.told()?;
        Ok(Self {
            rule,
            kind,
            sentence: format!("{subject} could not be judged: {why}."),
            way_out: way_out.to_owned(),
            pointers: Vec::new(),
            release,
            overridden: None,
        })
    }

    /// The sentence for the user, with the way out and the rule's name.
    #[must_use]
    pub fn message(&self) -> String {
        format!("{} {} [{}]", self.sentence, self.way_out, self.rule)
    }
}

/// Whether a rule is broken, or why it could not be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The rule is broken.
    Refused,
    /// The rule could not learn what it needs.
    Unavailable,
    /// The same, because the time of the review was over.
    Late,
    /// There was no memory for what it needs to read.
    Overloaded,
    /// The rule has learnt what it needs, and that decides nothing.
    Unclear,
}

impl Kind {
    /// As annotations, metrics and the log name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Late => "late",
            Self::Overloaded => "overloaded",
            Self::Unclear => "unclear",
        }
    }
}

/// The next step of a decision.
#[derive(Debug)]
pub enum Step {
    /// A rule needs to know this; decide again with the answer.
    Ask(Query),
    /// The rules have spoken.
    Done(Vec<Violation>),
}

/// Judges a request. Pure: the same arguments give the same step.
#[must_use]
pub fn decide(facts: &Facts<'_>, policy: &Policy, evidence: &Evidence, now: Timestamp) -> Step {
    let judged = match &facts.subject {
        Subject::Other | Subject::Override(_) => Ok(Vec::new()),
        _ if facts.actor.kind == ActorKind::ControlPlane => Ok(Vec::new()),
        Subject::Record(target, change) => judge_record(&Case { facts, target, change, policy, evidence, now }),
        Subject::RecordChunk(part) => judge_part(facts, part, policy, evidence),
        Subject::Declaration(declaration) => {
            judge_declaration(&DeclarationCase { facts, declaration, policy, evidence, now })
        }
    };
    // What declares releases may itself be an object of one.
    let judged = judged.and_then(|mut violations| {
        if let Some(write) = facts.managed {
            violations.extend(judge_object(&ObjectCase { facts, write, policy, evidence, now })?);
        }
        Ok(violations)
    });
    let judged = judged.and_then(|violations| {
        // A namespace on its way out takes everything in it along; nothing that is asked of it then is ours to refuse.
        let namespace = facts.namespace().filter(|_| facts.operation == Operation::Delete && !violations.is_empty());
        let gone = namespace.map(|namespace| terminating(evidence, namespace)).transpose();
        match gone {
            Err(Need::Ask(query)) => Err(query),
            Ok(Some(true)) => Ok(Vec::new()),
            Ok(_) | Err(_) => Ok(violations),
        }
    });
    let judged = judged.and_then(|violations| relieve(facts, policy, evidence, now, violations));
    judged.map_or_else(Step::Ask, Step::Done)
}

/// Asks rules that are switched on, one after the other.
fn consult<Check: FnOnce() -> Findings>(
    facts: &Facts<'_>,
    policy: &Policy,
    subject: &str,
    rules: impl IntoIterator<Item = (RuleId, Check)>,
) -> Result<Vec<Violation>, Query> {
    let scope = Scope::of(facts, policy);
    let release = || facts.release();
    // A declaration that moves to another release is judged over both; the mode for each violation is found later.
    let former = facts.former_release();
    let before = Scope { release: former.as_ref().map(|former| former.name.as_str()).or(scope.release), ..scope };
    let mut violations = Vec::new();
    for (rule, check) in rules {
        if [&scope, &before].into_iter().all(|scope| policy.mode(rule, scope) == Mode::Off) {
            continue;
        }
        match check() {
            Ok(refusals) => {
                violations.extend(refusals.into_iter().map(|refusal| Violation::refused(rule, release(), refusal)));
            }
            Err(need) => violations.push(Violation::undecided(rule, release(), subject, need)?),
        }
    }
    Ok(violations)
}

fn judge_record(case: &Case<'_>) -> Result<Vec<Violation>, Query> {
    let rules = RECORD_RULES.map(|(rule, check)| (rule, move || check(case).map(Vec::from_iter)));
    let mut violations = consult(case.facts, case.policy, &case.subject(), rules)?;
    // The Helm records of an extension that has moved on describe nothing any more.
    if case.target.storage == Storage::OlmIndex && !violations.is_empty() {
        match migrated(case.evidence, &case.target.release) {
            Err(Need::Ask(query)) => return Err(query),
            Ok(true) => violations.clear(),
            Ok(false) | Err(_) => {}
        }
    }
    Ok(violations)
}

/// To take a part of a record away is to delete it.
fn judge_part(
    facts: &Facts<'_>,
    part: &RecordChunk<'_>,
    policy: &Policy,
    evidence: &Evidence,
) -> Result<Vec<Violation>, Query> {
    let check = || records::part::check(facts, part, policy, evidence).map(Vec::from_iter);
    consult(facts, policy, &format!("The part {} of a record", part.name), [(RuleId::RecordDeletion, check)])
}

fn judge_declaration(case: &DeclarationCase<'_>) -> Result<Vec<Violation>, Query> {
    let rules = DECLARATION_RULES.map(|(rule, check)| (rule, move || check(case)));
    consult(case.facts, case.policy, &case.subject(), rules)
}

/// At most one rule speaks of an object: during another's operation that one, otherwise the one for what is done.
fn judge_object(case: &ObjectCase<'_>) -> Result<Vec<Violation>, Query> {
    let manual = match case.write.change {
        ObjectChange::Edited { .. } => RuleId::ManualEdit,
        ObjectChange::Deleted { .. } => RuleId::ManualDelete,
        ObjectChange::Scaled { .. } => RuleId::ManualScale,
    };
    let scope = Scope::of(case.facts, case.policy);
    let is_on = |rule| case.policy.mode(rule, &scope) != Mode::Off;
    if !is_on(manual) && !is_on(RuleId::ForeignEditInTransition) {
        return Ok(Vec::new());
    }
    let violation = match case.disturbance() {
        Ok(None) => None,
        Ok(Some(lost)) if lost.in_flight && is_on(RuleId::ForeignEditInTransition) => {
            let refusal = objects::foreign_edit_in_transition::refusal(case, &lost);
            Some(Violation::refused(RuleId::ForeignEditInTransition, lost.release, refusal))
        }
        Ok(Some(lost)) => {
            let refusal = match manual {
                RuleId::ManualDelete => objects::manual_delete::refusal(case, &lost),
                RuleId::ManualScale => objects::manual_scale::refusal(case, &lost),
                _ => objects::manual_edit::refusal(case, &lost),
            };
            Some(Violation::refused(manual, lost.release, refusal))
        }
        Err(need) => Some(Violation::undecided(manual, case.write.release(), &case.subject(), need)?),
    };
    Ok(violation.filter(|violation| is_on(violation.rule)).into_iter().collect())
}

#[cfg(test)]
mod tests;
