//! One line of a report, and what an Event of ours says of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;

use crate::engine::decision::ObjectReference;
use crate::engine::outcome::Verdict;
use crate::engine::policy::Mode;
use crate::engine::release::ReleaseRef;
use crate::engine::rules;
use crate::engine::severity::Severity;
use crate::serve::report::events::{CLUSTER_SCOPED, CONTROLLER, annotation, cut};

/// The longest message, in bytes.
const MESSAGE: usize = 500;

/// The longest annotation, in bytes: ours are shorter, and whoever pretends to be us is not to fill the memory.
const ANNOTATION: usize = 512;

/// What was found of a release: folded over all the times that the same was done to the same object by the same user, or as
/// a scan saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The release.
    pub release: ReleaseRef,
    /// The rule that was broken, or what the scan looked for: `manual-edit`.
    pub check: String,
    /// How bad it is.
    pub severity: Severity,
    /// What it counts as.
    pub outcome: Outcome,
    /// Who did it.
    pub actor: Option<String>,
    /// To which object.
    pub object: Option<ObjectReference>,
    /// The sentence for the reader, at most 500 bytes of it. Nothing of an object's data.
    pub message: String,
    /// The first time.
    pub first: Timestamp,
    /// The last time.
    pub last: Timestamp,
    /// How often.
    pub count: u64,
    /// What else there is to know; `mode` and `verdict` of a rule.
    pub properties: BTreeMap<String, String>,
}

/// What an entry counts as. Reports have no room for what is fine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Refused, or it would have been.
    Fail,
    /// Warned of, or let pass by an override.
    Warn,
}

/// What entries are folded by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    check: String,
    actor: Option<String>,
    object: Option<ObjectReference>,
    outcome: Outcome,
}

impl Entry {
    pub(super) fn key(&self) -> Key {
        let Self { check, actor, object, outcome, .. } = self.clone();
        Key { check, actor, object, outcome }
    }

    /// The same with what is bounded within its bounds.
    pub(super) fn bounded(mut self) -> Self {
        self.message = cut(&self.message, MESSAGE).to_owned();
        self
    }

    /// Adds some more times of the same.
    pub(super) fn merge(&mut self, more: Self) {
        self.count = self.count.saturating_add(more.count);
        self.first = self.first.min(more.first);
        if more.last >= self.last {
            *self = Self { count: self.count, first: self.first, ..more };
        }
    }
}

/// An Event of ours: an entry with the count and the times of that Event alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// Of the Event.
    pub(super) uid: String,
    pub(super) entry: Entry,
    /// Whether the release had records then.
    pub(super) recorded: bool,
}

