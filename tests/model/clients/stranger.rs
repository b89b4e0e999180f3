//! A stranger: may write in a namespace of its own, and points from there at the release.

use crate::client::{Act, Client, Operation, View, Write};
use crate::cluster::{Other, StrangersRecord};
use crate::users::User;

pub(crate) struct Stranger;

const EVERYTHING: [Other; 8] = [
    Other::StrangersRecord(StrangersRecord::PendingUpgrade),
    Other::StrangersRecord(StrangersRecord::Deployed),
    Other::StrangersHelmRelease,
    Other::StrangersStatus,
    Other::StrangersStamp,
    Other::StrangersObject,
    Other::StrangersLease,
    Other::StrangersOverride,
];

impl Client for Stranger {
    fn name(&self) -> &'static str {
        "stranger"
    }

    fn user(&self) -> User {
        User::Mallory
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        let missing = EVERYTHING.into_iter().filter(|other| !view.cluster.others.contains(other));
        missing
            .map(|other| Operation { name: "write elsewhere", acts: vec![Act::or_stop(Write::Put(other))] })
            .collect()
    }
}
