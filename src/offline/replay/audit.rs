//! Converts audit events to the reviews that the webhook would have received.

use std::borrow::Cow;

use interlock_engine::json::{RawObject, redacted};
use interlock_engine::object::ObjectKey;
use interlock_engine::review::{Gvk, Gvr, Operation, Request, UserInfo};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::offline::log::{AuditEvent, ObjectReference};
use crate::world::memory::Memory;

/// The kind and name of an object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectHeader<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: ObjectName<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectName<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// The change that an event describes.
pub(super) enum AuditedChange<'a> {
    /// A read, or an earlier stage.
    None,
    /// A write of a resource that is never sent to the webhook.
    NeverSent,
    /// A write that the API server refused, for any reason. The request has no objects.
    Refused(Box<Request<'a>>),
    /// A write whose objects the log does not contain.
    WithoutObjects(Box<Request<'a>>),
    /// A write: one review, or one review per object of a deletecollection.
    Write(Box<AuditedWrite<'a>>),
}

/// A write.
pub(super) struct AuditedWrite<'a> {
    /// The request without the old object.
    request: Request<'a>,
    /// The old object, or all objects of a deletecollection.
    old: Vec<Cow<'a, RawValue>>,
    pub(super) at: Timestamp,
    /// Whether the object before the write is unknown.
    pub(super) unseen: bool,
}

impl<'a> AuditEvent<'a> {
    /// The change in the event. `memory` has the object before the change.
    ///
    /// # Errors
    /// If an object of the event cannot be parsed.
    pub(super) fn change(&self, memory: &Memory) -> Result<AuditedChange<'a>, String> {
        let (Some(reference), Some(operation)) = (&self.object_ref, self.operation()) else {
            return Ok(AuditedChange::None);
        };
        if !self.has_ended() {
            return Ok(AuditedChange::None);
        }
        if is_never_sent(reference) {
            return Ok(AuditedChange::NeverSent);
        }
        let request = self.request(reference.clone(), operation);
        if self.is_refused() {
            return Ok(AuditedChange::Refused(Box::new(request)));
        }
        if self.is_of_collection() { self.collection(request) } else { self.write(request, memory) }
    }

    /// The request without its objects.
    fn request(&self, reference: ObjectReference<'a>, operation: Operation) -> Request<'a> {
        let ObjectReference { resource, subresource, namespace, name, api_group: group, api_version: version } =
            reference;
        let nobody = UserInfo { username: Cow::Borrowed(""), groups: Vec::new(), ..UserInfo::default() };
        let kind = kind_of(&resource).to_owned().into();
        Request {
            uid: self.audit_id.clone(),
            kind: Gvk { group: group.clone(), version: version.clone(), kind },
            resource: Gvr { group, version, resource },
            sub_resource: Some(subresource),
            name: Some(name).filter(|name| !name.is_empty()),
            namespace: Some(namespace),
            operation,
            user_info: self.account().cloned().unwrap_or(nobody),
            object: None,
            old_object: None,
            dry_run: Some(self.is_dry_run()),
        }
    }

    fn write(&self, mut request: Request<'a>, memory: &Memory) -> Result<AuditedChange<'a>, String> {
        let answered = self.response_object.map(header).transpose()?;
        let object = match answered.filter(|(_, head)| !head.kind.is_empty() && head.kind != "Status") {
            Some(answered) => Some(answered),
            None => self.sent_object().map(header).transpose()?,
        };
        let (object, head) = object.map_or((None, ObjectHeader::default()), |(object, head)| (Some(object), head));
        if !head.kind.is_empty() {
            request.kind.kind = head.kind;
        }
        if !head.metadata.name.is_empty() {
            request.name = Some(head.metadata.name);
        }
        let known = known(&request, object, memory);
        let operation = request.operation;
        // An API server that truncates large events drops the objects and keeps the level. Deletions have no objects at any level.
        let may_lack_objects = operation == Operation::Delete && (known.is_some() || self.level == "RequestResponse");
        if object.is_none() && !may_lack_objects {
            return Ok(AuditedChange::WithoutObjects(Box::new(request)));
        }
        let unseen = operation != Operation::Create && known.is_none() && request.sub_resource().is_none();
        let before = known.map(Cow::Owned).or(object.map(Cow::Borrowed));
        let (new, old) = match operation {
            Operation::Delete => (None, before),
            Operation::Create => (object, None),
            Operation::Update | Operation::Connect => (object, before),
        };
        let request = Request { object: new.map(RawObject::from), ..request };
        self.audited(request, old.into_iter().collect(), unseen)
    }

    fn collection(&self, request: Request<'a>) -> Result<AuditedChange<'a>, String> {
        let Some(list) = self.deleted_objects()? else {
            return Ok(AuditedChange::WithoutObjects(Box::new(request)));
        };
        let kind = list.kind.strip_suffix("List").unwrap_or(&list.kind).to_owned();
        let request = Request { kind: Gvk { kind: kind.into(), ..request.kind }, ..request };
        self.audited(request, list.items.into_iter().flatten().map(Cow::Borrowed).collect(), false)
    }

    fn audited(
        &self,
        request: Request<'a>,
        old: Vec<Cow<'a, RawValue>>,
        unseen: bool,
    ) -> Result<AuditedChange<'a>, String> {
        Ok(AuditedChange::Write(Box::new(AuditedWrite { request, old, at: self.received()?, unseen })))
    }
}

impl AuditedWrite<'_> {
    /// The requests that the webhook would have received.
    pub(super) fn requests(&self) -> impl Iterator<Item = Request<'_>> {
        let Request { name, object, .. } = &self.request;
        let one = (self.old.is_empty() && (name.is_some() || object.is_some())).then_some(None);
        one.into_iter().chain(self.old.iter().map(Some)).map(|old| {
            let old_object = old.map(|old| RawObject::from(old.as_ref()));
            Request { old_object, ..self.request.clone() }
        })
    }
}

/// Whether a resource is written often and never sent to the webhook: heartbeats, events, access and token reviews, and
/// connections. The registration cannot tell these, because objects that it does not send are still needed as the state of the
/// cluster.
fn is_never_sent(reference: &ObjectReference<'_>) -> bool {
    let resources: &[&str] = match reference.api_group.as_ref() {
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
    resources.contains(&reference.resource.as_ref())
        || (reference.api_group.is_empty() && connections.contains(&reference.subresource.as_ref()))
}

fn header(object: &RawValue) -> Result<(&RawValue, ObjectHeader<'_>), String> {
    let header = serde_json::from_str(object.get())
        .map_err(|error| format!("the audit event: the object: {}", redacted(&error)))?;
    Ok((object, header))
}

/// The object before the write, if memory has it.
fn known(request: &Request<'_>, object: Option<&RawValue>, memory: &Memory) -> Option<Box<RawValue>> {
    let (kind, name) = (request.kind.kind.as_ref(), request.name.as_deref().unwrap_or_default());
    let namespace = if kind == "Namespace" { "" } else { request.namespace() };
    let stored = |kind: &str| memory.get(&ObjectKey::new(&request.resource.group, kind, namespace, name));
    if request.sub_resource() != Some("scale") {
        return RawValue::from_string(stored(kind)?).ok();
    }
    // A Scale is a view of another object, and the log contains only the new Scale.
    let scaled: Value = serde_json::from_str(&stored(kind_of(&request.resource.resource))?).ok()?;
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
