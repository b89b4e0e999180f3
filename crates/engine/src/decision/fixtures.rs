//! Decisions for tests.

use std::time::Duration;

use super::{Decision, DecisionFinding, ObjectReference};
use crate::release::ReleaseRef;
use crate::review::Operation;
use crate::rule::{Mode, RuleId};
use crate::violation::ViolationKind;

/// alice changes the Deployment web of the release shop/web.
#[must_use]
pub fn decision(findings: Vec<DecisionFinding>) -> Decision {
    let object = ObjectReference {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: "shop".into(),
        name: "web".into(),
    };
    Decision {
        uid: "u1".into(),
        operation: Operation::Update,
        resource: "deployments.apps".into(),
        namespace: "shop".into(),
        name: "web".into(),
        user: "alice".into(),
        concerns_releases: true,
        release: Some(ReleaseRef::new("shop", "web")),
        allowed: !findings.iter().any(|finding| finding.refuses),
        dry_run: false,
        objection: None,
        findings,
        object: Some(object),
        object_uid: "d1".into(),
        change: 1,
        transition: None,
        took: Duration::from_micros(50),
        decoded: None,
        effort: 0,
        over_budget: false,
    }
}

/// A broken rule, which refuses in mode `enforce`.
#[must_use]
pub fn finding(rule: RuleId, mode: Mode) -> DecisionFinding {
    DecisionFinding {
        rule,
        mode,
        kind: ViolationKind::Refused,
        refuses: mode == Mode::Enforce,
        pointers: vec!["/spec/replicas".into()],
        message: format!("It is so. Do this. [{rule}]"),
        ways_out: "Do this.".into(),
        overridden: None,
        ticket: None,
        frozen: None,
    }
}
