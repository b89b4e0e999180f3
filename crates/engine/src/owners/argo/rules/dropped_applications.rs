//! The rule `dropped-applications`.
//!
//! An ApplicationSet whose generator finds nothing, reads a stale cache or makes two equal names deletes its Applications within
//! seconds, and nothing in its status tells that from intent. Its controller asks for one Application after the other, goes on after a
//! refusal, and tries again by itself. So nothing goes before it is known what else would go.

use crate::facts::{Declaration, DeclarationWrite};
use crate::losses::Loss;
use crate::managed::last_change_of_spec;
use crate::object::{ALLOW_REMOVAL, ObjectKey};
use crate::owners::argo::application_set::{APPLICATION_SET, ApplicationSet, GENERATOR, generator_of};
use crate::owners::argo::{self, APPLICATION, Application, GROUP};
use crate::release::ReleaseRef;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, CheckedAll, Refusal, Rule, Step, Way, WaysOut};
use crate::rules::declarations::case::{DeclarationCase, unless_unread};
use crate::rules::losses::{confirmation, explains, is_named, known};
use crate::rules::wording::{MAX_ENUMERATED, enumerated};

/// The rule `dropped-applications`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "dropped-applications",
        owners: &[argo::NAME],
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Always,
        requests: Requests { operations: &[Operation::Delete], kinds: &[APPLICATION] },
        summary: "An ApplicationSet does not lose most of its Applications by accident.",
        why: "A glob that matches nothing, a stale cache or two equal names delete Applications with all their objects within \
              seconds, and often no condition of the ApplicationSet says so.",
        allowed: "An Application whose element is gone, a few seconds later: Argo CD tries again by itself. Half of the set, or what \
                  a change of the spec in the last minutes leaves out. The deletion of the ApplicationSet, or of an Application by \
                  anybody else.",
        refused: "More than half of the Applications of an ApplicationSet within a day, or the last one.",
        way_out: "Repair what the ApplicationSet generates from. If the Applications shall go, name them in the annotation \
                  interlock.dev/allow-removal of the ApplicationSet. An override names the ApplicationSet.",
        settings: &["mayLose"],
    },
    checks: &[Check::Declaration(check)],
};

/// One Application that the controller of its ApplicationSet deletes.
struct Dropped<'c, 'a> {
    case: &'c DeclarationCase<'a>,
    /// The namespace and the name of the set.
    set: ReleaseRef,
    state: Option<String>,
}

fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    if !case.facts.actor.service_account().is_some_and(|account| account.ends_with(GENERATOR)) {
        return Ok(Vec::new());
    }
    match case.declaration {
        Declaration::Application(written) if written.after.is_none() => deletion(case, written),
        other => Ok(unless_unread(other, &[APPLICATION])?.unwrap_or_default()),
    }
}

fn deletion(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, Application<'_>>) -> CheckedAll {
    let before = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none());
    let Some(name) = before.and_then(|before| generator_of(&before.metadata)) else { return Ok(Vec::new()) };
    let key = ObjectKey::new(GROUP, APPLICATION_SET, written.namespace, &name);
    let Some(set) = case.read::<ApplicationSet<'_>>(key.clone())? else { return Ok(Vec::new()) };
    // Older versions of Argo CD list nothing.
    if set.metadata.deletion_timestamp.is_some() || set.applications_with(&[]) == 0 {
        return Ok(Vec::new());
    }
    let child = &*written.name;
    let allowance = set.metadata.annotation(ALLOW_REMOVAL);
    let is_named_here = is_named(allowance, child);
    let is_explained = explains(last_change_of_spec(set.metadata.managed_fields, case.facts.effort), case.now);
    let loss = Loss {
        of: key,
        child: child.to_owned(),
        children: set.applications_with(&[child]),
        state: String::new(),
        is_meant: is_named_here || is_explained,
    };
    let Some(losses) = known(case.evidence, loss)? else { return Ok(Vec::new()) };
    let dropped = Dropped { case, set: ReleaseRef::new(written.namespace, &name), state: set.state() };
    if is_named_here {
        return Ok(Vec::new());
    }
    // Where the rule only looks on, nothing is asked for again.
    if is_enforced(case) && !losses.is_settled(child, case.now) {
        return Ok(vec![dropped.unsettled()]);
    }
    let wanted = losses.wanted_with(child, case.now);
    let there = set.applications_with(&wanted);
    let going: Vec<_> = wanted.into_iter().filter(|name| !is_named(allowance, name)).collect();
    let left = there.saturating_sub(going.len());
    let most = losses.most(case.now).max(there);
    let may_go = case.policy.may_lose.of(most);
    let passes = left > 0 && (is_explained || most - left <= may_go);
    Ok(if passes { Vec::new() } else { vec![dropped.refusal(&going, (most, left), may_go)] })
}

fn is_enforced(case: &DeclarationCase<'_>) -> bool {
    case.policy.mode(RULE.id(), &case.policy.scope(case.facts)) == Mode::Enforce
}

impl Dropped<'_, '_> {
    /// It is not known yet what else would go.
    fn unsettled(&self) -> Refusal {
        let Self { case, set, .. } = self;
        let sentence = format!(
            "{}: {APPLICATION_SET} {set} would delete it. Interlock waits some seconds, until it is known what else would go.",
            case.subject()
        );
        let retry = Step::retry("nothing is to be done: Argo CD tries again by itself");
        Refusal::new(sentence, retry).about(set.clone())
    }

    fn refusal(&self, going: &[&str], (most, left): (usize, usize), may_go: usize) -> Refusal {
        let Self { set, state, .. } = self;
        let names = enumerated(going.iter().map(|name| (*name).to_owned()), MAX_ENUMERATED);
        let state = state.as_ref().map(|state| format!(" Its status says {state}.")).unwrap_or_default();
        let sentence = format!(
            "{APPLICATION_SET} {set} would lose {names}, and have {left} of {most} Applications left. Without a confirmation, at most \
             {may_go} may go in a day, and never the last.{state}"
        );
        let ways_out = WaysOut::from("repair what it generates from");
        let ways_out = match confirmation(("applicationset", set), going) {
            Some(confirmation) => {
                let retry = Step::retry("wait until Argo CD tries again by itself");
                ways_out.when("if they shall go", Way::from(confirmation).then(retry))
            }
            None => ways_out,
        };
        Refusal::new(sentence, ways_out.or(Step::release_override())).about(set.clone())
    }
}
