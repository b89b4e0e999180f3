//! What must hold, said without the rules: of clusters at rest, and of admitted writes.
//!
//! These are sentences about what a team loses, not about the table of transitions: who ended whose operation, what a record says and what
//! runs, and which records are gone.

use interlock_engine::release::Status;

use crate::client::Write;
use crate::cluster::{Age, Cluster, Driver, Other, Record};
use crate::court::{Refusal, Ruling};
use crate::users::User;
use Status::{Deployed, Failed, PendingRollback, Superseded, Uninstalled, Uninstalling};

pub(crate) const TWO_DEPLOYED: &str = "two records are deployed at rest";
pub(crate) const GHOST: &str = "a release is recorded as uninstalled, and its object runs";
pub(crate) const NOTHING_RUNS: &str = "a release is recorded as deployed, and nothing runs";
pub(crate) const UNSTARTED: &str = "a record says that an operation runs which nobody started";
pub(crate) const ENDED_BY_ANOTHER: &str = "a fresh operation is ended by somebody who may not";
pub(crate) const AT_ONCE: &str = "an operation starts over another";
pub(crate) const LOST: &str = "a record of a live release is lost";
pub(crate) const CHANGED: &str = "the content of a record changes";
pub(crate) const REWRITTEN: &str = "a finished record is rewritten";
pub(crate) const MISLABELLED: &str = "a record's label and body disagree";
pub(crate) const FORGED: &str = "a record names a holder who did not start its operation";
pub(crate) const DRIVEN: &str = "a record names a HelmRelease for which its writer does not work";
pub(crate) const OUTDATED: &str = "an operation starts from an outdated history";
pub(crate) const FROM_NOTHING: &str = "a record appears without an operation";
pub(crate) const SKIPPED: &str = "an interrupted version is skipped";

pub(crate) const TWICE: &str = "a release is installed twice, with the records of both drivers";
pub(crate) const FROZEN: &str = "an operation starts in a freeze";
pub(crate) const STOPPED: &str = "a freeze or a protection stops an operation that runs";
pub(crate) const TAKEN: &str = "a protected release is taken away";

pub(crate) const UNFAIR: &str = "a client that is alone is refused";
pub(crate) const STRANGER: &str = "a stranger in another namespace changes something";
pub(crate) const WEDGED: &str = "an owner has no permitted way to a deployed release or to none";

/// An admitted write.
struct Admitted<'w> {
    before: &'w Cluster,
    after: &'w Cluster,
    user: User,
    write: &'w Write,
}

/// The property that a cluster breaks while no client is in the middle of an operation. Records say what runs only if no operation outlives
/// `staleAfter`, and among programs: a person may say anything of an operation that is stale.
pub(crate) fn broken_at_rest(cluster: &Cluster, in_time: bool) -> Option<&'static str> {
    let drivers = [Driver::Secret, Driver::ConfigMap, Driver::Olm];
    for driver in drivers {
        // `helm install --replace` over a failed revision leaves an older deployed one, without any interference. nelm supersedes what was
        // deployed when it read the history, and helm does not know its lease.
        let deployed = cluster.history(driver).filter(|record| record.status() == Deployed && !record.left);
        if deployed.count() > 1 {
            return Some(TWO_DEPLOYED);
        }
    }
    if !in_time {
        return None;
    }
    let in_use: Vec<&Record> = drivers.into_iter().filter_map(|driver| cluster.newest(driver)).collect();
    let [newest] = in_use[..] else { return None };
    match newest.status() {
        Uninstalled if cluster.object.is_some() => Some(GHOST),
        Deployed if cluster.object.is_none() => Some(NOTHING_RUNS),
        _ => None,
    }
}

