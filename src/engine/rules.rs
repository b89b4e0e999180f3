//! The rules: one file each, and the table of them in the order in which they are evaluated and reported.

mod check;
mod declarations;
pub(crate) mod flux_release;
mod objects;
pub(crate) mod records;
mod undecided;
pub(crate) mod wording;

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, Error};

use super::evidence::{Evidence, Query};
use super::facts::{ActorKind, Facts, Subject};
use super::policy::{Policy, Scope};
use super::release::{ReleaseRef, Storage};
use super::review::Operation;
use super::rule::{Mode, RuleId};
use super::violation::{Violation, ViolationKind};
use check::{Check, CheckedAll, Refusal, Rule};
use declarations::case::DeclarationCase;
use declarations::{
    dangling_bundle, dropped_bundles, duplicate_release, extension_change_while_pending, extension_safety,
    remove_while_live, retarget, retry_strategy,
};
use objects::case::ObjectCase;
use objects::{foreign_edit_in_transition, manual_delete, manual_edit, manual_scale};
use records::case::RecordCase;
use records::record_part::RecordPartCase;
use records::{
    concurrent_operation, forged_stamp, illegal_transition, pending_recovery, record_deletion, record_integrity,
    record_tampering, resume_interrupted, revision_order, unusual_create,
};

pub use records::runbook::{RunbookCheck, RunbookCheckName, RunbookResult, inspect};
pub(crate) use undecided::{Undecided, lookup};
use undecided::{is_migrated, is_terminating};

/// Every rule, in the order in which they are evaluated and reported: over records, objects and declarations.
static RULES: [&Rule; 22] = [
    &concurrent_operation::RULE,
    &pending_recovery::RULE,
    &resume_interrupted::RULE,
    &revision_order::RULE,
    &unusual_create::RULE,
    &illegal_transition::RULE,
    &record_integrity::RULE,
    &record_tampering::RULE,
    &record_deletion::RULE,
    &forged_stamp::RULE,
    &foreign_edit_in_transition::RULE,
    &manual_edit::RULE,
    &manual_delete::RULE,
    &manual_scale::RULE,
    &dropped_bundles::RULE,
    &dangling_bundle::RULE,
    &remove_while_live::RULE,
    &duplicate_release::RULE,
    &retarget::RULE,
    &retry_strategy::RULE,
    &extension_change_while_pending::RULE,
    &extension_safety::RULE,
];

/// Every rule, in the order of the table.
pub fn all() -> impl Iterator<Item = RuleId> {
    RULES.iter().map(|rule| rule.id())
}

/// The rule of a name.
#[must_use]
pub fn named(name: &str) -> Option<RuleId> {
    all().find(|rule| rule.as_str() == name)
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Release records.
    Records,
    /// The objects of releases.
    Objects,
    /// Objects that declare releases: of Sveltos, Flux and OLM.
    Declarations,
}

/// The family of a rule, from the kind of its first check.
#[must_use]
pub fn family(rule: RuleId) -> Family {
    let check = RULES.iter().find(|it| it.id() == rule).and_then(|rule| rule.checks.first());
    match check {
        Some(Check::Object(_)) => Family::Objects,
        Some(Check::Declaration(_)) => Family::Declarations,
        Some(Check::Record(_) | Check::RecordPart(_)) | None => Family::Records,
    }
}

/// The rules over release records.
pub fn over_records() -> impl Iterator<Item = RuleId> {
    all().filter(|rule| family(*rule) == Family::Records)
}

#[cfg(test)]
impl RuleId {
    /// A rule that a test names.
    pub(crate) fn known(name: &str) -> Self {
        named(name).unwrap()
    }
}

/// Only the table knows which names are rules.
impl<'de> Deserialize<'de> for RuleId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        named(&name).ok_or_else(|| D::Error::custom(format_args!("there is no rule `{name}`")))
    }
}

/// Checks a request by every rule that is not off. Pure: the same arguments give the same result.
///
/// # Errors
/// The query that a rule needs answered; check again with the answer.
pub(super) fn check(
    facts: &Facts<'_>,
    policy: &Policy,
    scope: &Scope<'_>,
    evidence: &Evidence,
    now: Timestamp,
) -> Result<Vec<Violation>, Query> {
    if facts.actor.kind == ActorKind::ControlPlane {
        return Ok(Vec::new());
    }
    let table = Table { facts, policy, scope, former: facts.former_release() };
    let mut violations = match &facts.subject {
        Subject::Other | Subject::Override(_) => Vec::new(),
        Subject::Record(target, change) => {
            table.check_record(&RecordCase { facts, target, change, policy, evidence, now })?
        }
        Subject::RecordChunk(part) => table.check_record_part(&RecordPartCase { facts, part, policy, evidence })?,
        Subject::Declaration(declaration) => {
            table.check_declaration(&DeclarationCase { facts, declaration, policy, evidence, now })?
        }
    };
    // A declaration may itself be an object of a release.
    if let Some(write) = facts.managed {
        violations.extend(table.check_object(&ObjectCase::new(facts, write, policy, evidence, now))?);
    }
    // A namespace that is being deleted takes everything in it along: no deletion in it is ours to refuse.
    let namespace = facts.namespace().filter(|_| facts.operation == Operation::Delete && !violations.is_empty());
    match namespace.map(|namespace| is_terminating(evidence, namespace)) {
        Some(Err(Undecided::Ask(query))) => Err(query),
        Some(Ok(true)) => Ok(Vec::new()),
        _ => Ok(violations),
    }
}

