//! The Event of a series. The Event contains no data of the object, because more people can read Events than Secrets. Its texts come from a
//! [`Decision`](interlock_engine::decision::Decision), so they are printable and bounded.
//!
//! The Event is in the namespace of the release's records. The leader trusts it only there, because anybody with the right to write Events in
//! a namespace can write one.
//!
//! The Event regards the changed object if that object exists in the same namespace, so that `kubectl describe` shows the Event there.
//! Otherwise it regards the newest record of the release.

use std::collections::BTreeMap;

use interlock_engine::decision;
use interlock_engine::outcome::Verdict;
use interlock_engine::review::Operation;
use interlock_engine::rule::RuleId;
use interlock_engine::text::into_printable;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use super::annotation::{self, CONTROLLER};
use super::series::OpenSeries;
use super::series_key::SeriesKey;
use crate::cluster_name::ClusterName;
use crate::serve::ownership::own_and;
use crate::world::NewestRecord;

/// The longest note that the API server accepts, in bytes.
pub(crate) const MAX_NOTE_BYTES: usize = 1024;

/// The longest name of a reporting instance, in bytes.
const MAX_INSTANCE_BYTES: usize = 128;

/// The namespace of Events about cluster-scoped objects.
pub(crate) const CLUSTER_SCOPED_NAMESPACE: &str = "default";

/// Who writes Events.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    /// The replica.
    pub(crate) instance: String,
    pub(crate) cluster: Option<ClusterName>,
}

/// The Event with a name and the labels of its Namespace. Interlock's own label wins.
pub(super) fn event(
    key: &SeriesKey,
    live: &OpenSeries,
    record: Option<&NewestRecord>,
    (name, labels): (String, BTreeMap<String, String>),
    by: &Writer,
) -> Event {
    let (regarding, related) = references(key, record);
    let namespace = regarding.namespace.clone().unwrap_or_else(|| CLUSTER_SCOPED_NAMESPACE.to_owned());
    let metadata = ObjectMeta {
        name: Some(name),
        namespace: Some(namespace),
        labels: Some(own_and(labels)),
        annotations: Some(annotations(key, record.is_some(), by.cluster.as_ref())),
        ..ObjectMeta::default()
    };
    Event {
        metadata,
        action: Some(action(key.verdict).to_owned()),
        reason: Some(camel(key.rule)),
        type_: Some(if key.verdict == Verdict::Overridden { "Normal" } else { "Warning" }.to_owned()),
        note: Some(note(key, &live.message)),
        event_time: Some(MicroTime(live.first)),
        regarding: Some(regarding),
        related,
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(instance(&by.instance)),
        series: (live.count > 1).then(|| series(live)),
        ..Event::default()
    }
}

/// The name of a replica, as far as the API server accepts it.
pub(crate) fn instance(name: &str) -> String {
    name[..name.floor_char_boundary(MAX_INSTANCE_BYTES)].to_owned()
}

/// How often the finding was made.
pub(super) fn series(live: &OpenSeries) -> EventSeries {
    EventSeries { count: live.count, last_observed_time: MicroTime(live.last) }
}

