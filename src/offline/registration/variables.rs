//! The variables of a match condition: `request`, `object` and `oldObject`.

use std::sync::OnceLock;

use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use interlock_engine::json::RawObject;
use interlock_engine::review::Request;
use serde_json::{Value, json};

/// The variables that contain the objects of a request.
pub(super) const OBJECTS: [&str; 2] = ["object", "oldObject"];

type CelValue = Box<dyn Val>;

/// The variables of one request. Each is parsed when an expression first reads it. `authorizer` is missing, because a log does not
/// show the rights of an account. An expression that reads it cannot be evaluated.
pub(super) struct Variables<'r> {
    request: &'r Request<'r>,
    head: OnceLock<CelValue>,
    /// `None` if the object cannot be parsed.
    object: OnceLock<Option<CelValue>>,
    old_object: OnceLock<Option<CelValue>>,
}

impl<'r> Variables<'r> {
    pub(super) fn of(request: &'r Request<'r>) -> Self {
        Self { request, head: OnceLock::new(), object: OnceLock::new(), old_object: OnceLock::new() }
    }
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let value = match variable {
            "request" => self.head.get_or_init(|| value(head(self.request))),
            "object" => self.object.get_or_init(|| object(self.request.object)).as_ref()?,
            "oldObject" => self.old_object.get_or_init(|| object(self.request.old_object)).as_ref()?,
            _ => return None,
        };
        let value: &'b (dyn Val + 'b) = value.as_ref();
        Some(CowVal::from(value))
    }
}

/// The request without its objects: the fields of an AdmissionRequest that a recording has.
fn head(request: &Request<'_>) -> Value {
    let Request { uid, kind, resource, name, namespace, operation, user_info, dry_run, .. } = request;
    let kind = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let resource = json!({"group": resource.group, "version": resource.version, "resource": resource.resource});
    let sub_resource = request.sub_resource().unwrap_or_default();
    json!({
        "uid": uid,
        "kind": kind,
        "requestKind": kind,
        "resource": resource,
        "requestResource": resource,
        "subResource": sub_resource,
        "requestSubResource": sub_resource,
        "name": name.as_deref().unwrap_or_default(),
        "namespace": namespace.as_deref().unwrap_or_default(),
        "operation": operation.as_str(),
        "userInfo": {"username": user_info.username, "groups": user_info.groups},
        "dryRun": dry_run.unwrap_or_default(),
    })
}

fn object(object: Option<RawObject<'_>>) -> Option<CelValue> {
    let Some(object) = object else { return Some(Box::new(CelNull)) };
    serde_json::from_str(object.get()).ok().map(value)
}

/// A value as the API server converts it: integers are ints, and all other numbers are doubles.
fn value(json: Value) -> CelValue {
    match json {
        Value::Null => Box::new(CelNull),
        Value::Bool(it) => Box::new(CelBool::from(it)),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Box::new(CelInt::from(integer)),
            (None, Some(large)) => Box::new(CelUInt::from(large)),
            (None, None) => Box::new(CelDouble::from(number.as_f64().unwrap_or_default())),
        },
        Value::String(text) => Box::new(CelString::from(text)),
        Value::Array(items) => Box::new(CelList::from(items.into_iter().map(value).collect::<Vec<_>>())),
        Value::Object(members) => {
            let members = members.into_iter().map(|(key, member)| (CelMapKey::from(key), value(member)));
            Box::new(CelMap::from(members.collect::<std::collections::HashMap<_, _>>()))
        }
    }
}
