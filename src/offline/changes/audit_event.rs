//! The writes of records in audit events.

use std::borrow::Cow;
use std::collections::BTreeMap;

use interlock_engine::decision::{Groups, TransitionOutcome};
use interlock_engine::release::record::chart_at_start;
use interlock_engine::release::{RecordName, Stamps, Status, Storage, Stored};
use interlock_engine::review::UserInfo;
use interlock_engine::text::{into_printable, printable_name};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::inspect::changes::ChangedRelease;

/// The stage at which the result of a request is known.
const ENDED: &str = "ResponseComplete";

/// The suffixes of the annotations that Interlock adds to events. Each key starts with the name of a webhook.
const VERDICT_KEY: &str = ".interlock.dev/verdict";
const OVERRIDE_KEY: &str = ".interlock.dev/override";
const TICKET_KEY: &str = ".interlock.dev/ticket";

/// The longest list of groups in JSON, in bytes: as long as a table cell.
const MAX_GROUPS_BYTES: usize = 8 * 1024;

/// The longest other text, in bytes. Interlock's annotations have at most 1 KiB.
const MAX_VALUE_BYTES: usize = 1024;

/// A write of a record. Every text is bounded.
#[derive(Debug, Clone)]
pub(super) struct Observation {
    pub(super) time: Timestamp,
    pub(super) release: ChangedRelease,
    pub(super) act: Act,
    /// The stored status. `None` for a deletion, and if the event has no objects.
    pub(super) status: Option<Status>,
    pub(super) user: String,
    pub(super) groups: Groups,
    pub(super) holder: Option<String>,
    pub(super) chart: Option<String>,
    pub(super) overridden: Option<String>,
    pub(super) ticket: Option<String>,
    pub(super) outcome: TransitionOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Created,
    Updated,
    Deleted,
}

/// The fields of an `audit.k8s.io/v1` Event, or of a list of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditEvent<'a> {
    #[serde(default, borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(default, borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) items: Option<Vec<&'a RawValue>>,
    #[serde(default, borrow)]
    stage: Cow<'a, str>,
    #[serde(default, borrow)]
    verb: Cow<'a, str>,
    #[serde(default, rename = "requestURI", borrow)]
    request_uri: Cow<'a, str>,
    #[serde(borrow)]
    user: Option<UserInfo<'a>>,
    #[serde(borrow)]
    impersonated_user: Option<UserInfo<'a>>,
    #[serde(borrow)]
    object_ref: Option<ObjectReference<'a>>,
    response_status: Option<ResponseStatus>,
    #[serde(borrow)]
    request_object: Option<&'a RawValue>,
    #[serde(borrow)]
    response_object: Option<&'a RawValue>,
    pub(super) request_received_timestamp: Option<Timestamp>,
    #[serde(default, borrow)]
    annotations: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectReference<'a> {
    #[serde(borrow)]
    resource: Cow<'a, str>,
    #[serde(borrow)]
    subresource: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    api_group: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

#[derive(Deserialize)]
struct ObjectList<'a> {
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

impl<'a> AuditEvent<'a> {
    /// Whether this is an audit event, or a list of audit events. The items of a list have no kind of their own.
    pub(super) fn is_of_audit(&self) -> bool {
        self.api_version.starts_with("audit.k8s.io/") || (self.kind.is_empty() && !self.stage.is_empty())
    }

