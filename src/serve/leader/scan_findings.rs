//! Converts scan findings to report entries.

use interlock_engine::decision::ObjectReference;
use interlock_engine::object::ObjectKey;
use interlock_engine::release::ReleaseRef;
use interlock_engine::severity::Severity;
use jiff::Timestamp;

use crate::inspect::scan::{Finding, ScanReport};
use crate::serve::report::openreports::{ReportEntry, ReportOutcome};

pub(super) fn entries(report: &ScanReport) -> Vec<ReportEntry> {
    let now = Timestamp::now();
    report.findings.iter().map(|finding| entry(finding, now)).collect()
}

fn entry(finding: &Finding, now: Timestamp) -> ReportEntry {
    let severity = finding.severity();
    let outcome = if severity >= Severity::Medium { ReportOutcome::Fail } else { ReportOutcome::Warn };
    ReportEntry {
        release: finding.release.clone().unwrap_or_else(|| ReleaseRef::new(finding.namespace(), finding.name())),
        check: finding.kind.as_str().to_owned(),
        severity,
        outcome,
        actor: None,
        object: finding.object.as_ref().map(object),
        message: format!("{} {}", finding.message, finding.way_out),
        first: now,
        last: now,
        count: 1,
        properties: Default::default(),
    }
}

/// A scan knows the group of an object but not the version, so the reference contains only the group.
fn object(key: &ObjectKey) -> ObjectReference {
    let ObjectKey { group, kind, namespace, name } = key.clone();
    let api_version = if group.is_empty() { "v1".to_owned() } else { group };
    ObjectReference { api_version, kind, namespace, name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::scan::FindingKind;

    #[test]
    fn a_finding_without_a_release_uses_its_object() {
        let key = ObjectKey::new("lib.projectsveltos.io", "ConfigurationGroup", "civ", "fleet");
        let finding = |release| Finding {
            kind: FindingKind::DanglingBundle,
            release,
            object: Some(key.clone()),
            message: "It is so.".into(),
            way_out: "Do this.".into(),
        };
        let now = Timestamp::UNIX_EPOCH;
        let reported = entry(&finding(None), now);
        assert_eq!(
            (reported.release.to_string().as_str(), reported.message.as_str()),
            ("civ/fleet", "It is so. Do this.")
        );
        assert_eq!(
            (reported.severity, reported.outcome, reported.check.as_str()),
            (Severity::Medium, ReportOutcome::Fail, "dangling-bundle")
        );
        let release = ReleaseRef::new("shop", "web");
        assert_eq!(entry(&finding(Some(release.clone())), now).release, release);
    }
}
