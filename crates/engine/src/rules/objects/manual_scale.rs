//! The rule `manual-scale`.

use super::case::ObjectCase;
use super::manual_edit;
use crate::facts::ObjectChange;
use crate::owners;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Rule};

/// The rule `manual-scale`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "manual-scale",
        owners: owners::ALL,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        requests: Requests { operations: &[Operation::Update], kinds: &[] },
        summary: "A number of replicas that a release declares changes through the release.",
        why: "The next upgrade scales back to the number in the chart, usually at a bad moment.",
        allowed: "Scaling where the chart does not set the number; scaling by an autoscaler.",
        refused: "`kubectl scale` of a Deployment whose chart sets the number.",
        way_out: "Change the number in the values of the chart, or remove it from the chart and leave it to an autoscaler.",
        settings: &["resources"],
    },
    checks: &[Check::Object(check)],
};

fn check(case: &ObjectCase<'_>) -> Checked {
    if !matches!(case.write.change, ObjectChange::Scaled { .. }) {
        return Ok(None);
    }
    manual_edit::refusal_outside_exceptions(case)
}
