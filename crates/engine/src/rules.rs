//! The rules: each has its own file, and an entry in the table of its family.

pub(crate) mod check;
pub(crate) mod declarations;
pub(crate) mod freeze;
pub mod home;
pub(crate) mod losses;
pub mod objects;
pub(crate) mod protected_release;
pub(crate) mod proven_status;
pub mod records;
pub(crate) mod undecided;
pub mod wording;

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, Error};

use super::evidence::{Evidence, Query};
use super::facts::{ActorKind, Facts, Subject};
use super::owners;
use super::policy::{Policy, Scope};
use super::release::ReleaseRef;
use super::review::Operation;
use super::rule::{Mode, RuleId};
use super::text::look_alike;
use super::violation::{Violation, ViolationKind};
use crate::owners::rules::record_part::RecordPartCase;
use check::{Check, CheckedAll, Refusal, Rule};
use declarations::case::DeclarationCase;
use objects::case::ObjectCase;
use records::case::RecordCase;

pub use records::runbook::{RunbookCheck, RunbookCheckName, RunbookResult, inspect};
use undecided::is_terminating;
pub(crate) use undecided::{Undecided, ask};

/// What a rule is about. Rules are evaluated and reported in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Release records.
    Records,
    /// The objects of releases.
    Objects,
    /// Objects that declare releases: of Sveltos, Flux and OLM.
    Declarations,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 3] = [Self::Records, Self::Objects, Self::Declarations];

    /// The rules of the family.
    pub fn rules(self) -> impl Iterator<Item = RuleId> {
        self.table().iter().map(|rule| rule.id())
    }

    fn table(self) -> &'static [&'static Rule] {
        match self {
            Self::Records => records::RULES,
            Self::Objects => objects::RULES,
            Self::Declarations => declarations::RULES,
        }
    }
}

/// Every rule, in the order in which rules are evaluated and reported.
pub fn all() -> impl Iterator<Item = RuleId> {
    Family::ALL.into_iter().flat_map(Family::rules)
}

/// Finds a rule by its name.
#[must_use]
pub fn named(name: &str) -> Option<RuleId> {
    all().find(|rule| rule.as_str() == name)
}

/// The requests that a rule checks, as far as policies can distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// Only records.
    Records,
    /// Only declarations.
    Declarations,
    /// Objects of any kind, which may be records.
    Objects,
}

/// Whether a rule checks records, alone or with other objects. Only records have owners.
pub(super) fn judges_records(rule: RuleId) -> bool {
    let rules = Family::ALL.into_iter().flat_map(Family::table).filter(|known| known.id() == rule);
    rules.flat_map(|known| known.checks).any(|check| matches!(check, Check::Record(_) | Check::RecordPart(_)))
}

impl Judged {
    /// Derived from the checks of a rule.
    pub(super) fn by(rule: RuleId) -> Self {
        let rules = Family::ALL.into_iter().flat_map(Family::table);
        let checks = || rules.clone().filter(|known| known.id() == rule).flat_map(|known| known.checks);
        if checks().all(|check| matches!(check, Check::Record(_) | Check::RecordPart(_))) {
            return Self::Records;
        }
        if checks().all(|check| matches!(check, Check::Declaration(_))) { Self::Declarations } else { Self::Objects }
    }
}

#[cfg(any(test, feature = "fixtures"))]
impl RuleId {
    /// A rule that a test names.
    #[must_use]
    #[expect(clippy::unwrap_used, reason = "a test that names no rule is wrong")]
    pub fn known(name: &str) -> Self {
        named(name).unwrap()
    }
}

/// Only the table knows the names of the rules.
impl<'de> Deserialize<'de> for RuleId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        named(&name).ok_or_else(|| {
            let look_alike = look_alike(&name).map(|found| format!("; it {found}")).unwrap_or_default();
            D::Error::custom(format_args!("there is no rule `{name}`{look_alike}"))
        })
    }
}

/// Checks a request by every rule that is not off. Pure: the same arguments give the same result.
///
/// # Errors
/// The query that a rule needs answered. Run the check again with the answer.
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
    let active = ActiveRules { facts, policy, scope, former: facts.former_release() };
    let mut violations = match &facts.subject {
        Subject::Other | Subject::Own(_) => Vec::new(),
        Subject::Record(id, change) => active.check_record(&RecordCase { facts, id, change, policy, evidence, now })?,
        Subject::RecordChunk(part) => active.check_record_part(&RecordPartCase { facts, part, policy, evidence })?,
        Subject::Declaration(declaration) => {
            active.check_declaration(&DeclarationCase { facts, declaration, policy, evidence, now })?
        }
    };
    // A declaration may itself be an object of a release.
    if let Some(write) = facts.managed {
        violations.extend(active.check_object(&ObjectCase::new(facts, write, policy, evidence, now))?);
    }
    // Deleting a namespace deletes everything in it, so deletions in a terminating namespace are never refused.
    let namespace = facts.namespace().filter(|_| facts.operation == Operation::Delete && !violations.is_empty());
    match namespace.map(|namespace| is_terminating(evidence, namespace)) {
        Some(Err(Undecided::Ask(query))) => Err(query),
        Some(Ok(true)) => Ok(Vec::new()),
        _ => Ok(violations),
    }
}

