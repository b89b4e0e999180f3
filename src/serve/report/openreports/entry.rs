//! One entry of a report, and the conversion from an Event.

use std::collections::BTreeMap;

use interlock_engine::decision::ObjectReference;
use interlock_engine::outcome::Verdict;
use interlock_engine::release::ReleaseRef;
use interlock_engine::rule::Mode;
use interlock_engine::rules;
use interlock_engine::severity::Severity;
use interlock_engine::text::{into_printable, is_printable};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;

use crate::serve::report::events::{CLUSTER_SCOPED_NAMESPACE, CONTROLLER, annotation};

/// The longest message, in bytes.
const MAX_MESSAGE_BYTES: usize = 500;

/// The longest annotation that is read, in bytes, so that other writers of Events cannot fill the memory. Interlock's own annotations are
/// shorter: the longest is a reference to an object, with its group, kind, namespace and name.
const MAX_ANNOTATION_BYTES: usize = 704;

/// A finding about a release: a finding of a scan, or all repetitions of the same operation on the same object by the same user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportEntry {
    pub release: ReleaseRef,
    /// The rule or the check of the scan, for example `manual-edit`.
    pub check: String,
    pub severity: Severity,
    pub outcome: ReportOutcome,
    /// The user.
    pub actor: Option<String>,
    pub object: Option<ObjectReference>,
    /// The message, at most 500 bytes. Contains no data of an object.
    pub message: String,
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
    /// Further properties, for example `mode` and `verdict` of a rule.
    pub properties: BTreeMap<String, String>,
}

/// The result of an entry. Reports do not contain passed checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportOutcome {
    /// Denied, or would have been denied.
    Fail,
    /// Warned about, or allowed by an override.
    Warn,
}

/// Entries with the same key are merged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct EntryKey {
    check: String,
    actor: Option<String>,
    object: Option<ObjectReference>,
    outcome: ReportOutcome,
}

impl ReportEntry {
    pub(super) fn key(&self) -> EntryKey {
        let Self { check, actor, object, outcome, .. } = self.clone();
        EntryKey { check, actor, object, outcome }
    }

    /// Whether Interlock refused the write.
    pub(super) fn is_refusal(&self) -> bool {
        self.properties.get("verdict").map(String::as_str) == Some(Verdict::Denied.as_str())
    }

    /// Makes the message printable and cuts it to the limit.
    pub(super) fn bounded(self) -> Self {
        Self { message: into_printable(self.message, MAX_MESSAGE_BYTES), ..self }
    }

    /// Adds repetitions.
    pub(super) fn merge(&mut self, more: Self) {
        self.count = self.count.saturating_add(more.count);
        self.first = self.first.min(more.first);
        if more.last >= self.last {
            *self = Self { count: self.count, first: self.first, ..more };
        }
    }
}

/// An Event of Interlock: an entry with the count and the times of only this Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObservedEvent {
    pub(super) uid: String,
    pub(super) entry: ReportEntry,
    /// Whether the release had records at that time.
    pub(super) recorded: bool,
}

