//! The rule `freeze`.
//!
//! Applies only at the start of an operation. Operations that started before a freeze may finish, and so may their remedies: the
//! rollback by the same user right after a failure (`helm upgrade --rollback-on-failure`), the rollback by a manager of a
//! manager's operation, the uninstall instead if no revision was ever deployed (`helm install --atomic`), and the rest of an
//! uninstall.

mod declarations;
mod objects;
mod records;
mod standing;
pub(crate) mod started;

use crate::owners;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Rule};

/// The rule `freeze`.
pub(super) static RULE: Rule = Rule {
    specification: Specification {
        id: "freeze",
        owners: owners::OF_FREEZES,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Create, Operation::Update, Operation::Delete], kinds: &[] },
        summary: "No operation starts while a freeze of the policy, or a Freeze of the namespace, is in force.",
        why: "Before a weekend or during a sale, nobody is available to fix a bad change.",
        allowed: "The end of an upgrade that started before the freeze, and its rollback if it fails; the uninstall of a first \
                  install that failed; an upgrade by a user that the freeze exempts.",
        refused: "`helm upgrade`, `helm rollback` and `helm uninstall` in a window that denies, or outside of the windows that \
                  `allowOnly` names; a commit of bundles for a managed cluster; a new revision of a ClusterExtension; a person who \
                  deletes a HelmRelease or ClusterExtension, or points it at another release; a sync of an Application.",
        way_out: "Wait until the freeze ends: the refusal says when, and `interlock wait NAMESPACE/RELEASE --until open` waits for it. \
                  Controllers try again by themselves. For an urgent fix, use a ReleaseOverride.",
        settings: &[],
    },
    checks: &[Check::Record(records::check), Check::Object(objects::check), Check::Declaration(declarations::check)],
};
