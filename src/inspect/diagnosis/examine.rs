//! Reads the state that a diagnosis needs.

use interlock_engine::effort::Effort;
use interlock_engine::evidence::{StoredBody, question};
use interlock_engine::owners::Driver;
use interlock_engine::policy::{Policies, Policy};
use interlock_engine::release::stamps::INTERRUPTED;
use interlock_engine::release::{Entry, History, InterruptedOperation, Record, ReleaseRef, Storage};
use interlock_engine::rules::records::recovery::RecordCondition;
use interlock_engine::rules::{RunbookCheck, named};
use jiff::Timestamp;

use super::next_step::starts_an_operation;
use super::{BrokenRecords, Diagnosis, NextStep, ReleaseRecords, ReleaseState, Stuck, diagnose};
use crate::inspect::overrides::opens;
use crate::inspect::records::history;
use crate::inspect::runbook::StuckRecord;
use crate::inspect::scan::FindingKind;
use crate::inspect::wait::{FreezeInForce, Records, Starter};
use crate::world::{World, ask};

/// The inputs of an examination.
#[derive(Clone, Copy)]
pub(crate) struct Examiner<'a> {
    pub(crate) world: &'a dyn World,
    pub(crate) policies: &'a Policies,
    /// All HelmReleases; `None` if they cannot be read.
    pub(crate) drivers: Option<&'a [Driver]>,
    /// The user who takes the next step; `None` if unknown.
    pub(crate) reader: Option<&'a Starter>,
    pub(crate) now: Timestamp,
    /// The copy of a record that the reader has just deleted.
    pub(crate) copy: Option<&'a str>,
}

/// The runbook's checks of a pending record.
pub(crate) enum Checks {
    /// Runs the checks if the operation counts as stuck.
    IfStuck,
    /// Runs the checks.
    Run,
    /// Uses these results.
    Given(Vec<RunbookCheck>),
}

/// The result of an examination.
pub(crate) struct Examined {
    pub(crate) diagnosis: Diagnosis,
    pub(crate) checks: Vec<RunbookCheck>,
    /// Why the checks could not be run.
    pub(crate) unread: Option<String>,
}

impl Examiner<'_> {
    /// Examines a release; `None` without records.
    pub(crate) async fn examine(&self, records: ReleaseRecords<'_>, checks: Checks) -> Option<Examined> {
        let none_deployed = records.history.newest_deployed().is_none();
        let mut sibling = if none_deployed { self.sibling(records).await } else { None };
        let is_live_in_sibling = none_deployed && sibling.as_ref().is_some_and(History::is_live);
        let mut examined = self.examine_alone(records, is_live_in_sibling, checks).await?;
        let begins = begins(records.history, &examined.diagnosis);
        if begins && sibling.is_none() {
            sibling = self.sibling(records).await;
        }
        if let Some(sibling) = sibling.filter(|_| begins)
            && let Some(first) = self.sibling_step(records, &sibling).await
        {
            examined.diagnosis.next = Some(first);
        }
        Some(examined)
    }

    /// Examines a release by its records in one storage.
    async fn examine_alone(
        &self,
        records: ReleaseRecords<'_>,
        is_live_in_sibling: bool,
        checks: Checks,
    ) -> Option<Examined> {
        let ReleaseRecords { release, storage, history, broken } = records;
        let (policy, now) = (self.policies.of(&release.namespace).as_ref(), self.now);
        let drivers = self.drivers;
        let mut state = ReleaseState {
            release,
            storage,
            history,
            broken,
            checks: None,
            chart: history.newest()?.stamps.chart(),
            drivers,
            policy,
            is_opened: false,
            is_live_in_sibling,
            copy: self.copy,
            freeze: None,
            now,
        };
        let mut diagnosis = diagnose(&state)?;
        let chart = self.chart(records, &diagnosis).await;
        if chart.is_some() {
            state.chart = chart.as_deref();
            diagnosis = diagnose(&state)?;
        }
        let (checks, unread) = self.checks(records, policy, diagnosis.stuck, checks).await;
        if !checks.is_empty() {
            state.checks = Some(&checks);
            let unfit = matches!(state.condition(), RecordCondition::Unhealthy | RecordCondition::Unreadable);
            state.is_opened = unfit && (self.holds(history) || self.opens(policy, release).await);
            diagnosis = diagnose(&state)?;
        }
        let freeze = self.freeze(&state, &diagnosis).await;
        if freeze.is_some() {
            diagnosis = diagnose(&ReleaseState { freeze: freeze.as_ref(), ..state.clone() })?;
        }
        Some(Examined { diagnosis, checks, unread })
    }

    /// The next step for the records of the same release in Helm's other storage, if an operation is in flight there: no operation
    /// may start meanwhile. If both are stuck, neither waits for the other.
    async fn sibling_step(&self, records: ReleaseRecords<'_>, sibling: &History) -> Option<NextStep> {
        let ReleaseRecords { release, storage, history, .. } = records;
        let storage = storage.sibling()?;
        sibling.newest().filter(|newest| newest.status.is_in_flight())?;
        let records = ReleaseRecords { release, storage, history: sibling, broken: &BrokenRecords::new() };
        let is_live_in_sibling = sibling.newest_deployed().is_none() && history.is_live();
        let other = self.examine_alone(records, is_live_in_sibling, Checks::IfStuck).await?.diagnosis;
        let step = other.next.filter(|_| is_at_rest(history) || other.stuck != Stuck::Yes)?;
        Some(step.after(&format!("An operation is in flight on the records in {}s", storage.kind())))
    }

    /// The records of the release in Helm's other storage; `None` if there is no other storage, or if they cannot be read.
    async fn sibling(&self, records: ReleaseRecords<'_>) -> Option<History> {
        history(self.world, records.release, records.storage.sibling()?).await.ok()
    }

    /// The chart of the newest record, from its body, if it is not stamped and the next step depends on it.
    async fn chart(&self, records: ReleaseRecords<'_>, diagnosis: &Diagnosis) -> Option<String> {
        let ReleaseRecords { release, storage, history, .. } = records;
        let newest = history.newest().filter(|newest| newest.stamps.chart().is_none())?;
        if storage != Storage::Index || !diagnosis.has(FindingKind::InterruptedOperation) {
            return None;
        }
        let body = question::Body { storage, namespace: release.namespace.clone(), object: newest.name.clone() };
        match ask(self.world, body).await.ok()?? {
            StoredBody::Json(json) => Record::read(&json, &Effort::of_review()).ok()?.chart(),
            StoredBody::Broken(_) => None,
        }
    }

    async fn checks(
        &self,
        records: ReleaseRecords<'_>,
        policy: &Policy,
        stuck: Stuck,
        checks: Checks,
    ) -> (Vec<RunbookCheck>, Option<String>) {
        match checks {
            Checks::Given(checks) => return (checks, None),
            Checks::IfStuck if stuck != Stuck::Yes => return (Vec::new(), None),
            Checks::IfStuck | Checks::Run => {}
        }
        let read = match StuckRecord::read(self.world, records).await {
            Ok(Some(stuck)) => stuck.checks(self.world, policy, self.now).await,
            Ok(None) => Ok(Vec::new()),
            Err(why) => Err(why),
        };
        read.map_or_else(|why| (Vec::new(), Some(why)), |checks| (checks, None))
    }

    /// Whether the reader holds the operation. A holder may end the operation whatever the checks say.
    fn holds(&self, history: &History) -> bool {
        let holder = history.newest().and_then(|newest| newest.stamps.holder());
        holder.is_some() && holder == self.reader.map(Starter::name)
    }

    /// Whether an override opens `pending-recovery` to the reader. An override that cannot be read opens nothing.
    async fn opens(&self, policy: &Policy, release: &ReleaseRef) -> bool {
        let Some(rule) = named("pending-recovery") else { return false };
        opens(self.world, policy, rule, release, self.reader.map(Starter::name), self.now).await
    }

    /// The freeze that stops the reader from the next step.
    async fn freeze(&self, state: &ReleaseState<'_>, diagnosis: &Diagnosis) -> Option<FreezeInForce> {
        let newest = state.history.newest().filter(|newest| !newest.status.is_in_flight())?;
        let reader = self.reader.filter(|_| diagnosis.next.as_ref().is_some_and(starts_an_operation))?;
        let records = Records { storage: state.storage, of_objects: newest.stamps.target_namespace() };
        // If the Freezes cannot be read, the step is the same as without a freeze.
        reader.frozen(self.world, state.policy, state.release, records, self.now).await.unwrap_or_default()
    }
}

