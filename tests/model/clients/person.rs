//! A person with kubectl and plugins of helm: single writes, of any status to any record.

use interlock_engine::release::Status;

use crate::client::{Act, Client, Operation, Stamp, View, Write};
use crate::cluster::{Body, Driver, Words};
use crate::users::User;

/// `kubectl` under an account, about the records of a driver.
pub(crate) struct Person {
    pub(crate) user: User,
    pub(crate) driver: Driver,
    pub(crate) deeds: &'static [Deed],
}

/// What a person does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// `kubectl delete secret` of one record.
    Delete,
    /// Gives any record this status, as `helm set-status` does.
    SetStatus(Status),
    /// Creates a record of the next revision in this status.
    Create(Status),
    /// Creates a record of revision 1 below others.
    CreateOld,
    /// Writes another manifest into a record.
    Rewrite,
    /// `kubectl label`.
    Label(Status),
    /// Creates a record whose label is not its body's status.
    CreateMislabelled,
    /// Creates a record in the name of somebody else, or of Flux, while the mutating half is out of service.
    Forge(Stamp),
    /// Removes the note of an interrupted operation.
    RemoveNote,
    EditObject,
    DeleteObject,
}

impl Client for Person {
    fn name(&self) -> &'static str {
        "kubectl"
    }

    fn user(&self) -> User {
        self.user
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        self.deeds.iter().flat_map(|deed| self.deed(*deed, view)).collect()
    }
}

impl Person {
    fn deed(&self, deed: Deed, view: &View<'_>) -> Vec<Operation> {
        let one = |name, write| Operation { name, acts: vec![Act::or_stop(write)] };
        let records = || view.cluster.history(self.driver);
        let each = |name, write: &dyn Fn(Body) -> Option<Write>| -> Vec<Operation> {
            records().filter_map(|record| Some(one(name, write(record.body)?))).collect()
        };
        let next = view.cluster.newest(self.driver).map_or(1, |last| last.body.revision + 1);
        let new = |revision, status| Body {
            driver: self.driver,
            revision,
            status,
            chart: 1,
            life: view.new_life(revision),
            words: Words::Usual,
        };
        match deed {
            Deed::Delete => each("delete a record", &|body| Some(Write::Delete(body.driver, body.revision))),
            Deed::SetStatus(to) => each("set-status", &|body| (body.status != to).then(|| Write::Update(body.to(to)))),
            Deed::Create(status) => vec![one("create a record", Write::Create(new(next, status)))],
            Deed::CreateOld => {
                let lowest = records().next().map(|record| record.body.revision).filter(|lowest| *lowest > 1);
                lowest
                    .map(|_| one("create an old record", Write::Create(new(1, Status::PendingUpgrade))))
                    .into_iter()
                    .collect()
            }
            Deed::Rewrite => {
                each("rewrite a record", &|body| Some(Write::Update(Body { chart: body.chart % 3 + 1, ..body })))
            }
            Deed::Label(to) => each("label a record", &|body| Some(Write::Relabel(body.driver, body.revision, to))),
            Deed::CreateMislabelled => {
                let write = Write::CreateLabelled(new(next, Status::PendingUpgrade), Status::Superseded);
                vec![one("create a mislabelled record", write)]
            }
            Deed::Forge(stamp) => {
                let write = Write::CreateStamped(new(next, Status::PendingUpgrade), stamp);
                vec![one("create a record with a forged stamp", write)]
            }
            Deed::RemoveNote => {
                let noted = records().filter(|record| record.interrupted.is_some());
                let note = |body: Body| Write::RemoveNote(body.driver, body.revision);
                noted.map(|record| one("remove the note", note(record.body))).collect()
            }
            Deed::EditObject => vec![one("edit the object", Write::Edit)],
            Deed::DeleteObject => vec![one("delete the object", Write::DeleteObject)],
        }
    }
}
