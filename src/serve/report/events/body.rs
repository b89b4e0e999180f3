//! The Event of a happening. Nothing of the object itself: Events are read by more people than Secrets are.
//!
//! It lies in the namespace of the release's records, because that is where the leader believes it: an Event can be written
//! by anybody who has the right in that namespace. It regards the object that was touched, so that `kubectl describe` shows
//! it there, where that lies in the same namespace and exists; otherwise the newest record of the release.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use super::happening::Happening;
use super::series::Live;
use super::{CONTROLLER, annotation};
use crate::engine::decision;
use crate::engine::outcome::Verdict;
use crate::engine::review::Operation;
use crate::engine::rules::RuleId;
use crate::serve::report::MANAGED_BY;
use crate::world::Newest;

/// The longest note that the API server takes, in bytes.
const NOTE: usize = 1024;

/// The longest name of a reporting instance, in bytes.
const INSTANCE: usize = 128;

/// The longest name of a user that is told, in bytes.
const ACTOR: usize = 256;

/// Where Events about cluster-scoped objects lie.
pub(in crate::serve::report) const CLUSTER_SCOPED: &str = "default";

/// The whole Event. `name` is its own.
pub(super) fn event(happening: &Happening, live: &Live, record: Option<&Newest>, name: String, by: &str) -> Event {
    let (regarding, related) = references(happening, record);
    let namespace = regarding.namespace.clone().unwrap_or_else(|| CLUSTER_SCOPED.to_owned());
    let metadata = ObjectMeta {
        name: Some(name),
        namespace: Some(namespace),
        labels: Some(BTreeMap::from([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())])),
        annotations: Some(annotations(happening, record.is_some())),
        ..ObjectMeta::default()
    };
    Event {
        metadata,
        action: Some(action(happening.verdict).to_owned()),
        reason: Some(camel(happening.rule)),
        type_: Some(if happening.verdict == Verdict::Overridden { "Normal" } else { "Warning" }.to_owned()),
        note: Some(note(happening, &live.message)),
        event_time: Some(MicroTime(live.first)),
        regarding: Some(regarding),
        related,
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(cut(by, INSTANCE).to_owned()),
        series: (live.count > 1).then(|| series(live)),
        ..Event::default()
    }
}

/// How often it has happened.
pub(super) fn series(live: &Live) -> EventSeries {
    EventSeries { count: live.count, last_observed_time: MicroTime(live.last) }
}

