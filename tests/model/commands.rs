//! What a printed command writes, as the programs of the model carry it out.

use interlock_engine::release::Status;

use crate::client::{Act, Client, Reaction, View, Write};
use crate::clients::flux::{Flux, Remedy};
use crate::clients::helm::{Helm, Way};
use crate::clients::olm::Olm;
use crate::clients::sveltos::{Recovery, Sveltos};
use crate::cluster::{Chart, Cluster, Driver, Other, Revision};
use crate::court::Ruling;
use crate::explore::Explorer;
use crate::users::User;

/// Carries out a command of a user about the release that keeps its records there.
///
/// # Errors
/// Why it cannot be carried out.
pub(crate) fn carry_out(
    explorer: &mut Explorer,
    cluster: &Cluster,
    (driver, user): (Driver, User),
    line: &str,
) -> Result<Cluster, String> {
    // Values from a pipe change nothing here.
    let line = line.rsplit(" | ").next().unwrap_or(line);
    let words = shlex::split(line).ok_or("it is no command")?;
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.starts_with("HELM_DRIVER=")).collect();
    // The records in the other storage may come first.
    let driver = match words[0] {
        "helm" if line.starts_with("HELM_DRIVER=configmap ") => Driver::ConfigMap,
        "helm" => Driver::Secret,
        "interlock" if words.ends_with(&["--storage", "configmap"]) => Driver::ConfigMap,
        "interlock" if words[1] == "unstick" => pending_in(cluster).unwrap_or(driver),
        _ => driver,
    };
    let helm = |chart| Helm { user, driver, chart, ways: &[] };
    let view = View { cluster, memory: 0, lives: 0 };
    let planned = |acts: Option<Vec<Act>>| acts.ok_or("the program does not begin it".to_owned());
    let newest = cluster.newest(driver).ok_or("there is no release")?;
    match words[..] {
        ["helm", "rollback", _, revision, ..] => {
            let target = revision.parse().ok().and_then(|revision| cluster.record(driver, revision));
            let acts = helm(1).rollback_to(Way::Rollback, target.ok_or("there is no such revision")?, &view);
            run(explorer, &helm(1), planned(acts)?, cluster)
        }
        ["helm", "uninstall", ..] => run(explorer, &helm(1), planned(helm(1).plan(Way::Uninstall, &view))?, cluster),
        ["helm", "upgrade", _, "CHART", ..] => {
            let chart = version(&words).unwrap_or(newest.body.chart % 3 + 1);
            run(explorer, &helm(chart), planned(helm(chart).plan(Way::Upgrade, &view))?, cluster)
        }
        ["interlock", "unstick", _, ..] => {
            run(explorer, &helm(1), writes([Write::Delete(driver, newest.body.revision)]), cluster)
        }
        ["interlock", "override", .., "--rule", "pending-recovery", "--for", _, "--reason", _] => {
            run(explorer, &helm(1), writes([Write::Put(Other::Override(driver))]), cluster)
        }
        ["interlock", "wait", ..] if cluster.others.contains(&Other::Lease) => {
            let mut later = cluster.clone();
            later.others.remove(&Other::Lease);
            Ok(later)
        }
        ["interlock", "wait", ..] if driver == Driver::Olm => reconcile(explorer, cluster, newest.body.chart % 3 + 1),
        ["interlock", "wait", ..] => {
            let sveltos = Sveltos { chart: 2, recovery: Recovery::Deletes, fails: false };
            first(explorer, &sveltos, cluster)
        }
        ["flux", "reconcile", "helmrelease", ..] => {
            let flux = Flux { user: User::FluxTenant, chart: 2, remedy: Remedy::Retry, fails: false };
            first(explorer, &flux, cluster)
        }
        ["kubectl", "patch", "clusterextension", .., patch] => {
            let chart = patch.split('"').rev().find_map(|part| part.strip_suffix(".0.0")?.parse().ok());
            reconcile(explorer, cluster, chart.ok_or("it pins no version")?)
        }
        ["kubectl", "annotate", _, "-n", _, record, "interlock.dev/interrupted-"] => {
            let noted = revision_of(record).map(|revision| Write::RemoveNote(driver, revision));
            run(explorer, &helm(1), writes(noted), cluster)
        }
        ["kubectl", "delete", "secret" | "configmap", "-n", _, ..] => {
            let records = words[5..].iter().filter_map(|name| revision_of(name));
            run(explorer, &helm(1), writes(records.map(|revision| Write::Delete(driver, revision))), cluster)
        }
        _ => Err("no program of the model does this".to_owned()),
    }
}

