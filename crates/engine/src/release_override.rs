//! The definition of ReleaseOverride, the break-glass resource. [`overrides`](super::overrides) decides what an
//! override opens.

use jiff::Timestamp;
use serde::Deserialize;

use super::rule::RuleId;

/// The API group.
pub const GROUP: &str = "interlock.dev";
/// The version that is served.
pub const VERSION: &str = "v1alpha1";
/// The kind.
pub const KIND: &str = "ReleaseOverride";
/// The resource.
pub const PLURAL: &str = "releaseoverrides";
/// The name of the definition.
pub const DEFINITION: &str = "releaseoverrides.interlock.dev";
/// The annotation with the user who created an override, as stamped.
pub const CREATED_BY: &str = "interlock.dev/created-by";

/// The annotation of an invalid override that was admitted under a cap: the reason why it opens nothing.
pub const VOID: &str = "interlock.dev/void";

/// The label of a probe: a ReleaseOverride that is created as a dry run, to check whether its review arrives. The value
/// names the webhook configuration, because each configuration has an entry for its own probes.
pub const PROBE: &str = "interlock.dev/probe";
/// The annotation of a probe with its nonce.
pub const NONCE: &str = "interlock.dev/probe-nonce";
/// The annotation with which the mutating half returns the nonce.
pub const ARRIVED: &str = "interlock.dev/probe-arrived";

/// The longest nonce, in bytes. It must fit into a warning.
const MAX_NONCE_BYTES: usize = 64;

/// Whether a text can be the nonce of a probe.
#[must_use]
pub fn is_nonce(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NONCE_BYTES && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The warning with which the validating half returns a nonce.
#[must_use]
pub fn arrival(nonce: &str) -> String {
    format!("interlock: the probe {nonce} arrived")
}

/// A stored ReleaseOverride.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The namespace of the release's records.
    pub namespace: String,
    pub name: String,
    /// The API server's clock at creation. An override without it is not open.
    pub created: Option<Timestamp>,
    /// The creator; `None` without a stamp.
    pub created_by: Option<String>,
    /// Whether the override was invalid at its creation, so that it opens nothing.
    pub is_void: bool,
    pub spec: OverrideSpec,
}

/// The opened rules, their users, the reason and the end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OverrideSpec {
    pub release: String,
    /// The rules that the override opens.
    pub rules: Vec<RuleId>,
    /// Globs over user names; `None` for everybody.
    #[serde(default)]
    pub users: Option<Vec<String>>,
    pub reason: String,
    /// The ticket or change number of the override.
    #[serde(default)]
    pub ticket: Option<String>,
    /// The latest end; the policy may set an earlier one.
    pub expires_at: Timestamp,
}

impl Override {
    /// `shop/web-x7k2p`.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}
