//! Flux for a HelmRelease whose account may change at any moment: a person gives it to this account, and the controller goes on under it.

use super::flux::Flux;
use crate::client::{Act, Client, Goal, Operation, View, Write};
use crate::cluster::{Body, Other};
use crate::users::User;

pub(crate) struct Handover {
    pub(crate) flux: Flux,
}

impl Handover {
    fn helm_release(&self) -> Other {
        Other::HelmRelease(self.flux.user)
    }
}

impl Client for Handover {
    fn name(&self) -> &'static str {
        "flux"
    }

    fn user(&self) -> User {
        self.flux.user
    }

    fn goal(&self) -> Option<Goal> {
        self.flux.goal()
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        if view.cluster.others.contains(&self.helm_release()) {
            return self.flux.begin(view);
        }
        vec![Operation { name: "another account", acts: vec![Act::or_stop(Write::Put(self.helm_release()))] }]
    }

    fn look(&self, what: u8, copies: &[Body], view: &View<'_>) -> Vec<Vec<Act>> {
        self.flux.look(what, copies, view)
    }

    fn user_of(&self, write: &Write) -> User {
        match write {
            Write::Put(_) => User::Alice,
            _ => self.flux.user,
        }
    }
}
