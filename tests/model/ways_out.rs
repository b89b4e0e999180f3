//! The way out that a refusal names is open: once the operation in the way is stale, none of the writes that the text names is
//! refused. `tests/e2e/on_call/ways_out` follows the commands themselves on a real API server.

use interlock_engine::release::Status;

use crate::client::Write;
use crate::cluster::{Body, Cluster, Driver, Other, Passing, Revision, Words};
use crate::court::{Refusal, Ruling};
use crate::explore::Explorer;
use crate::users::User;

/// Phrases of refusals, and the write that each names.
const NAMED: [(&str, Way); 7] = [
    ("oll back with", Way::RollBack),
    ("you can roll back", Way::RollBack),
    ("interlock unstick", Way::Delete),
    ("anyone can unlock", Way::Unlock),
    ("anyone can uninstall", Way::Uninstall),
    ("anyone can delete its record", Way::Delete),
    ("which finishes it", Way::Uninstall),
];

#[derive(Debug, Clone, Copy)]
enum Way {
    RollBack,
    Delete,
    Unlock,
    Uninstall,
}

impl Way {
    /// The write over the record of the operation in the way; `None` if there is none to make it over, or a condition that the text
    /// names does not hold.
    fn write(self, cluster: &Cluster, driver: Driver, in_the_way: Option<Revision>) -> Option<Write> {
        let newest = cluster.newest(driver)?.body;
        let in_the_way =
            in_the_way.and_then(|revision| cluster.record(driver, revision)).map_or(newest, |found| found.body);
        match self {
            Self::RollBack => {
                let target = cluster.history(driver).rev().nth(1)?.body.chart;
                let (revision, status) = (newest.revision + 1, Status::PendingRollback);
                Some(Write::Create(Body { driver, revision, status, chart: target, life: 0, words: Words::Usual }))
            }
            // The workloads must be healthy.
            Self::Delete => cluster.object.map(|_| Write::Delete(driver, in_the_way.revision)),
            Self::Unlock => Some(Write::Update(in_the_way.to(Status::Failed))),
            // Of the release, so over its newest record.
            Self::Uninstall => Some(Write::Update(newest.to(Status::Uninstalling))),
        }
    }
}

/// The revision whose operation is in the way, as the text says it: "the release is pending-upgrade, revision 3".
fn in_the_way(message: &str) -> Option<Revision> {
    let (_, state) = message.split_once("the release is ")?;
    let (_, revision) = state.split_once(", revision ")?;
    revision.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}

/// The first refusal whose named way out is refused too, once everything is stale.
pub(crate) fn dead_end(explorer: &mut Explorer) -> Option<String> {
    for (cluster, user, write, ruling) in explorer.rulings() {
        let Ruling::Refused(refusals) = &*ruling else { continue };
        let Some(driver) = driver_of(&write) else { continue };
        let mut stale = cluster.later(Passing::UntilStale);
        // It is renewed only by an operation that is alive.
        stale.others.remove(&Other::Lease);
        // Their end is a way out too.
        stale.others.retain(|other| !other.is_change_control());
        for refusal in refusals {
            if let Some(found) = refused_again(explorer, &stale, driver, user, refusal) {
                return Some(format!("{user:?}: {write:?} over {cluster:?}\n{found}"));
            }
        }
    }
    None
}

fn refused_again(
    explorer: &mut Explorer,
    stale: &Cluster,
    driver: Driver,
    user: User,
    refusal: &Refusal,
) -> Option<String> {
    let named = NAMED.iter().filter(|(phrase, _)| refusal.message.contains(phrase));
    let in_the_way = in_the_way(&refusal.message);
    for way in named.filter_map(|(_, way)| way.write(stale, driver, in_the_way)) {
        if let Ruling::Refused(again) = &*explorer.rule_on(stale, user, &way) {
            return Some(format!("{}\nthen {way:?}: {again:?}", refusal.message));
        }
    }
    None
}

fn driver_of(write: &Write) -> Option<Driver> {
    match write {
        Write::Create(body) | Write::CreateLabelled(body, _) | Write::CreateStamped(body, _) | Write::Update(body) => {
            Some(body.driver)
        }
        Write::Delete(driver, _) | Write::Relabel(driver, ..) | Write::RemoveNote(driver, _) => Some(*driver),
        _ => None,
    }
}