/// Where `interlock unstick` finds the pending record.
fn pending_in(cluster: &Cluster) -> Option<Driver> {
    let is_pending = |driver: &Driver| cluster.newest(*driver).is_some_and(|newest| newest.status().is_pending());
    [Driver::Secret, Driver::ConfigMap, Driver::Olm].into_iter().find(is_pending)
}

fn writes(writes: impl IntoIterator<Item = Write>) -> Vec<Act> {
    writes.into_iter().map(Act::or_stop).collect()
}

fn revision_of(record: &str) -> Option<Revision> {
    record.rsplit_once(".v")?.1.parse().ok()
}

fn version(words: &[&str]) -> Option<Chart> {
    let at = words.iter().position(|word| *word == "--version")?;
    words.get(at + 1)?.strip_suffix(".0.0")?.parse().ok()
}

/// OLM, which resolves this version now. It can do nothing as long as it cannot read a record.
fn reconcile(explorer: &mut Explorer, cluster: &Cluster, chart: Chart) -> Result<Cluster, String> {
    if cluster.history(Driver::Olm).any(|record| record.broken) {
        return Err("OLM cannot read a record".to_owned());
    }
    let charts: &'static [Chart] = [&[0][..], &[1], &[2], &[3]][usize::from(chart)];
    first(explorer, &Olm { charts, fails: false, unstuck_by: User::Alice }, cluster)
}

/// The first operation that a program begins.
fn first(explorer: &mut Explorer, client: &dyn Client, cluster: &Cluster) -> Result<Cluster, String> {
    let begun = client.begin(&View { cluster, memory: 0, lives: 0 }).into_iter().next();
    run(explorer, client, begun.ok_or("the program begins nothing")?.acts, cluster)
}

/// Carries out acts, none of which may be refused.
fn run(explorer: &mut Explorer, client: &dyn Client, acts: Vec<Act>, start: &Cluster) -> Result<Cluster, String> {
    let (mut cluster, mut acts) = (start.clone(), acts);
    while !acts.is_empty() {
        match acts.remove(0) {
            Act::Remember(_) => {}
            Act::Look(what, copies) => {
                let mut ways = client.look(what, &copies, &View { cluster: &cluster, memory: 0, lives: 0 });
                acts.splice(0..0, ways.swap_remove(0));
            }
            Act::Write(write, reaction) => match &*explorer.rule_on(&cluster, client.user_of(&write), &write) {
                Ruling::Admitted(next) => cluster = next.clone(),
                Ruling::Conflict if write == Write::DeleteObject || reaction == Reaction::GoOn => {}
                Ruling::Conflict => return Err(format!("{write:?} meets a conflict")),
                Ruling::Refused(refusals) => return Err(format!("{write:?} is refused: {refusals:?}")),
            },
        }
    }
    Ok(cluster)
}

/// Whether a release has ended: its newest record is deployed, or there is none.
pub(crate) fn has_ended(cluster: &Cluster, driver: Driver) -> bool {
    let ended = |status| matches!(status, Status::Deployed) || (status == Status::Uninstalled && driver != Driver::Olm);
    cluster.newest(driver).is_none_or(|newest| ended(newest.status()))
        && !cluster.history(driver).any(|record| record.broken)
}