fn annotations(happening: &Happening, has_record: bool) -> BTreeMap<String, String> {
    let Happening { rule, mode, verdict, operation, actor, release, object, overridden, .. } = happening;
    let found = [
        (annotation::RULE, Some(rule.to_string())),
        (annotation::MODE, Some(mode.as_str().to_owned())),
        (annotation::VERDICT, Some(verdict.to_string())),
        (annotation::OPERATION, Some(operation.as_str().to_owned())),
        (annotation::ACTOR, Some(cut(actor, ACTOR).to_owned())),
        (annotation::RELEASE, release.as_ref().map(|release| release.to_string())),
        (annotation::OBJECT, object.as_ref().map(decision::ObjectReference::to_string)),
        (annotation::OVERRIDE, overridden.clone()),
        (annotation::RECORDED, has_record.then(|| "true".to_owned())),
    ];
    found.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// What it regards, and what else is related.
fn references(happening: &Happening, record: Option<&Newest>) -> (ObjectReference, Option<ObjectReference>) {
    let home = happening.release.as_ref().map(|release| release.namespace.as_str()).filter(|home| !home.is_empty());
    let refused_creation = happening.operation == Operation::Create && happening.verdict == Verdict::Denied;
    let object = happening.object.as_ref().filter(|object| !object.name.is_empty());
    let touched = object.map(|object| reference(object, &happening.object_uid));
    let at_home = object.filter(|object| home.is_none_or(|home| home == object.namespace));
    // Of an extension the record lies in a namespace of OLM's, while it has none itself.
    let record = record.filter(|record| home.is_none_or(|home| home == record.namespace)).map(of_record);
    match (touched, record) {
        (Some(touched), Some(record)) if touched.name == record.name => (touched, None),
        (Some(touched), Some(record)) if home.is_some() && (at_home.is_none() || refused_creation) => {
            (record, Some(touched))
        }
        (Some(touched), record) if at_home.is_some() || home.is_none() => (touched, record),
        (touched, Some(record)) => (record, touched),
        (touched, None) => (of_namespace(home.unwrap_or(CLUSTER_SCOPED)), touched),
    }
}

fn reference(object: &decision::ObjectReference, uid: &str) -> ObjectReference {
    let decision::ObjectReference { api_version, kind, namespace, name } = object;
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ObjectReference {
        api_version: given(api_version),
        kind: given(kind),
        namespace: given(namespace),
        name: given(name),
        uid: given(uid),
        ..ObjectReference::default()
    }
}

fn of_record(record: &Newest) -> ObjectReference {
    let object = decision::ObjectReference {
        api_version: "v1".to_owned(),
        kind: record.storage.kind().to_owned(),
        namespace: record.namespace.clone(),
        name: record.entry.name.clone(),
    };
    reference(&object, &record.entry.uid)
}

/// The namespace itself, told as if it lay in itself: an Event must lie where what it regards does.
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

fn note(happening: &Happening, message: &str) -> String {
    let head = match (&happening.overridden, happening.verdict) {
        (Some(by), _) => format!("The override {by} let {} do this: ", cut(&happening.actor, ACTOR)),
        (None, Verdict::Denied) => format!("Refused to {}: ", cut(&happening.actor, ACTOR)),
        (None, Verdict::Warned) => format!("{} was warned: ", cut(&happening.actor, ACTOR)),
        (None, _) => format!("Would be refused to {}: ", cut(&happening.actor, ACTOR)),
    };
    cut(&(head + message), NOTE).to_owned()
}

/// `manual-edit` as `ManualEdit`.
fn camel(rule: RuleId) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    };
    rule.as_str().split('-').map(word).collect()
}

