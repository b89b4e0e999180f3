//! The writes of records in audit events, and of objects that carry their operation themselves.

use std::borrow::Cow;
use std::collections::BTreeMap;

use interlock_engine::decision::{Groups, TransitionOutcome};
use interlock_engine::json::redacted;
use interlock_engine::owners::{CARRIERS, OperationTrace};
use interlock_engine::release::record::chart_at_start;
use interlock_engine::release::{RecordName, ReleaseRef, Stamps, Status, Storage, Stored};
use interlock_engine::review::Operation;
use interlock_engine::text::{into_printable, printable_name};
use jiff::Timestamp;

use crate::inspect::changes::ChangedRelease;
use crate::offline::log::{AuditEvent, ObjectReference};

/// The suffixes of the annotations that Interlock adds to events. Each key starts with the name of a webhook.
const VERDICT_KEY: &str = ".interlock.dev/verdict";
const OVERRIDE_KEY: &str = ".interlock.dev/override";
const TICKET_KEY: &str = ".interlock.dev/ticket";

/// The longest list of groups in JSON, in bytes: as long as a table cell.
const MAX_GROUPS_BYTES: usize = 8 * 1024;

/// The longest other text, in bytes. Interlock's annotations have at most 1 KiB.
const MAX_VALUE_BYTES: usize = 1024;

/// A write of a record, or of an object that carries its operation itself. Every text is bounded.
#[derive(Debug, Clone)]
pub(super) struct RecordWrite {
    pub(super) time: Timestamp,
    pub(super) release: ChangedRelease,
    pub(super) operation: Operation,
    /// The stored status. `None` for a deletion, and if the event has no objects.
    pub(super) status: Option<Status>,
    /// What an object without records says of its operations. `None` for a deletion, and if the event has no objects.
    pub(super) trace: Option<Box<OperationTrace>>,
    pub(super) user: String,
    pub(super) groups: Groups,
    pub(super) holder: Option<String>,
    pub(super) chart: Option<String>,
    pub(super) overridden: Option<String>,
    pub(super) ticket: Option<String>,
    pub(super) outcome: TransitionOutcome,
}

type Annotations<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;

