//! Audit events at level RequestResponse as reviews: what the webhook would have been asked.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::world::ObjectKey;
use crate::world::memory::Memory;

/// `audit.k8s.io/v1` Event, as far as a review can be made of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event<'a> {
    #[serde(borrow, default)]
    level: Cow<'a, str>,
    #[serde(borrow, rename = "auditID", default)]
    audit_id: Cow<'a, str>,
    #[serde(borrow, default)]
    stage: Cow<'a, str>,
    #[serde(borrow, default)]
    verb: Cow<'a, str>,
    #[serde(borrow, default, rename = "requestURI")]
    request_uri: Cow<'a, str>,
    user: Option<Value>,
    impersonated_user: Option<Value>,
    #[serde(borrow)]
    object_ref: Option<ObjectRef<'a>>,
    response_status: Option<ResponseStatus>,
    #[serde(borrow)]
    request_object: Option<&'a RawValue>,
    #[serde(borrow)]
    response_object: Option<&'a RawValue>,
    pub(super) request_received_timestamp: Timestamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ObjectRef<'a> {
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

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

/// The reviews behind an event: one for most writes, one an object for a collection delete, none for reads, for stages
/// before the last, and for writes that the API server refused by itself.
pub(super) fn reviews(event: &Event<'_>, memory: &Memory) -> Result<Vec<String>, String> {
    let writes = matches!(event.verb.as_ref(), "create" | "update" | "patch" | "delete" | "deletecollection");
    let failed = event.response_status.as_ref().is_some_and(|status| status.code >= 400);
    if event.stage != "ResponseComplete" || !writes || failed {
        return Ok(Vec::new());
    }
    let Some(reference) = &event.object_ref else {
        return Ok(Vec::new());
    };
    if event.level != "RequestResponse" {
        let level = &event.level;
        return Err(format!("the audit event has level {level:?}; only RequestResponse carries the objects"));
    }
    let response = event.response_object.map(|object| parse(object, "responseObject")).transpose()?;
    let sent = event.request_object.map(|object| parse(object, "requestObject")).transpose()?;
    if event.verb == "deletecollection" {
        let items = response.as_ref().and_then(|list| list.get("items")).and_then(Value::as_array);
        let kind = response.as_ref().and_then(|list| list.get("kind")).and_then(Value::as_str).unwrap_or_default();
        let kind = kind.strip_suffix("List").unwrap_or(kind).to_owned();
        let review = |item: &Value| review(event, reference, &kind, "DELETE", None, Some(item.clone()), false);
        return Ok(items.into_iter().flatten().map(review).collect());
    }
    let object = response
        .filter(|object| object.get("kind").is_some_and(|kind| kind != "Status"))
        .or_else(|| sent.filter(|_| event.verb == "create" || event.verb == "update"));
    let kind = object.as_ref().and_then(|object| object.get("kind")).and_then(Value::as_str);
    let kind = kind.map_or_else(|| kind_of(&reference.resource).to_owned(), str::to_owned);
    let name = object.as_ref().and_then(|object| object.pointer("/metadata/name")).and_then(Value::as_str);
    let name = name.unwrap_or(&reference.name);
    let namespace = if kind == "Namespace" { "" } else { reference.namespace.as_ref() };
    let known = memory.get(&ObjectKey::new(&reference.api_group, &kind, namespace, name));
    let known = known.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let (operation, new, old) = match event.verb.as_ref() {
        "delete" => ("DELETE", None, known.or(object)),
        "create" => ("CREATE", object, None),
        // A PUT or an apply that created is a CREATE, and the only one for which nothing was known.
        _ if event.response_status.as_ref().is_some_and(|status| status.code == 201) => ("CREATE", object, None),
        _ => ("UPDATE", object.clone(), known.or(object)),
    };
    Ok(vec![review(event, reference, &kind, operation, new, old, true)])
}

fn review(
    event: &Event<'_>,
    reference: &ObjectRef<'_>,
    kind: &str,
    operation: &str,
    new: Option<Value>,
    old: Option<Value>,
    named: bool,
) -> String {
    let name = [&new, &old].into_iter().flatten().find_map(|object| object.pointer("/metadata/name").cloned());
    let name = name.or_else(|| (!reference.name.is_empty()).then(|| Value::from(reference.name.as_ref())));
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": event.audit_id,
            "kind": {"group": reference.api_group, "version": reference.api_version, "kind": kind},
            "resource": {
                "group": reference.api_group, "version": reference.api_version, "resource": reference.resource,
            },
            "subResource": (!reference.subresource.is_empty()).then_some(reference.subresource.as_ref()),
            "name": name.filter(|_| named),
            "namespace": reference.namespace,
            "operation": operation,
            "userInfo": event.impersonated_user.as_ref().or(event.user.as_ref()),
            "object": new,
            "oldObject": old,
            "dryRun": event.request_uri.contains("dryRun="),
        }
    })
    .to_string()
}

fn parse(object: &RawValue, what: &str) -> Result<Value, String> {
    serde_json::from_str(object.get()).map_err(|error| format!("{what}: {error}"))
}

/// The kind of a resource that a rule reads and that a Status response does not tell.
fn kind_of(resource: &str) -> &str {
    match resource {
        "secrets" => "Secret",
        "configmaps" => "ConfigMap",
        "namespaces" => "Namespace",
        "deployments" => "Deployment",
        "statefulsets" => "StatefulSet",
        "daemonsets" => "DaemonSet",
        other => other,
    }
}