/// Whether a client that is alone is refused, outside of the exceptions that the design wants: a person may run helm in two terminals, so
/// what a person left in flight is not gone over before it is stale; with OLM, an upgrade does not skip an interrupted one.
pub(crate) fn is_unfair(before: &Cluster, user: User, write: &Write, ruling: &Ruling) -> bool {
    if !matches!(ruling, Ruling::Refused(_)) {
        return false;
    }
    let body = match write {
        Write::Create(body) => body,
        Write::Delete(..) => return !is_own_and_fresh(before, user),
        // The clean-up of a failed upgrade follows it at once.
        Write::DeleteObject => {
            let newest = [Driver::Secret, Driver::ConfigMap].into_iter().find_map(|driver| before.newest(driver));
            return !newest.is_some_and(|newest| newest.status() == Failed && newest.ended.is_none());
        }
        // Two threads of one process race, in milliseconds.
        Write::Update(body) => {
            let old = before.record(body.driver, body.revision);
            return !(body.status == Failed && old.is_some_and(|old| old.status() == Deployed && old.ended.is_none()));
        }
        _ => return true,
    };
    let goes_over_uninstall = before.newest(body.driver).is_some_and(|newest| newest.status() == Uninstalling);
    if body.status == PendingRollback || goes_over_uninstall {
        return !is_own_and_fresh(before, user);
    }
    before.history(body.driver).all(|record| record.interrupted.is_none_or(|(chart, _)| chart == body.chart))
}

/// Whether the newest record is of an operation of this person that is not stale.
fn is_own_and_fresh(cluster: &Cluster, user: User) -> bool {
    let own =
        |record: &&Record| record.status().is_in_flight() && record.age() != Age::Stale && record.holder == Some(user);
    let drivers = [Driver::Secret, Driver::ConfigMap, Driver::Olm];
    user.is_person() && drivers.into_iter().filter_map(|driver| cluster.newest(driver)).any(|newest| own(&newest))
}

/// The property that a write breaks.
pub(crate) fn broken_by_write(before: &Cluster, user: User, write: &Write, ruling: &Ruling) -> Option<&'static str> {
    let after = match ruling {
        Ruling::Admitted(after) => after,
        Ruling::Refused(refusals) => return is_stopped(before, user, write, refusals).then_some(STOPPED),
        Ruling::Conflict => return None,
    };
    let admitted = Admitted { before, after, user, write };
    if before.others.contains(&Other::Freeze) && starts_anew(write) {
        return Some(FROZEN);
    }
    if before.others.contains(&Other::Protection) && takes_away(before, write) {
        return Some(TAKEN);
    }
    let (old, new) = admitted.record()?;
    match (old, new) {
        (None, Some(new)) => admitted.broken_by_creation(new),
        (Some(old), Some(new)) => admitted.broken_by_update(old, new),
        (Some(old), None) => admitted.broken_by_deletion(old),
        (None, None) => None,
    }
}

/// Whether change control refuses what its holder does with an operation that runs. An uninstall over it is another operation.
fn is_stopped(before: &Cluster, user: User, write: &Write, refusals: &[Refusal]) -> bool {
    let by_change_control = refusals.iter().any(|refusal| ["freeze", "protected-release"].contains(&refusal.rule));
    let Write::Update(body) = write else { return false };
    let by_change_control = by_change_control && body.status != Uninstalling;
    let running = before.record(body.driver, body.revision).filter(|record| record.status().is_in_flight());
    by_change_control && running.is_some_and(|record| record.holder == Some(user))
}

/// Whether a write starts an operation that remedies nothing.
fn starts_anew(write: &Write) -> bool {
    matches!(write, Write::Create(body) if matches!(body.status, Status::PendingInstall | Status::PendingUpgrade))
}

/// Whether a write takes an installed release away, or a part of it.
fn takes_away(before: &Cluster, write: &Write) -> bool {
    let is_installed = |driver: Driver| {
        let newest = before.newest(driver);
        let is_going = newest.is_some_and(|newest| match newest.status() {
            Uninstalled => true,
            Uninstalling => newest.holder.is_some(),
            _ => false,
        });
        before.deployed(driver).is_some() && !is_going
    };
    match write {
        Write::DeleteObject => [Driver::Secret, Driver::ConfigMap, Driver::Olm].into_iter().any(is_installed),
        Write::Update(body) => matches!(body.status, Uninstalling | Uninstalled) && is_installed(body.driver),
        Write::Delete(driver, revision) => {
            is_installed(*driver) && before.deployed(*driver).is_some_and(|base| base.body.revision == *revision)
        }
        _ => false,
    }
}

