//! Converts audit events to the reviews that the webhook would have received.

use std::borrow::Cow;

use interlock_engine::json::{RawObject, redacted};
use interlock_engine::object::ObjectKey;
use interlock_engine::review::{Gvk, Gvr, Operation, Request, UserInfo};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::world::memory::Memory;

/// The fields of an `audit.k8s.io/v1` Event that a review needs. Nested fields are parsed on demand, because most
/// events are reads.
pub(super) struct AuditEvent<'a> {
    pub(super) level: Cow<'a, str>,
    pub(super) audit_id: Cow<'a, str>,
    pub(super) stage: Cow<'a, str>,
    pub(super) verb: Cow<'a, str>,
    pub(super) request_uri: Cow<'a, str>,
    /// The impersonated user if there is one, otherwise the user.
    pub(super) user: Option<&'a RawValue>,
    pub(super) object_ref: Option<&'a RawValue>,
    pub(super) response_status: Option<&'a RawValue>,
    pub(super) request_object: Option<&'a RawValue>,
    pub(super) response_object: Option<&'a RawValue>,
    pub(super) received: &'a RawValue,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AuditedObject<'a> {
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
    #[serde(borrow)]
    api_version: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

/// The kind and name of an object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectHeader<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: AuditedObjectName<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AuditedObjectName<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectList<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

impl AuditedObject<'_> {
    /// Whether a resource is written often and never sent to the webhook: heartbeats, events, access and token reviews, and
    /// connections.
    fn is_never_sent(&self) -> bool {
        let unasked: &[&str] = match self.api_group.as_ref() {
            "" => &["events", "nodes"],
            "events.k8s.io" => &["events"],
            "coordination.k8s.io" => &["leases"],
            "authentication.k8s.io" => &["selfsubjectreviews", "tokenreviews"],
            "authorization.k8s.io" => &[
                "localsubjectaccessreviews",
                "selfsubjectaccessreviews",
                "selfsubjectrulesreviews",
                "subjectaccessreviews",
            ],
            _ => &[],
        };
        let connections = ["attach", "exec", "portforward", "proxy"];
        unasked.contains(&self.resource.as_ref())
            || (self.api_group.is_empty() && connections.contains(&self.subresource.as_ref()))
    }
}

/// The stage at which the result of a request is known.
pub(super) const ENDED: &str = "ResponseComplete";

/// The verbs of writes.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// Whether a verb is a write.
pub(super) fn is_write(verb: &str) -> bool {
    WRITES.contains(&verb)
}