/// The rules that are not off for one request.
struct ActiveRules<'a> {
    facts: &'a Facts<'a>,
    policy: &'a Policy,
    scope: &'a Scope<'a>,
    /// The release that a declaration stood for before this write.
    former: Option<ReleaseRef>,
}

impl ActiveRules<'_> {
    fn check_record(&self, case: &RecordCase<'_>) -> Result<Vec<Violation>, Query> {
        let pending = |check: &'static Check| match check {
            Check::Record(check) => Some(|| check(case).map(Vec::from_iter)),
            _ => None,
        };
        let violations = self
            .run_checks(Family::Records, || case.subject(), || self.facts.release(), pending)
            .collect::<Result<Vec<_>, _>>()?;
        if violations.is_empty() {
            return Ok(violations);
        }
        match owners::rules::are_outdated(case.evidence, case.policy, case.id.storage, &case.id.release) {
            Err(Undecided::Ask(query)) => Err(query),
            Ok(true) => Ok(Vec::new()),
            Ok(false) | Err(_) => Ok(violations),
        }
    }

    fn check_record_part(&self, case: &RecordPartCase<'_>) -> Result<Vec<Violation>, Query> {
        let pending = |check: &'static Check| match check {
            Check::RecordPart(check) => Some(|| check(case).map(Vec::from_iter)),
            _ => None,
        };
        self.run_checks(Family::Records, || case.subject(), || self.facts.release(), pending).collect()
    }

    fn check_declaration(&self, case: &DeclarationCase<'_>) -> Result<Vec<Violation>, Query> {
        let pending = |check: &'static Check| match check {
            Check::Declaration(check) => Some(|| check(case)),
            _ => None,
        };
        let run = |family| self.run_checks(family, || case.subject(), || self.facts.release(), pending);
        run(Family::Records).chain(run(Family::Objects)).chain(run(Family::Declarations)).collect()
    }

    /// All rules about operations on its release report an object, so that an override of one rule does not open the others. At
    /// most one rule about the object itself reports it.
    fn check_object(&self, case: &ObjectCase<'_>) -> Result<Vec<Violation>, Query> {
        let pending = |check: &'static Check| match check {
            Check::Object(check) => Some(|| check(case).map(Vec::from_iter)),
            _ => None,
        };
        let run = |family| self.run_checks(family, || case.subject(), || case.write.release(), pending);
        run(Family::Records).chain(run(Family::Objects).take(1)).collect()
    }

    /// Runs the matching checks in order. The iterator is lazy: a check runs only after the check before it has finished.
    fn run_checks<C: FnOnce() -> CheckedAll>(
        &self,
        family: Family,
        subject: impl Fn() -> String,
        release: impl Fn() -> Option<ReleaseRef>,
        pending: impl Fn(&'static Check) -> Option<C>,
    ) -> impl Iterator<Item = Result<Violation, Query>> {
        let checks = family.table().iter().flat_map(|rule| rule.checks.iter().map(|check| (rule.id(), check)));
        // Modes are matched against globs, which is expensive, so the kind of the check is tested first.
        let pending = checks.filter_map(move |(rule, check)| pending(check).map(|check| (rule, check)));
        pending.filter(|(rule, _)| self.is_on(*rule)).flat_map(move |(rule, check)| match check() {
            Ok(refusals) => refusals.into_iter().map(|refusal| Ok(refused(rule, release(), refusal))).collect(),
            Err(need) => vec![undecided(rule, release(), &subject(), need)],
        })
    }

    /// A declaration that moves to another release is checked for both releases. The mode of each violation is determined later.
    fn is_on(&self, rule: RuleId) -> bool {
        let is_on = |scope: &Scope<'_>| self.policy.mode(rule, scope) != Mode::Off;
        is_on(self.scope)
            || self.former.as_ref().is_some_and(|former| is_on(&Scope { release: Some(&former.name), ..*self.scope }))
    }
}

fn refused(rule: RuleId, release: Option<ReleaseRef>, refusal: Refusal) -> Violation {
    let Refusal { sentence, ways_out, pointers, release: about, is_advice, frozen } = refusal;
    let release = about.or(release);
    let kind = if is_advice { ViolationKind::Advice } else { ViolationKind::Refused };
    Violation { rule, kind, sentence, ways_out, pointers, release, overridden: None, frozen }
}

fn undecided(rule: RuleId, release: Option<ReleaseRef>, subject: &str, need: Undecided) -> Result<Violation, Query> {
    let (kind, why, ways_out) = need.into_query_or_violation()?;
    let sentence = format!("Could not check {subject}: {why}.");
    Ok(Violation { rule, kind, sentence, ways_out, pointers: Vec::new(), release, overridden: None, frozen: None })
}

#[cfg(test)]
pub(crate) mod tests;