impl AuditEvent<'_> {
    /// The writes of records in the event. The deletion of a collection has several.
    pub(super) fn record_writes(&self) -> Result<Vec<RecordWrite>, String> {
        let (Some((reference, kind)), Some(operation)) = (self.subject(), self.operation()) else {
            return Ok(Vec::new());
        };
        let annotations = self.annotations.map(|raw| serde_json::from_str::<Annotations<'_>>(raw.get()));
        let annotations = annotations.transpose().map_err(|error| format!("its annotations: {}", redacted(&error)))?;
        let annotations = annotations.unwrap_or_default();
        let outcome = match annotation(&annotations, VERDICT_KEY) {
            Some("denied") if self.is_refused() => TransitionOutcome::Refused,
            // Other failures and refusals say nothing about releases.
            _ if self.is_refused() => return Ok(Vec::new()),
            Some("warned" | "undecided") => TransitionOutcome::Warned,
            _ => TransitionOutcome::Allowed,
        };
        let time = self.received()?;
        let write = |release| self.record_write(time, release, operation, outcome, &annotations);
        if self.is_of_collection() {
            let deleted = self.deleted_objects()?.and_then(|list| list.items).unwrap_or_default();
            let stored = deleted.into_iter().filter_map(|item| Stored::read(item.into()).ok());
            let releases = stored.filter_map(|stored| changed(&reference.namespace, &stored.metadata.name, kind));
            return Ok(releases.map(write).collect());
        }
        let answered = self.response_object.filter(|_| !self.is_refused());
        let text = answered.or(self.sent_object());
        let object = text.and_then(|raw| Stored::read(raw.into()).ok());
        let name = object.as_ref().map_or("", |object| object.metadata.name.as_ref());
        let name = if reference.name.is_empty() { name } else { reference.name.as_ref() };
        let Some(release) = changed(&reference.namespace, name, kind) else { return Ok(Vec::new()) };
        let carrier = release.carrier();
        if carrier.is_some() && !self.may_change_operation() {
            return Ok(Vec::new());
        }
        let mut write = write(release);
        match (carrier, object) {
            _ if operation == Operation::Delete => {}
            (None, Some(object)) => object.storage(kind).into_iter().for_each(|storage| write.add(storage, &object)),
            (None, None) => {}
            // A refused patch shows what it would have started.
            (Some(carrier), _) => {
                let text = text.or(self.request_object.filter(|_| self.is_refused()));
                write.trace = text.and_then(|text| carrier.trace(text.get()).ok()).map(Box::new);
            }
        }
        Ok(vec![write])
    }

    /// Whether the write of an object that carries its operation may start or end one. Its controller patches other parts of the status
    /// again and again.
    fn may_change_operation(&self) -> bool {
        let patch = self.request_object.filter(|_| self.sent_object().is_none());
        patch.is_none_or(|patch| patch.get().contains("operation\""))
    }

    /// The object and its kind, if the event is the end of a write of a possible record, or of an object that carries its operation.
    fn subject(&self) -> Option<(&ObjectReference<'_>, &'static str)> {
        let reference = self.object_ref.as_ref()?;
        let kind = match (reference.api_group.as_ref(), reference.resource.as_ref()) {
            ("", "secrets") => "Secret",
            ("", "configmaps") => "ConfigMap",
            (group, plural) => CARRIERS.iter().find(|it| it.group == group && it.plural == plural)?.kind,
        };
        (reference.subresource.is_empty() && self.has_ended() && !self.is_dry_run()).then_some((reference, kind))
    }

    fn record_write(
        &self,
        time: Timestamp,
        release: ChangedRelease,
        operation: Operation,
        outcome: TransitionOutcome,
        annotations: &Annotations<'_>,
    ) -> RecordWrite {
        let user = self.account();
        let groups = user.map(|user| Groups::of(user.groups.iter().map(AsRef::as_ref), MAX_GROUPS_BYTES));
        let annotated = |key| annotation(annotations, key).map(|text| into_printable(text.to_owned(), MAX_VALUE_BYTES));
        RecordWrite {
            time,
            release,
            operation,
            status: None,
            trace: None,
            user: user.map(|user| printable_name(&user.username)).unwrap_or_default(),
            groups: groups.unwrap_or_default(),
            holder: None,
            chart: None,
            overridden: annotated(OVERRIDE_KEY),
            ticket: annotated(TICKET_KEY),
            outcome,
        }
    }
}

/// The annotation whose key ends with a suffix.
fn annotation<'a>(annotations: &'a Annotations<'_>, end: &str) -> Option<&'a str> {
    annotations.iter().find(|(key, _)| key.ends_with(end)).map(|(_, value)| value.as_ref())
}

impl RecordWrite {
    pub(super) fn is_refused(&self) -> bool {
        self.outcome == TransitionOutcome::Refused
    }

    /// Adds the details of the stored record.
    fn add(&mut self, storage: Storage, object: &Stored<'_>) {
        let stamps = Stamps::of(|key| object.metadata.annotation(key).map(str::to_owned));
        self.status = object.metadata.label("status").and_then(|status| status.parse().ok());
        self.holder = stamps.holder().map(printable_name);
        let stamped = stamps.chart().map(str::to_owned);
        let chart = match self.operation {
            Operation::Create => stamped.or_else(|| chart_at_start(storage, &object.data)),
            // Later writes of a revision have the same chart.
            _ => stamped,
        };
        self.chart = chart.map(|chart| into_printable(chart, MAX_VALUE_BYTES));
    }
}

/// What is changed, from the name and the kind of an object. A record names the revision of a release.
fn changed(namespace: &str, name: &str, kind: &'static str) -> Option<ChangedRelease> {
    if let Some(carrier) = CARRIERS.iter().find(|carrier| carrier.kind == kind) {
        return (!name.is_empty()).then(|| ChangedRelease::of_object(carrier, ReleaseRef::new(namespace, name)));
    }
    let RecordName { release, revision } = name.parse().ok()?;
    let (namespace, release) = (namespace.to_owned(), release.as_str().to_owned());
    Some(ChangedRelease { namespace, release, revision: Some(revision.0), storage: kind })
}