impl<'w> Admitted<'w> {
    /// The record that is written, before and after; `None` if the write is to something else.
    fn record(&self) -> Option<(Option<&'w Record>, Option<&'w Record>)> {
        let (driver, revision) = match self.write {
            Write::Create(body)
            | Write::CreateLabelled(body, _)
            | Write::CreateStamped(body, _)
            | Write::Update(body) => (body.driver, body.revision),
            Write::Delete(driver, revision)
            | Write::Relabel(driver, revision, _)
            | Write::RemoveNote(driver, revision) => (*driver, *revision),
            _ => return None,
        };
        Some((self.before.record(driver, revision), self.after.record(driver, revision)))
    }

    /// Whether the user goes on with an operation of its own: a service account with its own, a manager with a manager's, Flux
    /// under the account that its HelmRelease names by now.
    fn resumes(&self, record: &Record, holder: User) -> bool {
        let is_handover = record.is_driven && self.before.others.contains(&Other::HelmRelease(self.user));
        let same_program = self.user == holder && !holder.is_person();
        same_program || (self.user.is_manager() && holder.is_manager()) || is_handover
    }

    /// Whether the operation of a record may be ended by the user: by its holder, by who resumes it, by anybody once it is stale or its
    /// holder is not known.
    fn may_end(&self, record: &Record) -> bool {
        record.age() == Age::Stale
            || record.holder.is_none_or(|holder| holder == self.user || self.resumes(record, holder))
    }

    fn holds_lease(&self) -> bool {
        self.before.others.contains(&Other::Lease)
    }

