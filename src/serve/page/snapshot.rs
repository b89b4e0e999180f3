//! The content of the page at one moment.

use std::time::Duration;

use interlock_engine::evidence::{Freshness, question};
use interlock_engine::owners::Driver;
use interlock_engine::policy::{Freeze, FreezeState, Policies};
use interlock_engine::release::History;
use interlock_engine::release_override::Override;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use super::carried::CarriedOperations;
use super::replicas::Replicas;
use crate::budget::block_in_place_if_possible;
use crate::cluster_name::ClusterName;
use crate::inspect::diagnosis::{BrokenRecords, Checks, Examiner, ReleaseRecords, ReleaseState, Stuck, diagnose};
use crate::inspect::status::{ReleaseSummary, assess};
use crate::serve::report::refusals::Refusal;
use crate::world::{InFlight, Known, ask};

/// How many operations, freezes and overrides are shown. Further ones are only counted.
pub(super) const SHOWN: usize = 200;

/// How many stuck releases one page may examine.
const EXAMINED: usize = 10;

/// How long all examinations of one page may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The content of the page.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) time: Timestamp,
    /// Stuck operations first, then by start.
    pub(super) operations: Vec<ReleaseSummary>,
    /// How many operations are in flight.
    pub(super) in_flight: usize,
    /// Whether the copies of records are in sync.
    pub(super) in_sync: bool,
    /// Of objects that carry their operation themselves.
    pub(super) carried: CarriedOperations,
    /// Freezes in force first, then freezes to come. Within each group, the next one to change first.
    pub(super) freezes: Vec<ShownFreeze>,
    pub(super) freezes_in_force: usize,
    pub(super) freezes_to_come: usize,
    /// By expiry, each with its end under the policy. `None` if the overrides are not known.
    pub(super) overrides: Option<Vec<(Override, Option<Timestamp>)>>,
    /// How many overrides are in force.
    pub(super) overrides_in_force: usize,
    /// Newest first.
    pub(super) refusals: Vec<Refusal>,
    /// Why the refusals of other replicas are missing.
    pub(super) unreported: Option<String>,
    /// `None` without a cluster.
    pub(super) replicas: Option<Replicas>,
    pub(super) cluster: Option<ClusterName>,
}

impl Snapshot {
    /// Whether the page links to histories, which are read from the cluster.
    pub(super) fn has_history(&self) -> bool {
        self.replicas.is_some()
    }
}

/// A freeze, in the words of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownFreeze {
    pub(super) name: String,
    pub(super) reason: String,
    pub(super) scope: String,
    /// Only of a Freeze that is stored in the cluster.
    pub(super) creator: Option<String>,
    /// If not, the freeze is to come.
    pub(super) in_force: bool,
    /// `until 2027-01-02 06:00 Europe/Berlin`, `from 2026-12-20 00:00 Europe/Berlin`.
    pub(super) when: String,
}

/// Collects the content of the page.
pub(super) async fn take(world: &dyn Known, policies: &Policies, time: Timestamp) -> Snapshot {
    let (mut shown, drivers) = block_in_place_if_possible(|| {
        let mut shown = Snapshot { time, ..Snapshot::default() };
        let drivers = operations(world, policies, &mut shown);
        freezes(policies, &world.freezes(), &mut shown);
        overrides(world, policies, &mut shown);
        (shown, drivers)
    });
    complete(world, policies, drivers.as_deref(), &mut shown).await;
    shown.operations.sort_by_key(|row| row.stuck == Stuck::No);
    shown
}

/// Adds the operations, as far as the copies know them. Returns the HelmReleases.
fn operations(world: &dyn Known, policies: &Policies, shown: &mut Snapshot) -> Option<Vec<Driver>> {
    let (found, in_flight, in_sync) = world.in_flight(SHOWN);
    let drivers = if found.is_empty() { None } else { world.drivers() };
    let rows = found.into_iter().filter_map(|InFlight { release, storage, entries, .. }| {
        let (history, broken) = (History::new(entries), BrokenRecords::new());
        let state = ReleaseState {
            release: &release,
            storage,
            history: &history,
            broken: &broken,
            checks: None,
            chart: history.newest()?.stamps.chart(),
            drivers: drivers.as_deref(),
            policy: policies.of(&release.namespace),
            is_opened: false,
            is_live_in_sibling: false,
            copy: None,
            freeze: None,
            now: shown.time,
        };
        let mut row = assess(&release, storage, &history, diagnose(&state)?)?;
        // The next step depends on superseded records, and there are no copies of these.
        if row.stuck == Stuck::Yes && history.newest_deployed().is_none() {
            row.next = None;
        }
        Some(row)
    });
    shown.operations = rows.collect();
    (shown.in_flight, shown.in_sync) = (in_flight, in_sync);
    drivers
}

