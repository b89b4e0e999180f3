//! An event of an API server's audit log.

use std::borrow::Cow;

use interlock_engine::json::redacted;
use interlock_engine::review::{Operation, UserInfo};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The stage at which the result of a request is known.
const ENDED: &str = "ResponseComplete";

/// The fields of an `audit.k8s.io` Event, or of a list of Events.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::offline) struct AuditEvent<'a> {
    #[serde(borrow)]
    pub(in crate::offline) kind: Cow<'a, str>,
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    /// The events of a list.
    #[serde(borrow)]
    pub(in crate::offline) items: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub(in crate::offline) level: Cow<'a, str>,
    #[serde(borrow, rename = "auditID")]
    pub(in crate::offline) audit_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(in crate::offline) stage: Cow<'a, str>,
    #[serde(borrow)]
    pub(in crate::offline) verb: Cow<'a, str>,
    #[serde(borrow, rename = "requestURI")]
    pub(in crate::offline) request_uri: Cow<'a, str>,
    #[serde(borrow)]
    user: Option<UserInfo<'a>>,
    #[serde(borrow)]
    impersonated_user: Option<UserInfo<'a>>,
    #[serde(borrow)]
    pub(in crate::offline) object_ref: Option<ObjectReference<'a>>,
    response_status: Option<ResponseStatus>,
    #[serde(borrow)]
    pub(in crate::offline) request_object: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(in crate::offline) response_object: Option<&'a RawValue>,
    pub(in crate::offline) request_received_timestamp: Option<Timestamp>,
    pub(in crate::offline) stage_timestamp: Option<Timestamp>,
    /// Texts by name. Only few events have annotations that are needed.
    #[serde(borrow)]
    pub(in crate::offline) annotations: Option<&'a RawValue>,
}

/// The object of a request.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::offline) struct ObjectReference<'a> {
    #[serde(borrow)]
    pub(in crate::offline) resource: Cow<'a, str>,
    #[serde(borrow)]
    pub(in crate::offline) subresource: Cow<'a, str>,
    #[serde(borrow)]
    pub(in crate::offline) namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub(in crate::offline) name: Cow<'a, str>,
    /// Empty for the core group.
    #[serde(borrow)]
    pub(in crate::offline) api_group: Cow<'a, str>,
    #[serde(borrow)]
    pub(in crate::offline) api_version: Cow<'a, str>,
}

/// The objects that a request has deleted.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::offline) struct DeletedObjects<'a> {
    /// The kind of the list, for example `SecretList`.
    #[serde(borrow)]
    pub(in crate::offline) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(in crate::offline) items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

impl<'a> AuditEvent<'a> {
    /// Whether this is an audit event, or a list of audit events. The items of a list have no kind of their own.
    pub(in crate::offline) fn is_of_audit(&self) -> bool {
        let is_item = self.kind.is_empty() && !self.audit_id.is_empty() && !self.stage.is_empty();
        is_item || self.api_version.starts_with("audit.k8s.io/")
    }

    /// Whether the result of the request is known.
    pub(in crate::offline) fn has_ended(&self) -> bool {
        self.stage == ENDED
    }

    /// The operation of a write; `None` for a read.
    pub(in crate::offline) fn operation(&self) -> Option<Operation> {
        match self.verb.as_ref() {
            "create" => Some(Operation::Create),
            // A PUT or an apply that creates an object counts as CREATE.
            "update" | "patch" if self.code() == 201 => Some(Operation::Create),
            "update" | "patch" => Some(Operation::Update),
            "delete" | "deletecollection" => Some(Operation::Delete),
            _ => None,
        }
    }

    /// Whether the API server refused the request, for any reason.
    pub(in crate::offline) fn is_refused(&self) -> bool {
        self.code() >= 400
    }

    /// The code of the response, if known.
    fn code(&self) -> u16 {
        self.response_status.as_ref().map_or(0, |status| status.code)
    }

    pub(in crate::offline) fn is_dry_run(&self) -> bool {
        self.request_uri.contains("dryRun=")
    }

    pub(in crate::offline) fn is_of_collection(&self) -> bool {
        self.verb == "deletecollection"
    }

    /// The impersonated user if there is one, otherwise the user.
    pub(in crate::offline) fn account(&self) -> Option<&UserInfo<'a>> {
        self.impersonated_user.as_ref().or(self.user.as_ref())
    }

    /// The object as the client sent it. The body of a PATCH or a DELETE is not the object.
    pub(in crate::offline) fn sent_object(&self) -> Option<&'a RawValue> {
        self.request_object.filter(|_| matches!(self.verb.as_ref(), "create" | "update"))
    }

    /// The objects of a deletecollection, if the log has them.
    ///
    /// # Errors
    /// If the list cannot be parsed.
    pub(in crate::offline) fn deleted_objects(&self) -> Result<Option<DeletedObjects<'a>>, String> {
        let list = self.response_object.map(|list| serde_json::from_str(list.get()));
        list.transpose().map_err(|error| format!("the audit event: responseObject: {}", redacted(&error)))
    }

    /// When the API server received the request.
    ///
    /// # Errors
    /// If the event does not have the time.
    pub(in crate::offline) fn received(&self) -> Result<Timestamp, String> {
        self.request_received_timestamp.ok_or_else(|| "the audit event has no requestReceivedTimestamp".to_owned())
    }
}