fn is_at_rest(history: &History) -> bool {
    history.newest().is_some_and(|newest| !newest.status.is_in_flight())
}

/// Whether the next step begins something that must not overlap with an operation in flight.
fn begins(history: &History, diagnosis: &Diagnosis) -> bool {
    diagnosis.next.as_ref().is_some_and(|step| is_at_rest(history) || starts_an_operation(step))
}

/// Diagnoses a release for a user, with all state from `world`; `None` without records.
///
/// # Errors
/// When the records or the HelmReleases cannot be read.
pub async fn of_release(
    world: &dyn World,
    policies: &Policies,
    release: &ReleaseRef,
    storage: Storage,
    broken: &BrokenRecords,
    user: &str,
    now: Timestamp,
) -> Result<Option<Diagnosis>, String> {
    let history = history(world, release, storage).await;
    let history = history.map_err(|why| format!("the records cannot be read: {why}"))?;
    let drivers = ask(world, question::HelmReleases::of(&release.namespace, &release.name, history.stamps())).await;
    let drivers = drivers.and_then(|found| found.unwrap_or(Ok(Vec::new())));
    let drivers = drivers.map_err(|why| format!("the HelmReleases cannot be read: {why}"))?;
    let reader = Starter::named(user);
    let examiner = Examiner { world, policies, drivers: Some(&drivers), reader: Some(&reader), now, copy: None };
    let records = ReleaseRecords { release, storage, history: &history, broken };
    Ok(examiner.examine(records, Checks::IfStuck).await.map(|examined| examined.diagnosis))
}

/// The history after the deletion of a record. If it was pending, the record below gets the note of the interrupted operation.
pub(crate) fn after_unstick(history: &History, lost: &Entry, chart: Option<&str>) -> History {
    let left = History::new(history.iter().filter(|entry| entry.name != lost.name).cloned().collect());
    let heir = left.heir_of(lost).map(|heir| heir.revision);
    let note = chart
        .filter(|_| lost.status.is_pending())
        .map(|chart| InterruptedOperation { chart: chart.to_owned(), revision: lost.revision }.to_string());
    let noted = left.iter().cloned().map(|mut entry| {
        if let Some(note) = note.as_ref().filter(|_| Some(entry.revision) == heir) {
            entry.stamps.set(INTERRUPTED, note.clone());
        }
        entry
    });
    History::new(noted.collect())
}