impl Told {
    /// Reads an Event. `None` for one that is not ours, that says nothing of a release, that says what we would not, or that
    /// speaks of a release of another namespace: whoever may write Events in one namespace is not to be believed of others.
    pub(super) fn read(event: &Event) -> Option<Self> {
        let ours = event.reporting_controller.as_deref() == Some(CONTROLLER);
        let annotations = event.metadata.annotations.as_ref().filter(|_| ours)?;
        if annotation::ALL.iter().filter_map(|key| annotations.get(*key)).any(|value| value.len() > ANNOTATION) {
            return None;
        }
        let told = |key: &str| annotations.get(key).map(String::as_str);
        let release = told(annotation::RELEASE)?;
        let (home, name) = release.split_once('/').unwrap_or(("", release));
        let namespace = event.metadata.namespace.as_deref()?;
        if (if home.is_empty() { CLUSTER_SCOPED } else { home }) != namespace {
            return None;
        }
        let verdict: Verdict = told(annotation::VERDICT)?.parse().ok()?;
        let (outcome, severity) = match verdict {
            Verdict::Denied | Verdict::WouldDeny => (Outcome::Fail, Severity::Medium),
            Verdict::Warned | Verdict::Overridden => (Outcome::Warn, Severity::Low),
            Verdict::Allowed | Verdict::Undecided => return None,
        };
        let rule = told(annotation::RULE).and_then(rules::named)?;
        let modes = [Mode::Off, Mode::Audit, Mode::Warn, Mode::Enforce];
        let mode = modes.into_iter().find(|mode| told(annotation::MODE) == Some(mode.as_str()))?;
        let first = event.event_time.as_ref()?.0;
        let series = event.series.as_ref();
        let properties = [
            ("verdict", Some(verdict.as_str())),
            ("mode", Some(mode.as_str())),
            ("operation", told(annotation::OPERATION)),
            ("override", told(annotation::OVERRIDE)),
        ];
        let properties = properties.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())));
        let entry = Entry {
            release: ReleaseRef::new(home, name),
            check: rule.as_str().to_owned(),
            severity,
            outcome,
            actor: told(annotation::ACTOR).map(str::to_owned),
            object: told(annotation::OBJECT).and_then(|object| object.parse().ok()),
            message: event.note.clone().unwrap_or_default(),
            first,
            last: series.map_or(first, |series| series.last_observed_time.0),
            count: series.map_or(1, |series| u64::try_from(series.count).unwrap_or(1).max(1)),
            properties: properties.collect(),
        };
        let uid = event.metadata.uid.clone()?;
        Some(Self { uid, entry: entry.bounded(), recorded: told(annotation::RECORDED).is_some() })
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

    /// An Event that tells that alice edited the Deployment web of the release shop/web at some second.
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
        let told = Told::read(&event("e1", 100, 3)).unwrap();
        let entry = &told.entry;
        assert_eq!((told.uid.as_str(), told.recorded, entry.count), ("e1", true, 3));
        assert_eq!((entry.first, entry.last), (second(100), second(102)));
        assert_eq!((entry.outcome, entry.severity), (Outcome::Fail, Severity::Medium));
        assert_eq!(entry.release, ReleaseRef::new("shop", "web"));
        assert_eq!(entry.properties["verdict"], "would-deny");
        assert_eq!(Told::read(&event("e1", 100, 1)).unwrap().entry.count, 1);
    }

    #[test]
    fn nobody_is_believed_of_a_release_of_another_namespace() {
        let elsewhere = with(event("e1", 1, 1), &[("release", "other/web")]);
        assert_eq!(Told::read(&elsewhere), None);
        let extension = with(event("e1", 1, 1), &[("release", "web")]);
        assert_eq!(Told::read(&extension), None);
        let mut in_default = extension;
        in_default.metadata.namespace = Some(CLUSTER_SCOPED.into());
        assert_eq!(Told::read(&in_default).unwrap().entry.release, ReleaseRef::new("", "web"));
    }

    #[test]
    fn what_is_not_ours_or_not_worth_a_line_is_skipped() {
        let mut foreign = event("e1", 1, 1);
        foreign.reporting_controller = Some("kubelet".into());
        assert_eq!(Told::read(&foreign), None);
        assert_eq!(Told::read(&with(event("e1", 1, 1), &[("verdict", "undecided")])), None);
        for (key, value) in [("verdict", "nonsense"), ("rule", "nonsense"), ("mode", "nonsense")] {
            assert_eq!(Told::read(&with(event("e1", 1, 1), &[(key, value)])), None, "{key}");
        }
        for key in ["actor", "operation", "override", "object", "recorded"] {
            assert!(Told::read(&with(event("e1", 1, 1), &[(key, &"x".repeat(ANNOTATION))])).is_some(), "{key}");
            assert_eq!(Told::read(&with(event("e1", 1, 1), &[(key, &"x".repeat(ANNOTATION + 1))])), None, "{key}");
        }
    }

    #[test]
    fn more_of_the_same_adds_up_and_the_latest_words_stay() {
        let entry = |at, count| Told::read(&event("e", at, count)).unwrap().entry;
        let mut entry_of_100 = Entry { message: "old".into(), ..entry(100, 2) };
        entry_of_100.merge(Entry { message: "new".into(), ..entry(200, 1) });
        assert_eq!((entry_of_100.count, entry_of_100.first, entry_of_100.last), (3, second(100), second(200)));
        assert_eq!(entry_of_100.message, "new");
        entry_of_100.merge(Entry { message: "older".into(), ..entry(50, 1) });
        assert_eq!((entry_of_100.count, entry_of_100.first, entry_of_100.last), (4, second(50), second(200)));
        assert_eq!(entry_of_100.message, "new");
    }

    #[test]
    fn long_messages_are_cut() {
        let mut long = event("e", 1, 1);
        long.note = Some("ä".repeat(600));
        assert_eq!(Told::read(&long).unwrap().entry.message.len(), MESSAGE);
    }
}
