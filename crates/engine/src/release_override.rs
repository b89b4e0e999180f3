//! The definition of ReleaseOverride, the break-glass resource. What an override opens is decided in [`overrides`](super::overrides).

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

/// The annotation of an override that is not valid, and was admitted under a cap: why it opens nothing.
pub const VOID: &str = "interlock.dev/void";

/// The label of a probe: a ReleaseOverride that is created as a dry run, to see whether a review of it arrives. Its value names the
/// webhook configuration, because each has an entry for its own probes.
pub const PROBE: &str = "interlock.dev/probe";
/// The annotation of a probe with its nonce.
pub const NONCE: &str = "interlock.dev/probe-nonce";
/// The annotation by which the mutating half gives the nonce back.
pub const ARRIVED: &str = "interlock.dev/probe-arrived";

/// The longest nonce, in bytes. It must fit into a warning.
const MAX_NONCE_BYTES: usize = 64;

/// Whether this can be the nonce of a probe.
#[must_use]
pub fn is_nonce(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NONCE_BYTES && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The warning by which the validating half gives a nonce back.
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
    /// By the clock of the API server. An override without it is not open.
    pub created: Option<Timestamp>,
    /// The creator; `None` if it was not stamped.
    pub created_by: Option<String>,
    /// Whether it was not valid when it was created, so that it opens nothing.
    pub is_void: bool,
    pub spec: OverrideSpec,
}

/// What is opened, to whom, why and until when.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OverrideSpec {
    pub release: String,
    /// The rules that it opens.
    pub rules: Vec<RuleId>,
    /// Globs over user names; `None` for everybody.
    #[serde(default)]
    pub users: Option<Vec<String>>,
    pub reason: String,
    /// The ticket or change number that it belongs to.
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
