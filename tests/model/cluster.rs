//! The abstract state of a cluster, as far as it concerns one release: its records, one object, and what else rules ask for.
//!
//! Time is abstract: a moment is only as old as some rule can tell, and what no rule can tell apart is the same here (see
//! [`Cluster::settled`]), so that there are few states.

use std::collections::BTreeSet;

use interlock_engine::release::{Status, Storage};

use crate::users::User;

/// How long ago something was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Age {
    /// In this instant: within the 10 s in which a cancelled install may fail what it has promoted, and within the grace after a
    /// failure.
    Just,
    /// Longer ago, but not stale.
    Fresh,
    /// Longer ago than `staleAfter`.
    Stale,
}

/// How old a fresh and a stale moment are, in seconds. As shipped, the grace after a failure is 60 s and `staleAfter` 15 min.
pub(crate) const SOON: i64 = 90;
pub(crate) const LATE: i64 = 20 * 60;

impl Age {
    pub(crate) fn seconds(self) -> i64 {
        match self {
            Self::Just => 0,
            Self::Fresh => SOON,
            Self::Stale => LATE,
        }
    }

    /// The class of a moment so many seconds ago.
    pub(crate) fn of(seconds: i64) -> Self {
        match seconds {
            ..SOON => Self::Just,
            SOON..LATE => Self::Fresh,
            _ => Self::Stale,
        }
    }

    fn later(self, step: Passing) -> Self {
        match step {
            Passing::Moments => self.max(Self::Fresh),
            Passing::UntilStale => Self::Stale,
        }
    }
}

/// A step of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Passing {
    /// What was just now is only fresh.
    Moments,
    /// Everything is stale.
    UntilStale,
}

/// The version of the chart, from 1.
pub(crate) type Chart = u8;
/// From 1.
pub(crate) type Revision = u8;

/// Where a client keeps its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Driver {
    Secret,
    ConfigMap,
    Olm,
}

impl Driver {
    pub(crate) fn storage(self) -> Storage {
        match self {
            Self::Secret => Storage::Secret,
            Self::ConfigMap => Storage::ConfigMap,
            Self::Olm => Storage::Index,
        }
    }
}

/// What a client writes of a record. It is also the copy that a client has in memory. The labels follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Body {
    pub(crate) driver: Driver,
    pub(crate) revision: Revision,
    pub(crate) status: Status,
    pub(crate) chart: Chart,
    /// `info.last_deployed`: tells apart records of two lives of a release under one revision.
    pub(crate) life: u8,
    pub(crate) words: Words,
}

/// What `info.description` says, as far as a rule reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Words {
    Usual,
    /// Flux unlocked the record.
    Unlocked,
}

impl Body {
    /// The copy with another status.
    pub(crate) fn to(self, status: Status) -> Self {
        Self { status, ..self }
    }
}

/// A stored record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    pub(crate) body: Body,
    /// The label `status`.
    pub(crate) label: Status,
    pub(crate) created: Age,
    /// The stamp of the holder.
    pub(crate) holder: Option<User>,
    /// Whether the stamp of the driver names the HelmRelease of the release.
    pub(crate) is_driven: bool,
    /// The stamp of the start.
    pub(crate) started: Option<Age>,
    /// The stamp of the end.
    pub(crate) ended: Option<Age>,
    /// The note of an interrupted operation: its chart and revision.
    pub(crate) interrupted: Option<(Chart, Revision)>,
    /// Whether its client left it deployed below a newer one. No rule knows it; properties do.
    pub(crate) left: bool,
    /// Whether OLM died while it wrote the parts of the record. Only the diagnosis asks for it: no client of the model leaves it so.
    pub(crate) broken: bool,
}

impl Record {
    pub(crate) fn key(&self) -> (Driver, Revision) {
        (self.body.driver, self.body.revision)
    }

    pub(crate) fn status(&self) -> Status {
        self.body.status
    }

    /// How old the operation of this record is.
    pub(crate) fn age(&self) -> Age {
        if self.label == Status::Uninstalling { self.started.unwrap_or(self.created) } else { self.created }
    }
}

/// The one object of the release, a Deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Object {
    /// The chart that wrote it last.
    pub(crate) chart: Chart,
    /// Somebody has edited a declared field since.
    pub(crate) edited: bool,
    /// Its pods are not available. Only the diagnosis asks for it.
    pub(crate) unhealthy: bool,
}

impl Object {
    /// As a chart has it.
    pub(crate) fn of(chart: Chart) -> Self {
        Self { chart, edited: false, unhealthy: false }
    }
}

/// An object beside the records and the one object of the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Other {
    /// The lease of nelm, which is renewed as long as it is here.
    Lease,
    /// The HelmRelease of the release, for which Flux works as this user, with a status that says that Flux has installed it.
    HelmRelease(User),
    /// A ReleaseOverride for the release that keeps its records there, over `pending-recovery`.
    Override(Driver),
    /// A Freeze of the release's namespace, in force.
    Freeze,
    /// The annotation of the release's namespace.
    Protection,
    /// In the namespace of a stranger: a record of the same name for the namespace of the release.
    StrangersRecord(StrangersRecord),
    /// A HelmRelease there, which names the release and its namespaces.
    StrangersHelmRelease,
    /// A status of it that says that Flux has installed the release for it.
    StrangersStatus,
    /// A record there with a stamp that names the HelmRelease of the release.
    StrangersStamp,
    /// An object there, with the marks of the release.
    StrangersObject,
    /// The lease of nelm there.
    StrangersLease,
    /// A ReleaseOverride there, for the release's name.
    StrangersOverride,
}

