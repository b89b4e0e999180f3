//! The operation of an Application: what starts a sync, and what must not be done to one that runs.
//!
//! The controller carries out `.operation`, and removes it at the end. If somebody else removes it earlier, nothing works on the sync any
//! longer, and the next one resumes it. If somebody replaces it, the new one is lost: the controller goes on with its copy. The only clean
//! end is the phase `Terminating`.
//!
//! Writes of statuses race with each other, so only the old and the new object of one request are compared.

use crate::facts::{ActorKind, DeclarationWrite};
use crate::object::account_namespace;
use crate::owners::argo::application_set::APPLICATION_SET;
use crate::owners::argo::holder::is_same;
use crate::owners::argo::rules::namespaces;
use crate::owners::argo::sync::{TERMINATE, start};
use crate::owners::argo::{APPLICATION, Application, CONTROLLER, NAME, OperationState};
use crate::owners::upstream::{Upstream, UpstreamKind};
use crate::release::ReleaseRef;
use crate::rules::check::{CheckedAll, Refusal, Step, Way, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::freeze::started::StartedOperation;
use crate::rules::proven_status::any_listed_account;
use crate::rules::undecided::Undecided;
use crate::rules::wording::{command, span, user};

const RUNNING: &str = "Running";

/// The end of the name of the service account of the server.
const SERVER: &str = "-server";

/// The refusals of writes to the operation of an Application by others than its controllers.
pub(in crate::owners) fn check(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, Application<'_>>,
) -> CheckedAll {
    let (Some(before), Some(after)) = (&written.before, &written.after) else {
        return Ok(Vec::new());
    };
    let actor = case.facts.actor.name;
    if case.policy.managers.contains(actor) || case.policy.controllers.contains(actor) {
        return Ok(Vec::new());
    }
    let running = before.running();
    let is_fresh = running.is_some_and(|state| !is_stale(case, state));
    let (was, is) = (phase(before), phase(after));
    let ends = was == Some(RUNNING) && is != Some(RUNNING);
    let goes_on = was.is_some() && is.is_some();
    let refusal = match (before.operation, after.operation) {
        (Some(_), _) if is_fresh && ends && is_held_by_another(case, before) => Some(ended(case, before)),
        (Some(_), None) if is_fresh => Some(orphaned(case, before)),
        _ if is_fresh && is == Some(RUNNING) && started_otherwise(running, after.running()) => Some(aged(case, before)),
        (Some(old), Some(new)) if is_fresh && goes_on && !is_same(old, new) => Some(replaced(case, before)),
        _ if is_fresh && goes_on && is == Some(RUNNING) && was != is => Some(revived(case, before)),
        (None, Some(new)) if running.is_some() && after.status.operation_state.is_some() => {
            Some(resumed(case, new.get()))
        }
        (None, Some(_)) if before.status.operation_state.is_some() && after.status.operation_state.is_some() => {
            Some(over_finished(case).into_advice())
        }
        _ => None,
    };
    if refusal.is_none() || may_be_controller(case)? {
        return Ok(Vec::new());
    }
    Ok(refusal.map(|refusal| refusal.about(release(case))).into_iter().collect())
}

/// Whether the actor may be the controller in a namespace that the policy does not list. It must not stop in the middle of a sync.
fn may_be_controller(case: &DeclarationCase<'_>) -> Result<bool, Undecided> {
    let is_named_so = case.facts.actor.service_account().is_some_and(|account| account.ends_with(CONTROLLER));
    Ok(is_named_so && any_listed_account(case.evidence, case.policy, CONTROLLER)? != Some(true))
}

/// The operation that a write starts: a sync, or the deletion of everything that a person deletes an Application with.
pub(in crate::owners) fn started(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, Application<'_>>,
) -> Option<StartedOperation> {
    let (subject, before, after) = (case.subject(), written.before.as_ref(), written.after.as_ref());
    let sentence = match (before, after) {
        (before, Some(after)) if starts_sync(before, after) => format!("{subject} starts a sync"),
        (Some(before), None) if is_by_people(case) && before.is_deleted_with_its_objects() => {
            format!("{subject}: {NAME} would delete its objects")
        }
        _ => return None,
    };
    let homes = after.or(before)?.homes(written.namespace);
    let frozen_as = homes.map(|home| ReleaseRef::new(home, &*written.name)).collect();
    Some(StartedOperation { frozen_as, release: release(case), sentence })
}

/// The deletion of everything that the Applications of a set apply, if a person deletes the set. Where a parameter says to which
/// namespace they deploy, nothing is known.
pub(in crate::owners) fn started_with(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, Upstream<'_>>,
    kind: &UpstreamKind,
) -> Option<StartedOperation> {
    let before = written.before.as_ref().filter(|_| written.after.is_none() && kind.kind == APPLICATION_SET)?;
    let goes = is_by_people(case) && before.metadata.deletion_timestamp.is_none() && !before.preserves();
    let home = before.home().filter(|_| goes)?;
    let sentence = format!("{}: {NAME} would delete its Applications with their objects", case.subject());
    let frozen_as = vec![ReleaseRef::new(home, &*written.name)];
    Some(StartedOperation { frozen_as, release: release(case), sentence })
}

/// Whether a new operation appears, or takes the place of another one that nothing works on after the write.
fn starts_sync(before: Option<&Application<'_>>, after: &Application<'_>) -> bool {
    let Some(new) = after.operation else { return false };
    let old = before.and_then(|before| before.operation);
    old.is_none_or(|old| after.running().is_none() && !is_same(old, new))
}

fn is_by_people(case: &DeclarationCase<'_>) -> bool {
    matches!(case.facts.actor.kind, ActorKind::Person | ActorKind::Pipeline)
}

/// As overrides name the Application.
fn release(case: &DeclarationCase<'_>) -> ReleaseRef {
    ReleaseRef::new(case.declaration.namespace(), case.declaration.name())
}

/// Whether an operation counts as stuck. One with an unknown start never does.
fn is_stale(case: &DeclarationCase<'_>, state: &OperationState<'_>) -> bool {
    case.policy.recovery.is_stale(state.started_at, case.now)
}

/// Whether the operation is held by somebody else than the actor. Behind the server of Argo CD, the person is not known.
fn is_held_by_another(case: &DeclarationCase<'_>, before: &Application<'_>) -> bool {
    let actor = case.facts.actor;
    let is_at_home = || account_namespace(actor.name).is_some_and(|home| namespaces(case.policy, "").contains(&home));
    let is_server = actor.service_account().is_some_and(|account| account.ends_with(SERVER)) && is_at_home();
    !is_server && before.holder().is_some_and(|holder| holder != actor.name)
}

/// The phase of the operation that runs.
fn phase<'s>(application: &'s Application<'_>) -> Option<&'s str> {
    application.running().map(|state| &*state.phase)
}

/// Whether a sync that goes on has another start.
fn started_otherwise(before: Option<&OperationState<'_>>, after: Option<&OperationState<'_>>) -> bool {
    before.zip(after).is_some_and(|(before, after)| before.started_at != after.started_at)
}

fn aged(case: &DeclarationCase<'_>, before: &Application<'_>) -> Refusal {
    let sentence = format!("{}, and its start says when it counts as stuck.", is_running(case, before));
    Refusal::new(sentence, wait_or_terminate(case, before)).at("/status/operationState/startedAt")
}

fn orphaned(case: &DeclarationCase<'_>, before: &Application<'_>) -> Refusal {
    let sentence = format!(
        "{}. Without `operation` nothing works on it any longer, and the next sync resumes this one.",
        is_running(case, before)
    );
    Refusal::new(sentence, wait_or_terminate(case, before)).at("/operation")
}

fn replaced(case: &DeclarationCase<'_>, before: &Application<'_>) -> Refusal {
    let sentence =
        format!("{}, and {NAME} goes on with that one: the new operation would be lost.", is_running(case, before));
    Refusal::new(sentence, wait_or_terminate(case, before)).at("/operation")
}

/// The controller is ending the sync, and would stop doing so.
fn revived(case: &DeclarationCase<'_>, before: &Application<'_>) -> Refusal {
    let sentence =
        format!("{}, and {NAME} is ending it: what it has cleaned up is not done again.", is_running(case, before));
    Refusal::new(sentence, wait_or_terminate(case, before)).at("/status/operationState/phase")
}

/// The end of a fresh sync that somebody else has started.
fn ended(case: &DeclarationCase<'_>, before: &Application<'_>) -> Refusal {
    let sentence = format!("{}: only its holder ends it before it counts as stuck.", is_running(case, before));
    Refusal::new(sentence, wait_or_terminate(case, before)).at("/status/operationState/phase")
}

/// `Application argocd/web: its sync is running, held by alice`.
fn is_running(case: &DeclarationCase<'_>, before: &Application<'_>) -> String {
    let held = before.holder().map(|holder| format!(", held by {}", user(Some(&holder)))).unwrap_or_default();
    format!("{}: its sync is running{held}", case.subject())
}

/// What ends the operation that runs.
fn wait_or_terminate(case: &DeclarationCase<'_>, before: &Application<'_>) -> WaysOut {
    let stale = span(case.policy.recovery.stale_after);
    let ways_out = WaysOut::from(Way::from(Step::wait("wait until the sync ends")).then(Step::retry("try again")));
    let ways_out = if is_held_by_another(case, before) {
        ways_out.or(Step::release_override())
    } else {
        ways_out.when("to end it now", Step::run("run {}", patch(case, TERMINATE)))
    };
    ways_out.note(format!("It counts as stuck {stale} after it started."))
}

/// Nothing works on the operation that the status shows as running.
fn resumed(case: &DeclarationCase<'_>, operation: &str) -> Refusal {
    let sentence = format!(
        "{}: its last sync was interrupted, and {NAME} would resume that one instead of starting this one.",
        case.subject()
    );
    let again = format!(r#"{{"operation":{operation},"status":{{"operationState":null}}}}"#);
    let way = Step::run("forget the interrupted one in the same write: {}", patch(case, &again));
    Refusal::new(sentence, way).at("/status/operationState")
}

fn over_finished(case: &DeclarationCase<'_>) -> Refusal {
    let sentence = format!(
        "{}: the state of its last sync is still there, and {NAME} may take it for the state of this one, and report success without \
         applying anything.",
        case.subject()
    );
    let sync = start(case.declaration.namespace(), case.declaration.name());
    Refusal::new(sentence, Step::run("use {} instead", sync)).at("/operation")
}

/// The command that patches the Application.
fn patch(case: &DeclarationCase<'_>, patch: &str) -> String {
    let (namespace, name) = (case.declaration.namespace(), case.declaration.name());
    let kind = format!("{}.argoproj.io", APPLICATION.to_lowercase());
    command(&["kubectl", "patch", &kind, name, "-n", namespace, "--type", "merge", "-p", patch])
}
