//! The report of one release. `Report` of openreports.io/v1alpha1 and `PolicyReport` of wgpolicyk8s.io/v1alpha2 share all fields that
//! are used here, except the [source](SOURCE) of the report, which the older API does not have.

use std::collections::BTreeMap;

use interlock_engine::decision::ObjectReference;
use interlock_engine::release::{ReleaseName, ReleaseRef};
use interlock_engine::severity::Severity;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::cluster_name::ClusterName;

use super::entry::{ReportEntry, ReportOutcome};

/// The hash of the written content.
pub(super) const CONTENT: &str = "interlock.dev/content";
/// Namespace and name of the release.
pub(super) const RELEASE: &str = "interlock.dev/release";
/// The Events that the report counts, with their findings: `<uid>=<count>,...`.
pub(super) const EVENTS: &str = "interlock.dev/events";

/// The source of every report and result.
pub(super) const SOURCE: &str = "interlock";
const CATEGORY: &str = "Release transitions";

/// The properties of a result that are fields of the entry.
const ACTOR: &str = "actor";
const COUNT: &str = "count";
const FIRST: &str = "first";
const LAST: &str = "last";
const FOUND_BY: &str = "foundBy";
const SCAN: &str = "scan";
const CLUSTER: &str = "cluster";

/// The fields that Interlock writes, without metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scope: Option<ObjectReference>,
    #[serde(default)]
    pub(super) summary: Summary,
    #[serde(default)]
    pub(super) results: Vec<ReportResult>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Summary {
    pass: u64,
    pub(super) fail: u64,
    pub(super) warn: u64,
    error: u64,
    skip: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReportResult {
    source: String,
    policy: String,
    rule: String,
    category: String,
    severity: Severity,
    timestamp: ReportTimestamp,
    result: ReportOutcome,
    scored: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resources: Vec<ObjectReference>,
    message: String,
    properties: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ReportTimestamp {
    seconds: i64,
    nanos: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundBy {
    Admission,
    Scan,
}

impl ReportBody {
    /// The report of these entries. The scope is the newest record, if any.
    pub(super) fn of<'e>(
        entries: impl IntoIterator<Item = (&'e ReportEntry, FoundBy)>,
        scope: Option<ObjectReference>,
        cluster: Option<&ClusterName>,
    ) -> Self {
        let results = entries.into_iter().map(|(entry, origin)| ReportResult::of(entry, origin, cluster));
        let results: Vec<_> = results.collect();
        let count = |outcome| results.iter().filter(|line| line.result == outcome).count() as u64;
        let summary =
            Summary { fail: count(ReportOutcome::Fail), warn: count(ReportOutcome::Warn), ..Summary::default() };
        Self { scope, summary, results }
    }

    /// A hash of the results. Not of the scope, which changes with every upgrade.
    pub(super) fn content(&self) -> String {
        let text = serde_json::to_vec(&self.results).unwrap_or_default();
        Sha256::digest(&text)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl ReportResult {
    fn of(entry: &ReportEntry, origin: FoundBy, cluster: Option<&ClusterName>) -> Self {
        let mut properties = entry.properties.clone();
        let mut set = |key: &str, value: String| properties.insert(key.to_owned(), value);
        entry.actor.clone().map(|actor| set(ACTOR, actor));
        cluster.map(|name| set(CLUSTER, name.to_string()));
        set(FIRST, entry.first.to_string());
        let at = match origin {
            // Every scan finds the same, so the time of the last scan is omitted: it would change the report each time.
            FoundBy::Scan => {
                set(FOUND_BY, SCAN.to_owned());
                entry.first
            }
            FoundBy::Admission => {
                set(COUNT, entry.count.to_string());
                set(LAST, entry.last.to_string());
                entry.last
            }
        };
        Self {
            source: SOURCE.to_owned(),
            policy: entry.check.clone(),
            rule: entry.check.clone(),
            category: CATEGORY.to_owned(),
            severity: entry.severity,
            timestamp: ReportTimestamp { seconds: at.as_second(), nanos: at.subsec_nanosecond() },
            result: entry.outcome,
            scored: true,
            resources: entry.object.clone().into_iter().collect(),
            message: entry.message.clone(),
            properties,
        }
    }

    /// The entry of a result. `None` for a result of another version or author.
    pub(super) fn entry(self, release: &ReleaseRef) -> Option<(ReportEntry, FoundBy)> {
        let mut properties = self.properties;
        properties.remove(CLUSTER);
        let origin = match properties.remove(FOUND_BY) {
            Some(found_by) if found_by == SCAN => FoundBy::Scan,
            _ => FoundBy::Admission,
        };
        let mut time = |key: &str| properties.remove(key)?.parse::<Timestamp>().ok();
        let first = time(FIRST)?;
        let last = time(LAST).unwrap_or(first);
        let entry = ReportEntry {
            release: release.clone(),
            check: self.policy,
            severity: self.severity,
            outcome: self.result,
            actor: properties.remove(ACTOR),
            object: self.resources.into_iter().next(),
            message: self.message,
            first,
            last,
            count: properties.remove(COUNT).and_then(|count| count.parse().ok()).unwrap_or(1),
            properties,
        };
        Some((entry, origin))
    }
}

/// The namespace and name of a release's report. If the release has no namespace, the report is in Interlock's own namespace.
pub(super) fn place(release: &ReleaseRef, own_namespace: &str) -> (String, String) {
    let ReleaseRef { namespace, name } = release;
    let name = match name.parse::<ReleaseName>() {
        Ok(name) => name.to_string(),
        // Some objects name their release in a label, whose value need not be a valid object name.
        Err(_) => {
            let digest = Sha256::digest(name.as_bytes());
            digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
        }
    };
    match namespace.as_str() {
        "" => (own_namespace.to_owned(), format!("extension.interlock-{name}")),
        namespace => (namespace.to_owned(), format!("interlock-{name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::report::openreports::entry::ObservedEvent;
    use crate::serve::report::openreports::entry::tests::{event, second};

    fn entry() -> ReportEntry {
        ObservedEvent::read(&event("e1", 100, 3)).unwrap().entry
    }

    #[test]
    fn a_report_round_trips() {
        let (found, scanned) = (entry(), ReportEntry { count: 1, last: second(100), ..entry() });
        let body = ReportBody::of(
            [(&found, FoundBy::Admission), (&scanned, FoundBy::Scan)],
            None,
            "prod-eu".parse().ok().as_ref(),
        );
        let text = serde_json::to_string(&body).unwrap();
        assert_eq!(text.matches(r#""cluster":"prod-eu""#).count(), 2);
        let read: ReportBody = serde_json::from_str(&text).unwrap();
        let release = ReleaseRef::new("shop", "web");
        let entries: Vec<_> = read.results.into_iter().filter_map(|line| line.entry(&release)).collect();
        assert_eq!(entries, [(found, FoundBy::Admission), (scanned, FoundBy::Scan)]);
    }

    #[test]
    fn the_summary_counts_failures_and_warnings() {
        let warned = ReportEntry { outcome: ReportOutcome::Warn, ..entry() };
        let body = ReportBody::of([(&entry(), FoundBy::Admission), (&warned, FoundBy::Admission)], None, None);
        let text = serde_json::to_value(&body).unwrap();
        let expected = serde_json::json!({"pass": 0, "fail": 1, "warn": 1, "error": 0, "skip": 0});
        assert_eq!(text["summary"], expected);
        let line = &text["results"][0];
        assert_eq!((&line["policy"], &line["result"]), (&"manual-edit".into(), &"fail".into()));
        assert_eq!((&line["properties"]["count"], &line["properties"]["actor"]), (&"3".into(), &"alice".into()));
        assert_eq!(line["timestamp"], serde_json::json!({"seconds": 102, "nanos": 0}));
        let object =
            serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"});
        assert_eq!(line["resources"], serde_json::json!([object]));
    }

    #[test]
    fn the_content_hash_depends_only_on_the_results() {
        let content = |entry: &ReportEntry, origin, scope| ReportBody::of([(entry, origin)], scope, None).content();
        let entry = entry();
        let one = content(&entry, FoundBy::Admission, None);
        assert_eq!(one, content(&entry, FoundBy::Admission, entry.object.clone()));
        assert_eq!(one.len(), 16);
        let more = ReportEntry { count: 4, ..entry.clone() };
        assert_ne!(one, content(&more, FoundBy::Admission, None));
        let again = ReportEntry { last: second(900), ..entry.clone() };
        assert_eq!(content(&entry, FoundBy::Scan, None), content(&again, FoundBy::Scan, None));
    }

    #[test]
    fn every_release_has_its_own_report() {
        let place = |namespace: &str, name: &str| place(&ReleaseRef::new(namespace, name), "interlock-system");
        let at = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        assert_eq!(place("shop", "web"), at("shop", "interlock-web"));
        assert_eq!(place("", "argo"), at("interlock-system", "extension.interlock-argo"));
        let (namespace, name) = place("shop", "Not_A_Name");
        assert_eq!((namespace.as_str(), name.len()), ("shop", "interlock-".len() + 16));
    }
}