/// The change that an event describes.
pub(super) enum AuditedChange<'a> {
    /// A read, or an earlier stage.
    None,
    /// A write of a resource that is never sent to the webhook.
    NeverSent,
    /// A write that the API server refused, for any reason.
    Refused(Box<AuditedWrite<'a>>),
    /// A write whose objects the log does not contain.
    WithoutObjects(Box<AuditedWrite<'a>>),
    /// A write: one review, or one review per object of a deletecollection.
    Write(Box<AuditedWrite<'a>>),
}

/// A write.
pub(super) struct AuditedWrite<'a> {
    reference: AuditedObject<'a>,
    audit_id: &'a str,
    dry_run: bool,
    user: UserInfo<'a>,
    operation: Operation,
    kind: Cow<'a, str>,
    /// `None` for a deletecollection.
    name: Option<Cow<'a, str>>,
    new: Option<&'a RawValue>,
    /// The old object, or all objects of a deletecollection.
    old: Vec<Cow<'a, RawValue>>,
    pub(super) at: Timestamp,
    /// Whether the object before the write is unknown.
    pub(super) unseen: bool,
}

impl AuditEvent<'_> {
    /// Parses the change in an event. `memory` has the object before the change.
    pub(super) fn change(&self, memory: &Memory) -> Result<AuditedChange<'_>, String> {
        let Some(reference) = self.object_ref.filter(|_| is_write(&self.verb)) else { return Ok(AuditedChange::None) };
        if self.stage != ENDED {
            return Ok(AuditedChange::None);
        }
        let status: ResponseStatus = self
            .response_status
            .map_or_else(|| Ok(ResponseStatus::default()), |it| parse_field(it, "responseStatus"))?;
        let reference: AuditedObject<'_> = parse_field(reference, "objectRef")?;
        if reference.is_never_sent() {
            return Ok(AuditedChange::NeverSent);
        }
        if status.code >= 400 {
            return self.bare(reference).map(AuditedChange::Refused);
        }
        if self.verb == "deletecollection" {
            return self.collection(reference);
        }
        self.write(reference, status.code, memory)
    }

    fn write<'e>(
        &'e self,
        reference: AuditedObject<'e>,
        code: u16,
        memory: &Memory,
    ) -> Result<AuditedChange<'e>, String> {
        let sends_object = matches!(self.verb.as_ref(), "create" | "update");
        let answered = self.response_object.map(header).transpose()?;
        let object = match answered.filter(|(_, head)| !head.kind.is_empty() && head.kind != "Status") {
            Some(answered) => Some(answered),
            None => self.request_object.filter(|_| sends_object).map(header).transpose()?,
        };
        let (object, head) = object.map_or((None, ObjectHeader::default()), |(object, head)| (Some(object), head));
        let kind = if head.kind.is_empty() { kind_of(&reference.resource).to_owned().into() } else { head.kind };
        let name = if head.metadata.name.is_empty() { reference.name.clone() } else { head.metadata.name };
        let known = known(&reference, &kind, &name, object, memory);

        let operation = match self.verb.as_ref() {
            "delete" => Operation::Delete,
            "create" => Operation::Create,
            // A PUT or an apply that creates an object counts as CREATE.
            _ if code == 201 => Operation::Create,
            _ => Operation::Update,
        };
        // An API server that truncates large events drops the objects and keeps the level. Deletions have no objects at any level.
        let may_lack_objects = operation == Operation::Delete && (known.is_some() || self.level == "RequestResponse");
        if object.is_none() && !may_lack_objects {
            return self.bare(reference).map(AuditedChange::WithoutObjects);
        }
        let unseen = operation != Operation::Create && known.is_none() && reference.subresource.is_empty();
        let before = known.map(Cow::Owned).or(object.map(Cow::Borrowed));
        let (new, old) = match operation {
            Operation::Delete => (None, before),
            Operation::Create => (object, None),
            Operation::Update | Operation::Connect => (object, before),
        };
        let name = Some(name).filter(|name| !name.is_empty());
        let old = old.into_iter().collect();
        self.with(reference, operation, kind, name, new, old, unseen).map(AuditedChange::Write)
    }

    /// A write that lacks only its objects.
    fn bare<'e>(&'e self, reference: AuditedObject<'e>) -> Result<Box<AuditedWrite<'e>>, String> {
        let operation = match self.verb.as_ref() {
            "create" => Operation::Create,
            "delete" | "deletecollection" => Operation::Delete,
            _ => Operation::Update,
        };
        let kind = kind_of(&reference.resource).to_owned().into();
        let name = Some(reference.name.clone()).filter(|name| !name.is_empty());
        self.with(reference, operation, kind, name, None, Vec::new(), false)
    }

    fn collection<'e>(&'e self, reference: AuditedObject<'e>) -> Result<AuditedChange<'e>, String> {
        let Some(response) = self.response_object else {
            return self.bare(reference).map(AuditedChange::WithoutObjects);
        };
        let list: ObjectList<'_> = parse_field(response, "responseObject")?;
        let kind = list.kind.strip_suffix("List").unwrap_or(&list.kind).to_owned();
        let old = list.items.into_iter().map(Cow::Borrowed).collect();
        self.with(reference, Operation::Delete, kind.into(), None, None, old, false).map(AuditedChange::Write)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one value, which differ in type")]
    fn with<'e>(
        &'e self,
        reference: AuditedObject<'e>,
        operation: Operation,
        kind: Cow<'e, str>,
        name: Option<Cow<'e, str>>,
        new: Option<&'e RawValue>,
        old: Vec<Cow<'e, RawValue>>,
        unseen: bool,
    ) -> Result<Box<AuditedWrite<'e>>, String> {
        let nobody = UserInfo { username: Cow::Borrowed(""), groups: Vec::new() };
        let user = self.user.map(|user| serde_json::from_str(user.get()));
        Ok(Box::new(AuditedWrite {
            reference,
            audit_id: &self.audit_id,
            dry_run: self.request_uri.contains("dryRun="),
            user: user
                .transpose()
                .map_err(|error| format!("the audit event: user: {}", redacted(&error)))?
                .unwrap_or(nobody),
            operation,
            kind,
            name,
            new,
            old,
            at: serde_json::from_str(self.received.get())
                .map_err(|error| format!("the audit event: requestReceivedTimestamp: {}", redacted(&error)))?,
            unseen,
        }))
    }
}