impl ObservedEvent {
    /// Parses an Event. `None` for an Event that Interlock has not written or would not write, that names no release, or that is about a
    /// release of another namespace. Users with rights in one namespace must not be able to forge findings about another.
    pub(super) fn read(event: &Event) -> Option<Self> {
        if event.reporting_controller.as_deref() != Some(CONTROLLER) {
            return None;
        }
        let annotations = event.metadata.annotations.as_ref()?;
        if annotation::ALL
            .iter()
            .filter_map(|key| annotations.get(*key))
            .any(|value| value.len() > MAX_ANNOTATION_BYTES || !is_printable(value))
        {
            return None;
        }
        let annotation_of = |key: &str| annotations.get(key).map(String::as_str);
        let release = annotation_of(annotation::RELEASE)?;
        let (home, name) = release.split_once('/').unwrap_or(("", release));
        let namespace = event.metadata.namespace.as_deref()?;
        if (if home.is_empty() { CLUSTER_SCOPED_NAMESPACE } else { home }) != namespace {
            return None;
        }
        let verdict: Verdict = annotation_of(annotation::VERDICT)?.parse().ok()?;
        let (outcome, severity) = match verdict {
            Verdict::Denied | Verdict::WouldDeny => (ReportOutcome::Fail, Severity::Medium),
            Verdict::Warned | Verdict::Overridden => (ReportOutcome::Warn, Severity::Low),
            Verdict::Allowed | Verdict::Undecided => return None,
        };
        let rule = annotation_of(annotation::RULE).and_then(rules::named)?;
        let modes = [Mode::Off, Mode::Audit, Mode::Warn, Mode::Enforce];
        let mode = modes.into_iter().find(|mode| annotation_of(annotation::MODE) == Some(mode.as_str()))?;
        let first = event.event_time.as_ref()?.0;
        let series = event.series.as_ref();
        let properties = [
            ("verdict", Some(verdict.as_str())),
            ("mode", Some(mode.as_str())),
            ("operation", annotation_of(annotation::OPERATION)),
            ("override", annotation_of(annotation::OVERRIDE)),
            ("ticket", annotation_of(annotation::TICKET)),
            ("freeze", annotation_of(annotation::FREEZE)),
            ("frozenUntil", annotation_of(annotation::FROZEN_UNTIL)),
        ];
        let properties = properties.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())));
        let entry = ReportEntry {
            release: ReleaseRef::new(home, name),
            check: rule.as_str().to_owned(),
            severity,
            outcome,
            actor: annotation_of(annotation::ACTOR).map(str::to_owned),
            object: annotation_of(annotation::OBJECT).and_then(|object| object.parse().ok()),
            message: event.note.clone().unwrap_or_default(),
            first,
            last: series.map_or(first, |series| series.last_observed_time.0),
            count: series.map_or(1, |series| u64::try_from(series.count).unwrap_or(1).max(1)),
            properties: properties.collect(),
        };
        let uid = event.metadata.uid.clone()?;
        Some(Self { uid, entry: entry.bounded(), recorded: annotation_of(annotation::RECORDED).is_some() })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use k8s_openapi::api::events::v1::EventSeries;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

    use super::*;

    pub(in crate::serve::report::openreports) fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// An Event: alice edited the Deployment web of the release shop/web at the second `at`.
    pub(in crate::serve::report::openreports) fn event(uid: &str, at: i64, count: i32) -> Event {
        let annotations = [
            ("rule", "manual-edit"),
            ("mode", "audit"),
            ("verdict", "would-deny"),
            ("operation", "UPDATE"),
            ("actor", "alice"),
            ("release", "shop/web"),
            ("object", "apps/v1 Deployment shop/web"),
            ("recorded", "true"),
        ];
        let annotations = annotations.map(|(key, value)| (format!("interlock.dev/{key}"), value.to_owned()));
        let series = EventSeries { count, last_observed_time: MicroTime(second(at + i64::from(count) - 1)) };
        Event {
            metadata: ObjectMeta {
                namespace: Some("shop".into()),
                uid: Some(uid.into()),
                annotations: Some(annotations.into()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(second(at))),
            series: (count > 1).then_some(series),
            note: Some("It is so.".into()),
            reporting_controller: Some(CONTROLLER.into()),
            ..Event::default()
        }
    }

    /// The Event with other annotations.
    pub(in crate::serve::report::openreports) fn with(mut event: Event, changes: &[(&str, &str)]) -> Event {
        let annotations = event.metadata.annotations.get_or_insert_default();
        for (key, value) in changes {
            annotations.insert(format!("interlock.dev/{key}"), (*value).to_owned());
        }
        event
    }

    #[test]
    fn an_event_is_read_with_its_count_and_times() {
        let observed = ObservedEvent::read(&event("e1", 100, 3)).unwrap();
        let entry = &observed.entry;
        assert_eq!((observed.uid.as_str(), observed.recorded, entry.count), ("e1", true, 3));
        assert_eq!((entry.first, entry.last), (second(100), second(102)));
        assert_eq!((entry.outcome, entry.severity), (ReportOutcome::Fail, Severity::Medium));
        assert_eq!(entry.release, ReleaseRef::new("shop", "web"));
        assert_eq!(entry.properties["verdict"], "would-deny");
        let frozen = with(
            event("e1", 1, 1),
            &[("ticket", "OPS-7"), ("freeze", "sale"), ("frozen-until", "2027-01-02T05:00:00Z")],
        );
        let properties = ObservedEvent::read(&frozen).unwrap().entry.properties;
        let values = ["ticket", "freeze", "frozenUntil"].map(|key| properties[key].as_str());
        assert_eq!(values, ["OPS-7", "sale", "2027-01-02T05:00:00Z"]);
        assert_eq!(ObservedEvent::read(&event("e1", 100, 1)).unwrap().entry.count, 1);
    }

    #[test]
    fn an_event_about_a_release_elsewhere_is_ignored() {
        let elsewhere = with(event("e1", 1, 1), &[("release", "other/web")]);
        assert_eq!(ObservedEvent::read(&elsewhere), None);
        let extension = with(event("e1", 1, 1), &[("release", "web")]);
        assert_eq!(ObservedEvent::read(&extension), None);
        let mut in_default = extension;
        in_default.metadata.namespace = Some(CLUSTER_SCOPED_NAMESPACE.into());
        assert_eq!(ObservedEvent::read(&in_default).unwrap().entry.release, ReleaseRef::new("", "web"));
    }

    #[test]
    fn foreign_and_invalid_events_are_skipped() {
        let mut foreign = event("e1", 1, 1);
        foreign.reporting_controller = Some("kubelet".into());
        assert_eq!(ObservedEvent::read(&foreign), None);
        assert_eq!(ObservedEvent::read(&with(event("e1", 1, 1), &[("verdict", "undecided")])), None);
        for (key, value) in [("verdict", "nonsense"), ("rule", "nonsense"), ("mode", "nonsense")] {
            assert_eq!(ObservedEvent::read(&with(event("e1", 1, 1), &[(key, value)])), None, "{key}");
        }
        for key in ["actor", "operation", "override", "ticket", "freeze", "frozen-until", "object", "recorded"] {
            assert!(
                ObservedEvent::read(&with(event("e1", 1, 1), &[(key, &"x".repeat(MAX_ANNOTATION_BYTES))])).is_some(),
                "{key}"
            );
            assert_eq!(
                ObservedEvent::read(&with(event("e1", 1, 1), &[(key, &"x".repeat(MAX_ANNOTATION_BYTES + 1))])),
                None,
                "{key}"
            );
        }
    }

    #[test]
    fn repetitions_add_up_and_keep_the_latest_message() {
        let entry = |at, count| ObservedEvent::read(&event("e", at, count)).unwrap().entry;
        let mut entry_of_100 = ReportEntry { message: "old".into(), ..entry(100, 2) };
        entry_of_100.merge(ReportEntry { message: "new".into(), ..entry(200, 1) });
        assert_eq!((entry_of_100.count, entry_of_100.first, entry_of_100.last), (3, second(100), second(200)));
        assert_eq!(entry_of_100.message, "new");
        entry_of_100.merge(ReportEntry { message: "older".into(), ..entry(50, 1) });
        assert_eq!((entry_of_100.count, entry_of_100.first, entry_of_100.last), (4, second(50), second(200)));
        assert_eq!(entry_of_100.message, "new");
    }

    #[test]
    fn long_messages_are_cut() {
        let mut long = event("e", 1, 1);
        long.note = Some("ä".repeat(600));
        let message = ObservedEvent::read(&long).unwrap().entry.message;
        assert!(message.len() > MAX_MESSAGE_BYTES - 4 && message.len() <= MAX_MESSAGE_BYTES, "{message}");
        assert!(message.ends_with("ä…"), "{message}");
    }

    #[test]
    fn a_forged_event_adds_no_unprintable_text() {
        for key in ["actor", "object", "override", "ticket", "release"] {
            assert_eq!(ObservedEvent::read(&with(event("e1", 1, 1), &[(key, "shop/\u{1b}[2J")])), None, "{key}");
        }
        let mut noted = event("e", 1, 1);
        noted.note = Some("It is\n\u{202e}so.".into());
        assert_eq!(ObservedEvent::read(&noted).unwrap().entry.message, "It is \u{fffd}so.");
    }
}
