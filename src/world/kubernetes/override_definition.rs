//! The definition of ReleaseOverrides, as it is installed and as the command line makes one.
//!
//! What the rules read of a stored one is [`OverrideSpec`](crate::engine::overrides::Spec): the core knows no client.

#![allow(unreachable_pub, reason = "the derive puts a copy of the type into a function")]

use jiff::Timestamp;
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::engine::rule::RuleId;
use crate::engine::rules;

/// Break-glass: some rules do not refuse what is done to one release, for a while and for a reason. It lies in the namespace
/// of the release's records (`helm list` names it); that of a ClusterExtension in the namespace that the policy names.
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
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".spec.reason"}"#,
    doc = "Break-glass: some rules do not refuse what is done to one release, for a while and for a reason. It lies in the namespace of the release's records; that of a ClusterExtension in the namespace that the policy names."
)]
#[x_kube(validation = Rule::new("self == oldSelf").message("an override never changes: make another one"))]
pub struct ReleaseOverrideSpec {
    /// The name of the release; of the ClusterExtension, ConfigurationGroup or Sveltos profile where that stands for one.
    #[schemars(length(min = 1, max = 253))]
    pub release: String,
    /// The rules that do not refuse meanwhile, by the names that a refusal gives.
    #[schemars(schema_with = "rule_names")]
    pub rules: Vec<String>,
    /// Who may use it, as globs over user names; everybody where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), inner(length(min = 1, max = 253)))]
    pub users: Option<Vec<String>>,
    /// Why, for those who read the audit log later.
    #[schemars(length(min = 5, max = 500))]
    pub reason: String,
    /// When it closes, RFC 3339. The policy limits how far that may lie ahead, four hours as shipped.
    #[schemars(schema_with = "date_time")]
    pub expires_at: Timestamp,
}

/// The definition as YAML, as it is committed in `manifests/base/releaseoverrides.yaml`.
///
/// # Errors
/// Only when YAML cannot be written, which writing to a `String` does not fail at.
pub fn manifest() -> Result<String, serde_saphyr::ser::Error> {
    let yaml = serde_saphyr::to_string(&ReleaseOverride::crd())?;
    Ok(format!(
        "# The definition of ReleaseOverrides. Made from src/world/kubernetes/override_definition.rs: `INTERLOCK_WRITE_MANIFESTS=1 cargo test --test it crd`.\n{yaml}"
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