/// At most so many bytes of a text, whole characters.
pub(in crate::serve::report) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use jiff::Timestamp;

    use super::*;
    use crate::engine::decision::tests::{decision, finding};
    use crate::engine::policy::Mode;
    use crate::engine::release::{Entry, ReleaseRef, Status, Storage};
    use crate::serve::report::events::series::Series;

    fn happening(mode: Mode) -> Happening {
        let decision = decision(vec![finding(RuleId::known("manual-edit"), mode)]);
        Happening::of(&decision, &decision.findings[0]).unwrap()
    }

    fn record() -> Newest {
        let entry = Entry::of_web(3, Status::Deployed);
        Newest { storage: Storage::Secret, namespace: "shop".into(), entry }
    }

    fn written(happening: &Happening, record: Option<&Newest>, message: &str, times: i32) -> Event {
        let (mut series, now) = (Series::new(Instant::now()), Instant::now());
        for second in 1..=times {
            let at = Timestamp::from_second(second.into()).unwrap();
            series.observe(happening.clone(), message.to_owned(), at, now);
        }
        let (_, live) = series.due(now).remove(0);
        event(happening, &live, record, "e1".into(), "pod-1")
    }

    /// Namespace of the Event, then kind and name of what it regards and of what is related.
    fn about(happening: &Happening, record: Option<&Newest>) -> (String, String, String) {
        let event = written(happening, record, "It is so.", 1);
        let told = |reference: Option<ObjectReference>| {
            let told = reference.map(|it| format!("{}/{}", it.kind.unwrap_or_default(), it.name.unwrap_or_default()));
            told.unwrap_or_default()
        };
        (event.metadata.namespace.unwrap_or_default(), told(event.regarding), told(event.related))
    }

    #[test]
    fn an_event_says_who_did_what_and_what_became_of_it() {
        let event = written(&happening(Mode::Enforce), Some(&record()), "It is so.", 1);
        assert_eq!(event.reason.as_deref(), Some("ManualEdit"));
        assert_eq!(event.action.as_deref(), Some("Refused"));
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        assert_eq!(event.note.as_deref(), Some("Refused to alice: It is so."));
        assert_eq!(event.reporting_instance.as_deref(), Some("pod-1"));
        assert_eq!(event.regarding.unwrap().uid.as_deref(), Some("d1"));
        assert_eq!(event.series, None);
        let annotations: Vec<_> = event.metadata.annotations.unwrap().into_iter().collect();
        let annotations: Vec<_> = annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let expected = [
            ("interlock.dev/actor", "alice"),
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
        let told = |happening: &Happening| {
            let event = written(happening, None, "It is so.", 1);
            [event.action, event.type_, event.note].map(Option::unwrap_or_default).join("|")
        };
        assert_eq!(told(&happening(Mode::Warn)), "Warned|Warning|alice was warned: It is so.");
        assert_eq!(told(&happening(Mode::Audit)), "Audited|Warning|Would be refused to alice: It is so.");
        let verdict = Verdict::Overridden;
        let overridden = Happening { verdict, overridden: Some("shop/fix".into()), ..happening(Mode::Enforce) };
        let note = "The override shop/fix let alice do this: It is so.";
        assert_eq!(told(&overridden), format!("Overridden|Normal|{note}"));
    }

    #[test]
    fn it_lies_with_the_release_and_regards_what_exists_there() {
        let (here, record) = (happening(Mode::Enforce), record());
        let newest = record.entry.name.as_str();
        let told = |namespace: &str, regarding: &str, related: &str| {
            (namespace.to_owned(), regarding.to_owned(), related.to_owned())
        };
        let secret = format!("Secret/{newest}");
        assert_eq!(about(&here, Some(&record)), told("shop", "Deployment/web", &secret));
        assert_eq!(about(&here, None), told("shop", "Deployment/web", ""));
        let creation = Happening { operation: Operation::Create, ..here.clone() };
        assert_eq!(about(&creation, Some(&record)), told("shop", &secret, "Deployment/web"));
        assert_eq!(about(&creation, None), told("shop", "Deployment/web", ""));
        let elsewhere = |namespace: &str| {
            let object =
                here.object.clone().map(|object| decision::ObjectReference { namespace: namespace.into(), ..object });
            Happening { object, ..here.clone() }
        };
        for namespace in ["front", ""] {
            let touched = elsewhere(namespace);
            assert_eq!(about(&touched, Some(&record)), told("shop", &secret, "Deployment/web"));
            assert_eq!(about(&touched, None), told("shop", "Namespace/shop", "Deployment/web"));
        }
        let extension = Happening { release: Some(ReleaseRef::new("", "web")), ..elsewhere("") };
        assert_eq!(about(&extension, Some(&record)), told(CLUSTER_SCOPED, "Deployment/web", &secret));
        let itself = here.object.clone().map(|object| decision::ObjectReference {
            name: newest.into(),
            kind: "Secret".into(),
            ..object
        });
        assert_eq!(about(&Happening { object: itself, ..here }, Some(&record)), told("shop", &secret, ""));
    }

    #[test]
    fn repeats_are_a_series_and_notes_are_cut_between_characters() {
        let event = written(&happening(Mode::Enforce), None, &"ä".repeat(NOTE), 3);
        let series = event.series.unwrap();
        assert_eq!((series.count, series.last_observed_time.0.as_second()), (3, 3));
        assert_eq!(event.event_time.unwrap().0.as_second(), 1);
        let note = event.note.unwrap();
        assert!(note.len() <= NOTE && note.len() > NOTE - 4, "{}", note.len());
    }
}
