//! The plugin helm-mapkubeapis, under the account of whoever runs it.
//!
//! Source: `pkg/v3/release.go` of helm-mapkubeapis 0.6, and its traffic that was recorded on a real API server. It supersedes the
//! newest record, whatever its status, and creates its copy with mapped APIs as deployed. It looks at no pending record, and
//! an error ends it.

use interlock_engine::release::Status;

use super::helm::update;
use crate::client::{Act, Client, Operation, View, Write};
use crate::cluster::{Body, Driver};
use crate::users::User;

/// `helm mapkubeapis` under an account.
pub(crate) struct Mapkubeapis {
    pub(crate) user: User,
}

impl Client for Mapkubeapis {
    fn name(&self) -> &'static str {
        "mapkubeapis"
    }

    fn user(&self) -> User {
        self.user
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        let newest = view.cluster.newest(Driver::Secret);
        let map = |newest: &crate::cluster::Record| {
            let revision = newest.body.revision + 1;
            let copy = Body { revision, status: Status::Deployed, life: view.new_life(revision), ..newest.body };
            let acts = vec![Act::or_stop(update(newest, Status::Superseded)), Act::or_stop(Write::Create(copy))];
            Operation { name: "map", acts }
        };
        newest.map(map).into_iter().collect()
    }
}