/// Examines the oldest stuck operations. If the copies are not sufficient for the others, their next step is the command that shows it.
async fn complete(world: &dyn Known, policies: &Policies, drivers: Option<&[Driver]>, shown: &mut Snapshot) {
    let until = Instant::now() + PATIENCE;
    let examiner = Examiner { world, policies, drivers, reader: None, now: shown.time, copy: None };
    let stuck = shown.operations.iter_mut().filter(|row| row.stuck == Stuck::Yes);
    for (asked, row) in stuck.enumerate() {
        let again = match asked < EXAMINED {
            true => timeout_at(until, examined(world, examiner, row)).await.ok().flatten(),
            false => None,
        };
        match again {
            Some(again) => *row = again,
            None if row.next.is_none() => row.next = Some(format!("interlock status {}", row.release_ref())),
            None => {}
        }
    }
}

/// The row as `status` shows it. `None` if the records cannot be listed, or the operation has ended.
async fn examined(world: &dyn Known, examiner: Examiner<'_>, row: &ReleaseSummary) -> Option<ReleaseSummary> {
    let (release, storage) = (&row.release_ref(), row.storage);
    let (history, broken) = (&history(world, row).await?, &BrokenRecords::new());
    let found = examiner.examine(ReleaseRecords { release, storage, history, broken }, Checks::IfStuck).await?;
    assess(release, storage, history, found.diagnosis)
}

/// The metadata of all records of a release. `None` if the records cannot be listed, or the operation has ended.
async fn history(world: &dyn Known, row: &ReleaseSummary) -> Option<History> {
    let (namespace, release) = (row.namespace.clone(), row.release.clone());
    let history =
        ask(world, question::History { storage: row.storage, namespace, release, freshness: Freshness::Live })
            .await
            .ok()??;
    history.newest()?.status.is_in_flight().then_some(history)
}

fn freezes(policies: &Policies, stored: &[Freeze], shown: &mut Snapshot) {
    let all = policies.freezes(stored).map(|it| (it.freeze, it.at(shown.time)));
    let mut found: Vec<_> = all.filter(|(_, state)| *state != FreezeState::Open(None)).collect();
    found.sort_by_key(|(_, state)| place(*state));
    let is_in_force = |state| matches!(state, FreezeState::InForce(_));
    shown.freezes_in_force = found.iter().filter(|(_, state)| is_in_force(*state)).count();
    shown.freezes_to_come = found.len() - shown.freezes_in_force;
    let rows = found.into_iter().take(SHOWN).map(|(freeze, state)| ShownFreeze {
        name: freeze.name.clone(),
        reason: freeze.reason.clone(),
        scope: freeze.scope.clone(),
        creator: freeze.creator().map(str::to_owned),
        in_force: is_in_force(state),
        when: match state {
            FreezeState::InForce(until) => freeze.shown_until(until),
            FreezeState::Open(from) => from.map(|from| format!("from {}", freeze.shown(from))).unwrap_or_default(),
        },
    });
    shown.freezes = rows.collect();
}

/// The place of a freeze on the page: in force before to come, then by the next change. A freeze for good never changes.
fn place(state: FreezeState) -> (bool, bool, Option<Timestamp>) {
    match state {
        FreezeState::InForce(until) => (false, until.is_none(), until),
        FreezeState::Open(from) => (true, from.is_none(), from),
    }
}

fn overrides(world: &dyn Known, policies: &Policies, shown: &mut Snapshot) {
    let bounds = |it: &Override| &policies.of(&it.namespace).overrides;
    let time = shown.time;
    let Some((found, in_force)) = world.overrides_that(&|it| it.is_in_force(bounds(it), time), SHOWN) else { return };
    shown.overrides =
        Some(found.into_iter().map(|it| (it.closes(bounds(&it)), it)).map(|(end, it)| (it, end)).collect());
    shown.overrides_in_force = in_force;
}

#[cfg(test)]
mod tests;
