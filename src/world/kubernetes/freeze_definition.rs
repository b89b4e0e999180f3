#![allow(unreachable_pub, reason = "the derive puts a copy of the type into a function")]

use kube::{CustomResource, CustomResourceExt, KubeSchema};
use serde::{Deserialize, Serialize};

use super::override_definition::definition_file;

/// Stop the line: no operation of the namespace's releases starts in the window of the Freeze. What has started before goes on. The
/// fields are those of a freeze in the policy, and their values are checked by Interlock, as those of the policy are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "Freeze",
    plural = "freezes",
    namespaced,
    printcolumn = r#"{"name": "From", "type": "string", "jsonPath": ".spec.from"}"#,
    printcolumn = r#"{"name": "To", "type": "string", "jsonPath": ".spec.to"}"#,
    printcolumn = r#"{"name": "Time zone", "type": "string", "jsonPath": ".spec.timeZone"}"#,
    printcolumn = r#"{"name": "Created by", "type": "string", "jsonPath": ".metadata.annotations.interlock\\.dev/created-by"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".spec.reason"}"#,
    doc = "Stop the line: no operation of the namespace's releases starts in the window of the Freeze. What has started before goes on. The fields are those of a freeze in the policy."
)]
#[x_kube(validation = Rule::new("self == oldSelf").message("a Freeze cannot be changed: create another one, and delete this one"))]
pub struct FreezeSpec {
    /// Why. Every refusal says it.
    #[schemars(length(min = 1, max = 500))]
    pub reason: String,
    /// The time zone of the times, for example Europe/Berlin or UTC.
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
    /// When the window begins: a date with or without a time, for example 2026-12-20T17:00. Beside `weekdays` a time of the day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub from: Option<String>,
    /// When the window ends, excluded, written as `from` is. The policy limits how late that may be: a week after the creation as
    /// shipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub to: Option<String>,
    /// The days on which the window begins, every week until the policy ends the Freeze. Without it the window is once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 7), inner(length(max = 64)))]
    pub weekdays: Option<Vec<String>>,
    /// Whether operations are refused in the window (deny, the default), or outside of it (allowOnly).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub effect: Option<String>,
    /// Names of releases, as globs. If left out, every release of the namespace is frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), inner(length(min = 1, max = 253)))]
    pub releases: Option<Vec<String>>,
    /// Who may start operations all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exempt: Option<FreezeExemption>,
}

/// Users that a Freeze does not concern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct FreezeExemption {
    /// User names, as globs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 253)))]
    pub users: Vec<String>,
    /// Groups of users, as globs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 253)))]
    pub groups: Vec<String>,
}

/// The definition as YAML, as it is committed in `manifests/base/freezes.yaml`.
///
/// # Errors
/// Only if YAML cannot be written, which does not happen for a `String`.
pub fn manifest() -> Result<String, serde_saphyr::ser::Error> {
    definition_file(&Freeze::crd(), "Freezes", "freeze_definition")
}
