//! What a scan found, as reports of releases tell it.

use jiff::Timestamp;

use crate::engine::decision::ObjectReference;
use crate::engine::object::ObjectKey;
use crate::engine::release::ReleaseRef;
use crate::engine::severity::Severity;
use crate::inspect::scan::{Finding, ScanReport};
use crate::serve::report::openreports::{Entry, Outcome};

/// The findings of a scan.
pub(super) fn entries(report: &ScanReport) -> Vec<Entry> {
    let now = Timestamp::now();
    report.findings.iter().map(|finding| entry(finding, now)).collect()
}

fn entry(finding: &Finding, now: Timestamp) -> Entry {
    let severity = finding.severity();
    let outcome = if severity >= Severity::Medium { Outcome::Fail } else { Outcome::Warn };
    let named = || ReleaseRef::new(finding.namespace(), finding.name());
    Entry {
        release: finding.release.clone().unwrap_or_else(named),
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

/// A scan knows groups and no versions; reports only name the object.
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
    fn a_finding_names_its_release_or_the_object_that_stands_for_one() {
        let key = ObjectKey::new("lib.projectsveltos.io", "ConfigurationGroup", "civ", "fleet");
        let finding = |release| Finding {
            kind: FindingKind::DanglingBundle,
            release,
            object: Some(key.clone()),
            message: "It is so.".into(),
            way_out: "Do this.".into(),
        };
        let now = Timestamp::UNIX_EPOCH;
        let told = entry(&finding(None), now);
        assert_eq!((told.release.to_string().as_str(), told.message.as_str()), ("civ/fleet", "It is so. Do this."));
        assert_eq!(
            (told.severity, told.outcome, told.check.as_str()),
            (Severity::Medium, Outcome::Fail, "dangling-bundle")
        );
        let release = ReleaseRef::new("shop", "web");
        assert_eq!(entry(&finding(Some(release.clone())), now).release, release);
    }
}