/// The rules that are not off for one request.
struct Table<'a> {
    facts: &'a Facts<'a>,
    policy: &'a Policy,
    scope: &'a Scope<'a>,
    /// The release that a declaration stood for until now.
    former: Option<ReleaseRef>,
}

impl Table<'_> {
    fn check_record(&self, case: &RecordCase<'_>) -> Result<Vec<Violation>, Query> {
        let checked = |check: &Check| match check {
            Check::Record(check) => Some(check(case).map(Vec::from_iter)),
            _ => None,
        };
        let violations =
            self.consult(|| case.subject(), || self.facts.release(), checked).collect::<Result<Vec<_>, _>>()?;
        // The Helm records of an extension that has moved to revisions of its own describe nothing any more.
        if case.target.storage == Storage::OlmIndex && !violations.is_empty() {
            match is_migrated(case.evidence, &case.target.release) {
                Err(Undecided::Ask(query)) => return Err(query),
                Ok(true) => return Ok(Vec::new()),
                Ok(false) | Err(_) => {}
            }
        }
        Ok(violations)
    }

    fn check_record_part(&self, case: &RecordPartCase<'_>) -> Result<Vec<Violation>, Query> {
        let checked = |check: &Check| match check {
            Check::RecordPart(check) => Some(check(case).map(Vec::from_iter)),
            _ => None,
        };
        self.consult(|| case.subject(), || self.facts.release(), checked).collect()
    }

    fn check_declaration(&self, case: &DeclarationCase<'_>) -> Result<Vec<Violation>, Query> {
        let checked = |check: &Check| match check {
            Check::Declaration(check) => Some(check(case)),
            _ => None,
        };
        self.consult(|| case.subject(), || self.facts.release(), checked).collect()
    }

    /// At most one rule reports an object: that of the operation in flight comes first.
    fn check_object(&self, case: &ObjectCase<'_>) -> Result<Option<Violation>, Query> {
        let checked = |check: &Check| match check {
            Check::Object(check) => Some(check(case).map(Vec::from_iter)),
            _ => None,
        };
        self.consult(|| case.subject(), || case.write.release(), checked).next().transpose()
    }

    /// Runs the checks one after the other, each only once the one before it is done.
    fn consult(
        &self,
        subject: impl Fn() -> String,
        release: impl Fn() -> Option<ReleaseRef>,
        run: impl Fn(&Check) -> Option<CheckedAll>,
    ) -> impl Iterator<Item = Result<Violation, Query>> {
        let checks = RULES.iter().flat_map(|rule| rule.checks.iter().map(|check| (rule.id(), check)));
        checks.flat_map(move |(rule, check)| {
            let checked = self.is_on(rule).then(|| run(check)).flatten();
            match checked {
                None => Vec::new(),
                Some(Ok(refusals)) => {
                    refusals.into_iter().map(|refusal| Ok(refused(rule, release(), refusal))).collect()
                }
                Some(Err(need)) => vec![undecided(rule, release(), &subject(), need)],
            }
        })
    }

    /// A declaration that moves to another release is judged for both. The mode of each violation is determined later.
    fn is_on(&self, rule: RuleId) -> bool {
        let is_on = |scope: &Scope<'_>| self.policy.mode(rule, scope) != Mode::Off;
        is_on(self.scope)
            || self.former.as_ref().is_some_and(|former| is_on(&Scope { release: Some(&former.name), ..*self.scope }))
    }
}

fn refused(rule: RuleId, release: Option<ReleaseRef>, refusal: Refusal) -> Violation {
    let Refusal { sentence, way_out, pointers, release: about } = refusal;
    let release = about.or(release);
    Violation { rule, kind: ViolationKind::Refused, sentence, way_out, pointers, release, overridden: None }
}

fn undecided(rule: RuleId, release: Option<ReleaseRef>, subject: &str, need: Undecided) -> Result<Violation, Query> {
    let (kind, why, way_out) = need.reason()?;
    let sentence = format!("Could not check {subject}: {why}.");
    Ok(Violation { rule, kind, sentence, way_out: way_out.to_owned(), pointers: Vec::new(), release, overridden: None })
}

#[cfg(test)]
mod tests;