impl AuditedWrite<'_> {
    /// The requests that the webhook would have received.
    pub(super) fn requests(&self) -> impl Iterator<Item = Request<'_>> {
        let one = (self.old.is_empty() && (self.name.is_some() || self.new.is_some())).then_some(None);
        one.into_iter().chain(self.old.iter().map(Some)).map(|old| self.request(old.map(AsRef::as_ref)))
    }

    /// The request without its objects.
    pub(super) fn head(&self) -> Request<'_> {
        self.request(None).head()
    }

    fn request<'r>(&'r self, old: Option<&'r RawValue>) -> Request<'r> {
        let AuditedObject { resource, subresource, namespace, api_group, api_version, .. } = &self.reference;
        Request {
            uid: Cow::Borrowed(self.audit_id),
            kind: Gvk { group: borrowed(api_group), version: borrowed(api_version), kind: borrowed(&self.kind) },
            resource: Gvr { group: borrowed(api_group), version: borrowed(api_version), resource: borrowed(resource) },
            sub_resource: Some(borrowed(subresource)),
            name: self.name.as_deref().map(borrowed),
            namespace: Some(borrowed(namespace)),
            operation: self.operation,
            user_info: UserInfo {
                username: borrowed(&self.user.username),
                groups: self.user.groups.iter().map(|group| borrowed(group)).collect(),
            },
            object: self.new.map(RawObject::from),
            old_object: old.map(RawObject::from),
            dry_run: Some(self.dry_run),
        }
    }
}

fn borrowed(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

fn header(object: &RawValue) -> Result<(&RawValue, ObjectHeader<'_>), String> {
    Ok((object, parse_field(object, "the object")?))
}

/// The object before the write, if memory has it.
fn known(
    reference: &AuditedObject<'_>,
    kind: &str,
    name: &str,
    object: Option<&RawValue>,
    memory: &Memory,
) -> Option<Box<RawValue>> {
    let namespace = if kind == "Namespace" { "" } else { reference.namespace.as_ref() };
    let stored = |kind: &str| memory.get(&ObjectKey::new(&reference.api_group, kind, namespace, name));
    if reference.subresource != "scale" {
        return RawValue::from_string(stored(kind)?).ok();
    }
    // A Scale is a view of another object, and the log contains only the new Scale.
    let scaled: Value = serde_json::from_str(&stored(kind_of(&reference.resource))?).ok()?;
    let mut scale: Value = serde_json::from_str(object?.get()).ok()?;
    scale["spec"]["replicas"] = scaled.pointer("/spec/replicas")?.clone();
    serde_json::value::to_raw_value(&scale).ok()
}

/// The kind of a resource, for events that contain only a Status or a Scale.
fn kind_of(resource: &str) -> &str {
    match resource {
        "secrets" => "Secret",
        "configmaps" => "ConfigMap",
        "namespaces" => "Namespace",
        "deployments" => "Deployment",
        "statefulsets" => "StatefulSet",
        "daemonsets" => "DaemonSet",
        "replicasets" => "ReplicaSet",
        other => other,
    }
}

/// Parses a field of an audit event.
pub(super) fn parse_field<'a, T: Deserialize<'a> + Default>(value: &'a RawValue, key: &str) -> Result<T, String> {
    let read: Result<Option<T>, _> = serde_json::from_str(value.get());
    read.map(Option::unwrap_or_default).map_err(|error| format!("the audit event: {key}: {}", redacted(&error)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::offline::replay::line::RecordingLine;

    #[test]
    fn the_old_scale_comes_from_the_remembered_object() {
        let memory = Memory::new(1 << 20);
        let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2}});
        memory.put(ObjectKey::new("apps", "Deployment", "shop", "web"), deployment.to_string());
        let scale = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 5},
        });
        let event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete",
            "verb": "patch", "responseStatus": {"code": 200}, "requestReceivedTimestamp": "2026-11-21T10:00:00Z",
            "objectRef": {
                "resource": "deployments", "namespace": "shop", "name": "web", "apiGroup": "apps", "apiVersion": "v1",
                "subresource": "scale",
            },
            "requestObject": {"spec": {"replicas": 5}}, "responseObject": scale,
        });
        let event = event.to_string();
        let Ok(RecordingLine::Event(event)) = RecordingLine::read(&event) else { panic!("expected an event") };
        let Ok(AuditedChange::Write(write)) = event.change(&memory) else { panic!("expected a write") };
        let requests: Vec<_> = write.requests().collect();
        let [request] = requests.as_slice() else { panic!("expected one request") };
        let replicas = [request.old_object, request.object]
            .map(|object| serde_json::from_str::<Value>(object.unwrap().get()).unwrap()["spec"]["replicas"].clone());
        assert_eq!(replicas, [json!(2), json!(5)]);
        assert_eq!((request.sub_resource(), write.unseen), (Some("scale"), false));
    }
}