/// The status of a stranger's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum StrangersRecord {
    PendingUpgrade,
    Deployed,
}

impl Other {
    pub(crate) fn is_strangers(self) -> bool {
        !matches!(self, Self::Lease | Self::HelmRelease(_) | Self::Override(_)) && !self.is_change_control()
    }

    /// Whether people begin and end it, whatever the release does.
    pub(crate) fn is_change_control(self) -> bool {
        matches!(self, Self::Freeze | Self::Protection)
    }
}

/// What a cluster has of one release.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Cluster {
    /// In the order of their keys.
    records: Vec<Record>,
    pub(crate) object: Option<Object>,
    pub(crate) others: BTreeSet<Other>,
}

impl Cluster {
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// The records of a driver, oldest revision first.
    pub(crate) fn history(&self, driver: Driver) -> impl DoubleEndedIterator<Item = &Record> + Clone {
        self.records.iter().filter(move |record| record.body.driver == driver)
    }

    pub(crate) fn newest(&self, driver: Driver) -> Option<&Record> {
        self.history(driver).next_back()
    }

    /// The newest deployed record, as Helm finds it: by its label.
    pub(crate) fn deployed(&self, driver: Driver) -> Option<&Record> {
        self.history(driver).rfind(|record| record.label == Status::Deployed)
    }

    pub(crate) fn record(&self, driver: Driver, revision: Revision) -> Option<&Record> {
        self.records.iter().find(|record| record.key() == (driver, revision))
    }

    pub(crate) fn put(&mut self, record: Record) {
        match self.records.binary_search_by_key(&record.key(), Record::key) {
            Ok(at) => self.records[at] = record,
            Err(at) => self.records.insert(at, record),
        }
    }

    pub(crate) fn remove(&mut self, driver: Driver, revision: Revision) {
        self.records.retain(|record| record.key() != (driver, revision));
    }

    /// The object that another one replaces: the HelmRelease is one object, whichever account it names.
    pub(crate) fn replaced_by(&self, other: Other) -> Option<Other> {
        let is_same = |old: &Other| match (old, other) {
            (Other::HelmRelease(_), Other::HelmRelease(_)) => true,
            (old, new) => *old == new,
        };
        self.others.iter().copied().find(is_same)
    }

    /// Creates or updates an object beside the release.
    pub(crate) fn put_other(&mut self, other: Other) {
        if let Some(old) = self.replaced_by(other) {
            self.others.remove(&old);
        }
        self.others.insert(other);
    }

    /// Marks what is deployed beside a promoted record as left so by its client.
    pub(crate) fn leave_all_but(&mut self, driver: Driver, promoted: Revision) {
        let others = self.records.iter_mut().filter(|record| record.body.driver == driver);
        let others = others.filter(|record| record.body.revision != promoted);
        others.for_each(|record| record.left = record.body.status == Status::Deployed);
    }

    /// The cluster after a step of time.
    pub(crate) fn later(&self, step: Passing) -> Self {
        let mut cluster = self.clone();
        for record in &mut cluster.records {
            record.created = record.created.later(step);
            record.started = record.started.map(|age| age.later(step));
            record.ended = record.ended.map(|age| age.later(step));
        }
        cluster.settled()
    }

    /// The same without the moments that no rule can tell apart any more: only an operation in flight has an age, and only a
    /// deployed or failed record an end, as long as that is just now.
    pub(crate) fn settled(mut self) -> Self {
        for record in &mut self.records {
            let in_flight = record.body.status.is_in_flight() || record.label.is_in_flight();
            if !in_flight {
                record.created = Age::Stale;
                record.left &= record.body.status == Status::Deployed;
            }
            let is_uninstall = record.body.status == Status::Uninstalling || record.label == Status::Uninstalling;
            record.started = record.started.filter(|_| is_uninstall);
            if is_uninstall && record.started.is_some() {
                record.created = Age::Stale;
            }
            let ends = matches!(record.body.status, Status::Deployed | Status::Failed);
            record.ended = record.ended.filter(|age| ends && *age == Age::Just);
            // Which person held an operation that has ended matters only in that instant.
            if !in_flight && record.ended.is_none() && record.holder.is_some_and(User::is_person) {
                record.holder = Some(User::Alice);
            }
        }
        self
    }

    /// The same without anything that a stranger has written.
    pub(crate) fn without_strangers(&self) -> Self {
        let mut cluster = self.clone();
        cluster.others.retain(|other| !other.is_strangers());
        cluster
    }

    /// Whether the release is OLM's.
    pub(crate) fn is_extension(&self) -> bool {
        self.newest(Driver::Olm).is_some()
    }

    /// Whether a driver has a deployed release, with its object, or none.
    pub(crate) fn is_settled(&self, driver: Driver) -> bool {
        self.newest(driver).is_none_or(|newest| newest.status() == Status::Deployed && self.object.is_some())
    }
}