fn annotations(key: &SeriesKey, has_record: bool, cluster: Option<&ClusterName>) -> BTreeMap<String, String> {
    let SeriesKey { rule, mode, verdict, operation, actor, release, object, overridden, ticket, frozen, .. } = key;
    let until = frozen.as_ref().and_then(|frozen| frozen.until);
    let found = [
        (annotation::RULE, Some(rule.to_string())),
        (annotation::MODE, Some(mode.as_str().to_owned())),
        (annotation::VERDICT, Some(verdict.to_string())),
        (annotation::OPERATION, Some(operation.as_str().to_owned())),
        (annotation::ACTOR, Some(actor.clone())),
        (annotation::RELEASE, release.as_ref().map(|release| release.to_string())),
        (annotation::OBJECT, object.as_ref().map(decision::ObjectReference::to_string)),
        (annotation::OVERRIDE, overridden.clone()),
        (annotation::TICKET, ticket.clone()),
        (annotation::FREEZE, frozen.as_ref().map(|frozen| frozen.name.clone())),
        (annotation::FROZEN_UNTIL, until.map(|until| until.to_string())),
        (annotation::CLUSTER, cluster.map(ClusterName::to_string)),
        (annotation::RECORDED, has_record.then(|| "true".to_owned())),
    ];
    found.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// The regarded object and the related one.
fn references(key: &SeriesKey, record: Option<&NewestRecord>) -> (ObjectReference, Option<ObjectReference>) {
    let home = key.release.as_ref().map(|release| release.namespace.as_str()).filter(|home| !home.is_empty());
    let refused_creation = key.operation == Operation::Create && key.verdict == Verdict::Denied;
    let object = key.object.as_ref().filter(|object| !object.name.is_empty());
    let touched = object.map(|object| reference(object, &key.object_uid));
    let at_home = object.filter(|object| home.is_none_or(|home| home == object.namespace));
    // A ClusterExtension has no namespace. Its records are in a namespace of OLM.
    let record = record.filter(|record| home.is_none_or(|home| home == record.namespace)).map(of_record);
    match (touched, record) {
        (Some(touched), Some(record)) if touched.name == record.name => (touched, None),
        (Some(touched), Some(record)) if home.is_some() && (at_home.is_none() || refused_creation) => {
            (record, Some(touched))
        }
        (Some(touched), record) if at_home.is_some() || home.is_none() => (touched, record),
        (touched, Some(record)) => (record, touched),
        (touched, None) => (of_namespace(home.unwrap_or(CLUSTER_SCOPED_NAMESPACE)), touched),
    }
}

fn reference(object: &decision::ObjectReference, uid: &str) -> ObjectReference {
    let decision::ObjectReference { api_version, kind, namespace, name } = object;
    ObjectReference {
        api_version: non_empty(api_version),
        kind: non_empty(kind),
        namespace: non_empty(namespace),
        name: non_empty(name),
        uid: non_empty(uid),
        ..ObjectReference::default()
    }
}

fn non_empty(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn of_record(record: &NewestRecord) -> ObjectReference {
    let object = decision::ObjectReference {
        api_version: "v1".to_owned(),
        kind: record.storage.kind().to_owned(),
        namespace: record.namespace.clone(),
        name: record.entry.name.clone(),
    };
    reference(&object, &record.entry.uid)
}

/// The Namespace, with its own name as its namespace: an Event must be in the namespace of the regarded object.
fn of_namespace(name: &str) -> ObjectReference {
    let object = decision::ObjectReference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: name.to_owned(),
        name: name.to_owned(),
    };
    reference(&object, "")
}

fn action(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Denied => "Refused",
        Verdict::Overridden => "Overridden",
        Verdict::Warned => "Warned",
        Verdict::WouldDeny | Verdict::Undecided | Verdict::Allowed => "Audited",
    }
}

fn note(key: &SeriesKey, message: &str) -> String {
    let actor = &key.actor;
    let ticket = key.ticket.as_ref().map(|ticket| format!(" (ticket {ticket})")).unwrap_or_default();
    let head = match (&key.overridden, key.verdict) {
        (Some(by), _) => format!("The override {by}{ticket} allowed {actor} to do this: "),
        (None, Verdict::Denied) => format!("{actor} was denied: "),
        (None, Verdict::Warned) => format!("{actor} was warned: "),
        (None, _) => format!("{actor} would be denied: "),
    };
    into_printable(head + message, MAX_NOTE_BYTES)
}

