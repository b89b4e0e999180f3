//! Which pairs are explored, and within which bounds.

use interlock_engine::release::Status;

use crate::client::{Client, Stamp};
use crate::clients::change_control::ChangeControl;
use crate::clients::crossplane::Crossplane;
use crate::clients::fleet::Fleet;
use crate::clients::flux::{Flux, Remedy};
use crate::clients::handover::Handover;
use crate::clients::helm::{Helm, Way};
use crate::clients::klipper::Klipper;
use crate::clients::mapkubeapis::Mapkubeapis;
use crate::clients::nelm::Nelm;
use crate::clients::olm::{Collector, Olm};
use crate::clients::person::{Deed, Person};
use crate::clients::stranger::Stranger;
use crate::clients::sveltos::{Recovery, Sveltos};
use crate::cluster::{Body, Chart, Cluster, Driver, Object, Other, Record, Words};
use crate::explore::Scope;
use crate::users::User;

/// A client of a pair; clients live as long as the tests.
pub(crate) type Actor = Box<dyn Client>;

pub(crate) fn helm(user: User, chart: Chart, ways: &'static [Way]) -> Actor {
    Box::new(Helm { user, driver: Driver::Secret, chart, ways })
}

pub(crate) fn helm_in_config_maps(user: User, chart: Chart, ways: &'static [Way]) -> Actor {
    Box::new(Helm { user, driver: Driver::ConfigMap, chart, ways })
}

pub(crate) fn person(user: User, deeds: &'static [Deed]) -> Actor {
    Box::new(Person { user, driver: Driver::Secret, deeds })
}

pub(crate) fn change_control() -> Actor {
    Box::new(ChangeControl)
}

pub(crate) fn collector() -> Actor {
    Box::new(Collector)
}

pub(crate) fn stranger() -> Actor {
    Box::new(Stranger)
}

pub(crate) fn flux(user: User, chart: Chart, remedy: Remedy) -> Actor {
    Box::new(Flux { user, chart, remedy, fails: true })
}

/// Flux for a HelmRelease that may get this account.
pub(crate) fn handover(user: User, chart: Chart) -> Actor {
    Box::new(Handover { flux: Flux { user, chart, remedy: Remedy::RollBack, fails: true } })
}

pub(crate) fn sveltos(recovery: Recovery) -> Actor {
    Box::new(Sveltos { chart: 2, recovery, fails: true })
}

pub(crate) fn olm(charts: &'static [Chart]) -> Actor {
    Box::new(Olm { charts, fails: true, unstuck_by: User::Alice })
}

/// OLM, while somebody deletes the ClusterExtension.
pub(crate) fn olm_collected(charts: &'static [Chart]) -> Actor {
    Box::new(Olm { charts, fails: true, unstuck_by: User::Collector })
}

pub(crate) fn fleet(keep_resources: bool) -> Actor {
    Box::new(Fleet { chart: 2, keep_resources, fails: true })
}

pub(crate) fn klipper() -> Actor {
    Box::new(Klipper { chart: 2, fails: true })
}

pub(crate) fn nelm(user: User) -> Actor {
    Box::new(Nelm { user, chart: 2, fails: true })
}

pub(crate) fn crossplane() -> Actor {
    Box::new(Crossplane { chart: 2, fails: true })
}

pub(crate) fn mapkubeapis(user: User) -> Actor {
    Box::new(Mapkubeapis { user })
}

/// Everything that a person may try with kubectl.
pub(crate) const DEEDS: &[Deed] = &[
    Deed::Delete,
    Deed::SetStatus(Status::Deployed),
    Deed::SetStatus(Status::Failed),
    Deed::SetStatus(Status::Superseded),
    Deed::SetStatus(Status::Uninstalling),
    Deed::SetStatus(Status::Uninstalled),
    Deed::SetStatus(Status::PendingInstall),
    Deed::SetStatus(Status::PendingUpgrade),
    Deed::SetStatus(Status::PendingRollback),
    Deed::Create(Status::Deployed),
    Deed::Create(Status::PendingUpgrade),
    Deed::CreateOld,
    Deed::Rewrite,
    Deed::Label(Status::Superseded),
    Deed::CreateMislabelled,
    Deed::Forge(Stamp::Holder(User::Alice)),
    Deed::Forge(Stamp::Driver),
    Deed::RemoveNote,
    Deed::EditObject,
    Deed::DeleteObject,
];

/// A record at rest, without stamps, as from before Interlock.
pub(crate) fn record(driver: Driver, revision: u8, status: Status) -> Record {
    let body = Body { driver, revision, status, chart: 1, life: 0, words: Words::Usual };
    let created = crate::cluster::Age::Stale;
    Record {
        body,
        label: status,
        created,
        holder: None,
        is_driven: false,
        started: None,
        ended: None,
        interrupted: None,
        left: false,
        broken: false,
    }
}

/// A release that is deployed, with one older revision.
pub(crate) fn installed(driver: Driver) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.object = Some(Object::of(1));
    cluster.put(record(driver, 1, Status::Superseded));
    cluster.put(record(driver, 2, Status::Deployed));
    cluster
}

/// Two clients, how many operations each may begin, and what is there at first.
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) clients: Vec<Actor>,
    pub(crate) operations: Vec<u8>,
    pub(crate) starts: Vec<Cluster>,
    pub(crate) in_time: bool,
}

impl Pair {
    pub(crate) fn new(name: &str, clients: impl Into<Vec<Actor>>, operations: impl Into<Vec<u8>>) -> Self {
        let starts = vec![Cluster::default(), installed(Driver::Secret)];
        Self { name: name.to_owned(), clients: clients.into(), operations: operations.into(), starts, in_time: false }
    }

    /// The same, if no operation lives longer than `staleAfter`.
    pub(crate) fn in_time(self) -> Self {
        Self { name: format!("{}, in time", self.name), in_time: true, ..self }
    }

    pub(crate) fn from(self, starts: impl Into<Vec<Cluster>>) -> Self {
        Self { starts: starts.into(), ..self }
    }

    /// The same, with the HelmRelease of the release, for which Flux works as this user.
    pub(crate) fn with_helm_release(mut self, user: User) -> Self {
        self.starts.iter_mut().for_each(|cluster| cluster.put_other(Other::HelmRelease(user)));
        self
    }

    pub(crate) fn scope(&self, deeper: u8) -> Scope<'_> {
        Scope {
            clients: self.clients.iter().map(AsRef::as_ref).collect(),
            operations: self.operations.iter().map(|operations| operations + deeper).collect(),
            starts: self.starts.clone(),
            kills: true,
            in_time: self.in_time,
        }
    }
}