    /// The writes of records in the event. The deletion of a collection has several.
    pub(super) fn observations(&self) -> Result<Vec<Observation>, String> {
        let Some((reference, kind)) = self.subject() else { return Ok(Vec::new()) };
        let code = self.response_status.as_ref().map_or(0, |status| status.code);
        let verdict = self.annotation(VERDICT_KEY);
        let is_refused = code >= 400;
        let outcome = match verdict {
            Some("denied") if is_refused => TransitionOutcome::Refused,
            // Other failures and refusals say nothing about releases.
            _ if is_refused => return Ok(Vec::new()),
            Some("warned" | "undecided") => TransitionOutcome::Warned,
            _ => TransitionOutcome::Allowed,
        };
        let act = match (self.verb.as_ref(), code) {
            ("create", _) | ("update" | "patch", 201) => Act::Created,
            ("update" | "patch", _) => Act::Updated,
            ("delete" | "deletecollection", _) => Act::Deleted,
            _ => return Ok(Vec::new()),
        };
        let time = self.request_received_timestamp.ok_or("the audit event has no requestReceivedTimestamp")?;
        if self.verb == "deletecollection" {
            let deleted = self.response_object.and_then(|list| serde_json::from_str::<ObjectList<'_>>(list.get()).ok());
            let stored =
                deleted.into_iter().flat_map(|list| list.items).filter_map(|item| Stored::read(item.into()).ok());
            let found = stored.filter_map(|stored| {
                let release = revision(&reference.namespace, &stored.metadata.name, kind)?;
                Some(self.observation(time, release, act, outcome))
            });
            return Ok(found.collect());
        }
        let sends_object = matches!(self.verb.as_ref(), "create" | "update");
        let answered = self.response_object.filter(|_| !is_refused);
        let object =
            answered.or(self.request_object.filter(|_| sends_object)).and_then(|raw| Stored::read(raw.into()).ok());
        let name = object.as_ref().map_or("", |object| object.metadata.name.as_ref());
        let name = if reference.name.is_empty() { name } else { reference.name.as_ref() };
        let Some(release) = revision(&reference.namespace, name, kind) else { return Ok(Vec::new()) };
        let mut observation = self.observation(time, release, act, outcome);
        if let Some((storage, object)) =
            object.and_then(|it| Some((it.storage(kind)?, it))).filter(|_| act != Act::Deleted)
        {
            observation.add(storage, &object);
        }
        Ok(vec![observation])
    }

    /// The object and its kind, if the event is the end of a write of a possible record.
    fn subject(&self) -> Option<(&ObjectReference<'a>, &'static str)> {
        let reference = self.object_ref.as_ref()?;
        let kind = match reference.resource.as_ref() {
            "secrets" => "Secret",
            "configmaps" => "ConfigMap",
            _ => return None,
        };
        let is_plain = reference.api_group.is_empty() && reference.subresource.is_empty();
        (is_plain && self.stage == ENDED && !self.request_uri.contains("dryRun=")).then_some((reference, kind))
    }

    fn annotation(&self, end: &str) -> Option<&str> {
        self.annotations.iter().find(|(key, _)| key.ends_with(end)).map(|(_, value)| value.as_ref())
    }

    fn observation(
        &self,
        time: Timestamp,
        release: ChangedRelease,
        act: Act,
        outcome: TransitionOutcome,
    ) -> Observation {
        let user = self.impersonated_user.as_ref().or(self.user.as_ref());
        let groups = user.map(|user| Groups::of(user.groups.iter().map(AsRef::as_ref), MAX_GROUPS_BYTES));
        let annotated = |key| self.annotation(key).map(|text| into_printable(text.to_owned(), MAX_VALUE_BYTES));
        Observation {
            time,
            release,
            act,
            status: None,
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

impl Observation {
    pub(super) fn is_refused(&self) -> bool {
        self.outcome == TransitionOutcome::Refused
    }

    /// Adds the details of the stored record.
    fn add(&mut self, storage: Storage, object: &Stored<'_>) {
        let stamps = Stamps::of(|key| object.metadata.annotation(key).map(str::to_owned));
        self.status = object.metadata.label("status").and_then(|status| status.parse().ok());
        self.holder = stamps.holder().map(printable_name);
        let stamped = stamps.chart().map(str::to_owned);
        let chart = match self.act {
            Act::Created => stamped.or_else(|| chart_at_start(storage, &object.data)),
            // Later writes of a revision have the same chart.
            Act::Updated | Act::Deleted => stamped,
        };
        self.chart = chart.map(|chart| into_printable(chart, MAX_VALUE_BYTES));
    }
}

/// The revision of a release, from the name and the kind of its record.
fn revision(namespace: &str, name: &str, storage: &'static str) -> Option<ChangedRelease> {
    let RecordName { release, revision } = name.parse().ok()?;
    let (namespace, release) = (namespace.to_owned(), release.as_str().to_owned());
    Some(ChangedRelease { namespace, release, revision: revision.0, storage })
}
