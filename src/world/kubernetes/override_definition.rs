#![allow(unreachable_pub, reason = "the derive puts a copy of the type into a function")]

use interlock_engine::rule::RuleId;
use interlock_engine::rules;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use serde::{Deserialize, Serialize};

/// Break-glass: opens named rules for one release, for a limited time and with a reason. Create it in the namespace of the
/// release's records (`helm list` shows it), or, for a ClusterExtension, in the namespace that the policy names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "ReleaseOverride",
    plural = "releaseoverrides",
    shortname = "rov",
    namespaced,
    selectable = ".spec.release",
    printcolumn = r#"{"name": "Release", "type": "string", "jsonPath": ".spec.release"}"#,
    printcolumn = r#"{"name": "Rules", "type": "string", "jsonPath": ".spec.rules"}"#,
    printcolumn = r#"{"name": "Expires", "type": "string", "jsonPath": ".spec.expiresAt"}"#,
    printcolumn = r#"{"name": "Created by", "type": "string", "jsonPath": ".metadata.annotations.interlock\\.dev/created-by"}"#,
    printcolumn = r#"{"name": "Ticket", "type": "string", "jsonPath": ".spec.ticket"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".spec.reason"}"#,
    doc = "Break-glass: opens named rules for one release, for a limited time and with a reason. Create it in the namespace of the release's records, or, for a ClusterExtension, in the namespace that the policy names."
)]
#[x_kube(validation = Rule::new("self == oldSelf").message("an override cannot be changed: create another one"))]
pub struct ReleaseOverrideSpec {
    /// The name of the release, of the ClusterExtension or the Sveltos profile, or of the commit of a Sveltos ClusterSummary:
    /// `<ClusterSummary>.helm` or `<ClusterSummary>.resources`.
    #[schemars(length(min = 1, max = 253))]
    pub release: String,
    /// The rules to open, by the names that a refusal shows.
    #[schemars(schema_with = "rule_names")]
    pub rules: Vec<String>,
    /// The users who may use the override, as globs over user names. If left out, everybody may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), inner(length(min = 1, max = 253)))]
    pub users: Option<Vec<String>>,
    /// The reason, for readers of the audit log. The policy may require a pattern, for example the number of a ticket.
    #[schemars(length(min = 5, max = 500))]
    pub reason: String,
    /// The ticket, change or incident that the override belongs to. It is shown wherever the override is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub ticket: Option<String>,
    /// The end of the override, RFC 3339. The policy limits the duration, to four hours as shipped.
    #[schemars(schema_with = "date_time")]
    pub expires_at: Timestamp,
}

/// The definition as YAML, as it is committed in `manifests/base/releaseoverrides.yaml`.
///
/// # Errors
/// Only if YAML cannot be written, which does not happen for a `String`.
pub fn manifest() -> Result<String, serde_saphyr::ser::Error> {
    definition_file(&ReleaseOverride::crd(), "ReleaseOverrides", "override_definition")
}

/// A definition as YAML, with the way to generate it.
pub(super) fn definition_file(
    definition: &CustomResourceDefinition,
    whose: &str,
    module: &str,
) -> Result<String, serde_saphyr::ser::Error> {
    let yaml = serde_saphyr::to_string(definition)?;
    Ok(format!(
        "# The definition of {whose}. Generated from src/world/kubernetes/{module}.rs: `INTERLOCK_WRITE_MANIFESTS=1 cargo test --test it crd`.\n{yaml}"
    ))
}

fn rule_names(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let names: Vec<_> = rules::all().map(RuleId::as_str).collect();
    schemars::json_schema!({
        "type": "array", "minItems": 1, "maxItems": names.len(), "x-kubernetes-list-type": "set",
        "items": {"type": "string", "enum": names},
    })
}

fn date_time(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "format": "date-time"})
}
