//! The rules of an entry: its resources, subresources and operations.

use interlock_engine::review::Request;
use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;

const ANY: &str = "*";

/// The API server sends no webhook configuration to any webhook, so that every webhook can be removed.
const NEVER_SENT_GROUP: &str = "admissionregistration.k8s.io";
const NEVER_SENT: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// Whether one of the rules accepts a request. If versions are `equivalent`, the API server converts objects of other versions.
pub(super) fn take(rules: &[RuleWithOperations], equivalent: bool, request: &Request<'_>) -> bool {
    let resource = &request.resource;
    if resource.group == NEVER_SENT_GROUP && NEVER_SENT.contains(&resource.resource.as_ref()) {
        return false;
    }
    rules.iter().any(|rule| {
        lists(rule.operations.as_deref(), request.operation.as_str())
            && lists(rule.api_groups.as_deref(), &resource.group)
            && (equivalent || lists(rule.api_versions.as_deref(), &resource.version))
            && names(rule.resources.as_deref(), request)
            && is_in_scope(rule.scope.as_deref(), request)
    })
}

fn lists(values: Option<&[String]>, wanted: &str) -> bool {
    values.unwrap_or_default().iter().any(|value| value == ANY || value == wanted)
}

/// `pods` is only the resource itself, `pods/status` is a subresource, and `pods/*` is the resource with all its subresources.
fn names(resources: Option<&[String]>, request: &Request<'_>) -> bool {
    let subresource = request.sub_resource().unwrap_or_default();
    resources.unwrap_or_default().iter().any(|listed| {
        let (resource, sub) = listed.split_once('/').unwrap_or((listed, ""));
        (resource == ANY || resource == request.resource.resource) && (sub == ANY || sub == subresource)
    })
}

fn is_in_scope(scope: Option<&str>, request: &Request<'_>) -> bool {
    // A Namespace has no namespace, although its requests name the Namespace itself.
    let is_in_namespace = !is_namespace(request) && request.namespace.as_deref().is_some_and(|name| !name.is_empty());
    match scope {
        Some("Namespaced") => is_in_namespace,
        Some("Cluster") => !is_in_namespace,
        _ => true,
    }
}

/// Whether a request is for a Namespace object or one of its subresources.
pub(super) fn is_namespace(request: &Request<'_>) -> bool {
    request.resource.group.is_empty() && request.resource.resource == "namespaces"
}