/// `manual-edit` as `ManualEdit`.
fn camel(rule: RuleId) -> String {
    rule.as_str().split('-').map(capitalized).collect()
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_ascii_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use interlock_engine::decision::fixtures::{decision, finding};
    use interlock_engine::release::{Entry, ReleaseRef, Status, Storage};
    use interlock_engine::rule::Mode;
    use interlock_engine::violation::Frozen;
    use jiff::Timestamp;

    use super::*;
    use crate::serve::report::events::series::SeriesTable;

    fn key(mode: Mode) -> SeriesKey {
        let decision = decision(vec![finding(RuleId::known("manual-edit"), mode)]);
        SeriesKey::of(&decision, &decision.findings[0]).unwrap()
    }

    fn record() -> NewestRecord {
        let entry = Entry::of_web(3, Status::Deployed);
        NewestRecord { storage: Storage::Secret, namespace: "shop".into(), entry }
    }

    fn written(key: &SeriesKey, record: Option<&NewestRecord>, message: &str, times: i32) -> Event {
        let (mut series, now) = (SeriesTable::new(), Instant::now());
        for second in 1..=times {
            let at = Timestamp::from_second(second.into()).unwrap();
            series.observe(key.clone(), message.to_owned(), at, now);
        }
        let (_, live) = series.due(now).remove(0);
        let labels = [("team", "blue"), ("app.kubernetes.io/managed-by", "Helm")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        event(
            key,
            &live,
            record,
            ("e1".into(), labels.into()),
            &Writer { instance: "pod-1".into(), cluster: "prod-eu".parse().ok() },
        )
    }

    /// The namespace of the Event, then kind and name of the regarded and of the related object.
    fn about(key: &SeriesKey, record: Option<&NewestRecord>) -> (String, String, String) {
        let event = written(key, record, "It is so.", 1);
        let shown = |reference: Option<ObjectReference>| {
            let shown = reference.map(|it| format!("{}/{}", it.kind.unwrap_or_default(), it.name.unwrap_or_default()));
            shown.unwrap_or_default()
        };
        (event.metadata.namespace.unwrap_or_default(), shown(event.regarding), shown(event.related))
    }

    #[test]
    fn an_event_shows_user_operation_and_verdict() {
        let event = written(&key(Mode::Enforce), Some(&record()), "It is so.", 1);
        assert_eq!(event.reason.as_deref(), Some("ManualEdit"));
        assert_eq!(event.action.as_deref(), Some("Refused"));
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        assert_eq!(event.note.as_deref(), Some("alice was denied: It is so."));
        assert_eq!(event.reporting_instance.as_deref(), Some("pod-1"));
        assert_eq!(event.regarding.unwrap().uid.as_deref(), Some("d1"));
        assert_eq!(event.series, None);
        let labels = event.metadata.labels.unwrap();
        assert_eq!(labels, own_and([("team".to_owned(), "blue".to_owned())].into()));
        assert_eq!(labels["app.kubernetes.io/managed-by"], "interlock");
        let annotations: Vec<_> = event.metadata.annotations.unwrap().into_iter().collect();
        let annotations: Vec<_> = annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let expected = [
            ("interlock.dev/actor", "alice"),
            ("interlock.dev/cluster", "prod-eu"),
            ("interlock.dev/mode", "enforce"),
            ("interlock.dev/object", "apps/v1 Deployment shop/web"),
            ("interlock.dev/operation", "UPDATE"),
            ("interlock.dev/recorded", "true"),
            ("interlock.dev/release", "shop/web"),
            ("interlock.dev/rule", "manual-edit"),
            ("interlock.dev/verdict", "denied"),
        ];
        assert_eq!(annotations, expected);
    }

    #[test]
    fn every_verdict_has_its_action() {
        let shown = |key: &SeriesKey| {
            let event = written(key, None, "It is so.", 1);
            [event.action, event.type_, event.note].map(Option::unwrap_or_default).join("|")
        };
        assert_eq!(shown(&key(Mode::Warn)), "Warned|Warning|alice was warned: It is so.");
        assert_eq!(shown(&key(Mode::Audit)), "Audited|Warning|alice would be denied: It is so.");
        let verdict = Verdict::Overridden;
        let overridden = SeriesKey { verdict, overridden: Some("shop/fix".into()), ..key(Mode::Enforce) };
        let note = "The override shop/fix allowed alice to do this: It is so.";
        assert_eq!(shown(&overridden), format!("Overridden|Normal|{note}"));
        let ticketed = SeriesKey { ticket: Some("OPS-7".into()), ..overridden };
        let note = "The override shop/fix (ticket OPS-7) allowed alice to do this: It is so.";
        assert_eq!(shown(&ticketed), format!("Overridden|Normal|{note}"));
        let annotations = written(&ticketed, None, "It is so.", 1).metadata.annotations.unwrap();
        assert_eq!(annotations["interlock.dev/ticket"], "OPS-7");
    }

    #[test]
    fn the_event_of_a_freeze_names_it_and_its_end() {
        let frozen = |until: Option<Timestamp>| {
            let frozen = Some(Frozen { name: "year-end".into(), until });
            let event = written(&SeriesKey { frozen, ..key(Mode::Enforce) }, None, "It is so.", 1);
            let annotations = event.metadata.annotations.unwrap();
            [annotation::FREEZE, annotation::FROZEN_UNTIL].map(|key| annotations.get(key).cloned().unwrap_or_default())
        };
        assert_eq!(frozen(Some(Timestamp::UNIX_EPOCH)), ["year-end", "1970-01-01T00:00:00Z"]);
        assert_eq!(frozen(None), ["year-end", ""]);
    }

    #[test]
    fn an_event_is_with_the_release_and_regards_existing_objects() {
        let (here, record) = (key(Mode::Enforce), record());
        let newest = record.entry.name.as_str();
        let shown = |namespace: &str, regarding: &str, related: &str| {
            (namespace.to_owned(), regarding.to_owned(), related.to_owned())
        };
        let secret = format!("Secret/{newest}");
        assert_eq!(about(&here, Some(&record)), shown("shop", "Deployment/web", &secret));
        assert_eq!(about(&here, None), shown("shop", "Deployment/web", ""));
        let creation = SeriesKey { operation: Operation::Create, ..here.clone() };
        assert_eq!(about(&creation, Some(&record)), shown("shop", &secret, "Deployment/web"));
        assert_eq!(about(&creation, None), shown("shop", "Deployment/web", ""));
        let elsewhere = |namespace: &str| {
            let object =
                here.object.clone().map(|object| decision::ObjectReference { namespace: namespace.into(), ..object });
            SeriesKey { object, ..here.clone() }
        };
        for namespace in ["front", ""] {
            let touched = elsewhere(namespace);
            assert_eq!(about(&touched, Some(&record)), shown("shop", &secret, "Deployment/web"));
            assert_eq!(about(&touched, None), shown("shop", "Namespace/shop", "Deployment/web"));
        }
        let extension = SeriesKey { release: Some(ReleaseRef::new("", "web")), ..elsewhere("") };
        assert_eq!(about(&extension, Some(&record)), shown(CLUSTER_SCOPED_NAMESPACE, "Deployment/web", &secret));
        let itself = here.object.clone().map(|object| decision::ObjectReference {
            name: newest.into(),
            kind: "Secret".into(),
            ..object
        });
        assert_eq!(about(&SeriesKey { object: itself, ..here }, Some(&record)), shown("shop", &secret, ""));
    }

    #[test]
    fn retries_of_a_sveltos_commit_are_one_series() {
        let tried = |uid: &str| {
            let object = decision::ObjectReference {
                api_version: "config.projectsveltos.io/v1beta1".into(),
                kind: "ClusterSummary".into(),
                namespace: "civ".into(),
                name: "shop-sveltos-prod".into(),
            };
            let mut decision = decision(vec![finding(RuleId::known("dropped-bundles"), Mode::Enforce)]);
            decision.uid = uid.into();
            decision.name = format!("config-{uid}");
            decision.release = Some(ReleaseRef::new("civ", "shop-sveltos-prod.helm"));
            decision.operation = Operation::Create;
            decision.object = Some(object);
            decision.object_uid = String::new();
            SeriesKey::of(&decision, &decision.findings[0]).unwrap()
        };
        assert_eq!(tried("a"), tried("b"));
        assert_eq!(about(&tried("a"), None), ("civ".into(), "ClusterSummary/shop-sveltos-prod".into(), String::new()));
    }

    #[test]
    fn repeats_are_a_series_and_notes_are_cut_between_characters() {
        let event = written(&key(Mode::Enforce), None, &"ä".repeat(MAX_NOTE_BYTES), 3);
        let series = event.series.unwrap();
        assert_eq!((series.count, series.last_observed_time.0.as_second()), (3, 3));
        assert_eq!(event.event_time.unwrap().0.as_second(), 1);
        let note = event.note.unwrap();
        assert!(note.len() <= MAX_NOTE_BYTES && note.len() > MAX_NOTE_BYTES - 4, "{}", note.len());
    }
}