    /// The operation in flight in one of Helm's storages, or in the other of the two.
    fn in_flight(&self, driver: Driver) -> Option<&'w Record> {
        let newest = self.before.newest(driver)?;
        (newest.status().is_in_flight() && newest.label.is_in_flight()).then_some(newest)
    }

    fn broken_by_creation(&self, new: &Record) -> Option<&'static str> {
        let driver = new.body.driver;
        let newest = self.before.newest(driver);
        let is_mapped = new.status() == Deployed
            && self.before.deployed(driver).is_none()
            && newest.is_some_and(|newest| {
                newest.status() == Superseded
                    && newest.body.revision + 1 == new.body.revision
                    && newest.body.chart == new.body.chart
            });
        if !new.status().is_pending() && !is_mapped {
            return Some(FROM_NOTHING);
        }
        if new.label != new.status() {
            return Some(MISLABELLED);
        }
        if new.holder.is_some_and(|holder| holder != self.user) {
            return Some(FORGED);
        }
        // A stamp that names a HelmRelease which does not exist opens the operation to nobody.
        let is_anothers = |other: &Other| matches!(other, Other::HelmRelease(user) if *user != self.user);
        if new.is_driven && self.before.others.iter().any(is_anothers) {
            return Some(DRIVEN);
        }
        if newest.is_some_and(|newest| newest.body.revision >= new.body.revision) {
            return Some(OUTDATED);
        }
        if let Some(running) = self.in_flight(driver)
            && !self.holds_lease()
        {
            let may = running.age() == Age::Stale || running.holder.is_some_and(|holder| self.resumes(running, holder));
            // An upgrade goes on from the revision that is deployed below an uninstall that died.
            let below = running.status() == Uninstalling && self.before.deployed(driver).is_some();
            let recovers = new.status() == PendingRollback || (new.status() == Status::PendingUpgrade && below);
            if !recovers || !may {
                return Some(AT_ONCE);
            }
        }
        if let Some(property) = self.beside_the_other_driver(new) {
            return Some(property);
        }
        self.skips(new).then_some(SKIPPED)
    }

    /// What an operation breaks over a release of the same name whose records are in Helm's other storage.
    fn beside_the_other_driver(&self, new: &Record) -> Option<&'static str> {
        let other = match new.body.driver {
            Driver::Secret => Driver::ConfigMap,
            Driver::ConfigMap => Driver::Secret,
            Driver::Olm => return None,
        };
        let running = self.in_flight(other).filter(|running| running.age() != Age::Stale && !self.holds_lease());
        if running.is_some_and(|running| running.holder.is_none_or(|holder| !self.resumes(running, holder))) {
            return Some(AT_ONCE);
        }
        let is_install = new.status() == Status::PendingInstall || self.before.newest(new.body.driver).is_none();
        let is_gone = self.before.newest(other).is_some_and(|newest| newest.status() == Uninstalled);
        (is_install && !is_gone && self.before.deployed(other).is_some()).then_some(TWICE)
    }

    /// Whether an upgrade leaves out the version whose upgrade was interrupted. As shipped, only OLM's are held to that.
    fn skips(&self, new: &Record) -> bool {
        if new.body.driver != Driver::Olm || new.status() != Status::PendingUpgrade {
            return false;
        }
        let since = self.before.history(Driver::Olm).rev();
        let last = since.clone().find(|record| matches!(record.status(), Deployed | Superseded | Uninstalled));
        let noted = |record: &Record| record.interrupted.filter(|_| last.is_none_or(|last| record.key() >= last.key()));
        since.clone().find_map(noted).is_some_and(|(chart, _)| chart != new.body.chart)
    }

    fn broken_by_update(&self, old: &Record, new: &Record) -> Option<&'static str> {
        let (from, to) = (old.status(), new.status());
        if new.label != to && (old.label == from || new.label != old.label) {
            return Some(MISLABELLED);
        }
        let redated = old.body.life != new.body.life && to != Failed;
        if old.body.chart != new.body.chart || redated {
            return Some(CHANGED);
        }
        if to.is_pending() && to != from {
            return Some(UNSTARTED);
        }
        let starts = to == Uninstalling && from != Uninstalling;
        let is_newest = |record: &Record| self.before.newest(record.body.driver).map(Record::key) == Some(record.key());
        let above = self.in_flight(old.body.driver).filter(|running| running.key() != old.key());
        if starts && above.is_some() {
            return Some(AT_ONCE);
        }
        let ends = from.is_in_flight() && (to != from || (from == Uninstalling && new.holder != old.holder));
        if ends && !self.may_end(old) {
            let mut above = self.before.history(old.body.driver).filter(|other| other.key() > old.key());
            // A rollback has gone over it; or it is an uninstall that a later revision has overtaken, and nothing ends.
            let is_over = above.any(|other| match other.status() {
                PendingRollback => to == Superseded,
                status => to == from && !status.is_in_flight(),
            });
            return (!is_over).then_some(ENDED_BY_ANOTHER);
        }
        // What only its own program goes on with: nothing else is deployed then, and nothing is newer.
        let resumed = from == Superseded
            && !self.user.is_person()
            && old.holder.is_none_or(|holder| self.resumes(old, holder))
            && self.before.deployed(old.body.driver).is_none()
            && is_newest(old);
        match (from, to) {
            (Superseded, Deployed | Failed) if resumed => None,
            (Superseded | Uninstalled, Deployed | Failed | Uninstalled | Uninstalling)
                if from != to && (from, to) != (Superseded, Uninstalling) =>
            {
                Some(REWRITTEN)
            }
            (Failed, Deployed | Uninstalled) | (Deployed, Uninstalled) => Some(REWRITTEN),
            (Deployed, Failed) if old.ended != Some(Age::Just) || old.holder != Some(self.user) => Some(REWRITTEN),
            _ => None,
        }
    }

    fn broken_by_deletion(&self, old: &Record) -> Option<&'static str> {
        // Whoever deletes the ClusterExtension wants this.
        if self.user == User::Collector {
            return None;
        }
        let driver = old.body.driver;
        let newest = self.before.newest(driver)?;
        let is_newest = newest.key() == old.key();
        // The deletion of a pending record by its own holder leaves a half-applied revision that looks as if it had never been.
        if old.status().is_in_flight() && is_newest {
            let resumes = old.holder.is_none_or(|holder| self.resumes(old, holder));
            let may = if old.status() == Uninstalling { self.may_end(old) } else { old.age() == Age::Stale || resumes };
            return (!may).then_some(ENDED_BY_ANOTHER);
        }
        let base = self
            .before
            .deployed(driver)
            .or_else(|| self.before.history(driver).rfind(|record| !record.label.is_in_flight()));
        let is_base = base.is_some_and(|base| base.key() == old.key()) && matches!(old.label, Deployed | Superseded);
        let is_gone = newest.label == Uninstalled || (newest.label == Uninstalling && self.may_end(newest));
        let given_up = self.user.is_manager() && old.holder.is_none_or(User::is_manager);
        // An operation of the user's own prunes the superseded record that it starts from.
        let pruned = old.label == Superseded && newest.label.is_pending() && self.may_end(newest);
        (is_base && !is_gone && !given_up && !pruned && !self.holds_lease()).then_some(LOST)
    }
}
