//! People who freeze the release's namespace and annotate it as protected, and end both again, at any moment.

use crate::client::{Act, Client, Operation, View, Write};
use crate::cluster::Other;
use crate::users::User;

pub(crate) struct ChangeControl;

const EVERYTHING: [Other; 2] = [Other::Freeze, Other::Protection];

impl Client for ChangeControl {
    fn name(&self) -> &'static str {
        "change control"
    }

    /// Who may do that is judged elsewhere: the model only asks what it does to the others.
    fn user(&self) -> User {
        User::Alice
    }

    fn begin(&self, view: &View<'_>) -> Vec<Operation> {
        let turned = EVERYTHING.into_iter().map(|other| match view.cluster.others.contains(&other) {
            false => Operation { name: "begin", acts: vec![Act::or_stop(Write::Put(other))] },
            true => Operation { name: "end", acts: vec![Act::or_stop(Write::Take(other))] },
        });
        turned.collect()
    }

    /// An owner finds its way out once they have ended.
    fn dies_with(&self) -> &'static [Other] {
        &EVERYTHING
    }
}
