//! The rule `protected-release`: one file for each kind of request that leads to the uninstall of a release.
//!
//! An uninstall updates a record first, and then deletes objects. If the update is refused, Helm only logs that and continues. If
//! a deletion is refused, Helm does not delete the records. So both are refused, for every user: the accounts of pipelines and
//! managers can uninstall by accident too. The rule also refuses writes that make a manager uninstall, and the deletion of the
//! namespace. An upgrade may delete the objects that its own revision no longer declares.

pub(crate) mod declarations;
mod objects;
mod peers;
pub(crate) mod protection;
mod records;

use crate::owners;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Rule};

/// The rule `protected-release`.
pub(super) static RULE: Rule = Rule {
    specification: Specification {
        id: "protected-release",
        owners: owners::ALL,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRemoval,
        requests: Requests { operations: &[Operation::Create, Operation::Update, Operation::Delete], kinds: &[] },
        summary: "A release that the policy protects is uninstalled under a ReleaseOverride.",
        why: "An uninstall by accident takes the data of a release with it, and no client asks twice.",
        allowed: "Upgrades and rollbacks, what they delete because the new revision no longer declares it, and pruning of the \
                  history; uninstalling what has never been deployed, as `helm install --atomic` does after a failure; deleting a \
                  suspended HelmRelease, which leaves the release.",
        refused: "`helm uninstall` of a release under `protected` in the policy, by a person, a pipeline or a manager; deleting its \
                  HelmRelease, its ClusterExtension or its namespace; a commit of bundles without it; removing the annotation \
                  interlock.dev/protected from these, except by managers and controllers of the policy.",
        way_out: "Ask for a ReleaseOverride of protected-release, or take the release out of `protected` in the policy.",
        settings: &["honourPeerMarks"],
    },
    checks: &[Check::Record(records::check), Check::Object(objects::check), Check::Declaration(declarations::check)],
};
