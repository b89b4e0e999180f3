//! JSON patches (RFC 6902), limited to the operations that stamps need.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// An operation of a JSON patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOperation {
    /// Sets a member, or replaces an existing one (RFC 6902 section 4.1).
    Add { path: String, value: serde_json::Value },
    /// Removes a member.
    Remove { path: String },
}

/// A JSON patch of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Patch(pub Vec<PatchOperation>);

impl Patch {
    /// The patch as `AdmissionResponse.patch` requires it: JSON in base64.
    ///
    /// # Errors
    /// Never in practice: strings and string maps always serialize.
    pub fn encoded(&self) -> Result<String, serde_json::Error> {
        Ok(STANDARD.encode(serde_json::to_vec(self)?))
    }
}
