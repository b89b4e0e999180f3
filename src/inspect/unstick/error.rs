//! Why a release is not freed.

/// Why a record was not deleted or restored, or an operation not ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnstickError {
    /// The record changed after the checks.
    #[error(
        "the record {0} changed after it was checked: another operation on the release is in progress. Check the \
        release again with `interlock status`"
    )]
    Changed(String),
    /// An object of this name exists.
    #[error("{0} already exists")]
    Exists(String),
    /// An admission webhook refused the request.
    #[error("{0}")]
    Refused(String),
    /// The release or the object has changed, so the request is no longer possible.
    #[error("{0}")]
    Overtaken(String),
    /// The request failed.
    #[error("failed to {what}: {why}")]
    Failed { what: String, why: String },
}

impl UnstickError {
    /// Whether the command got a definite answer.
    #[must_use]
    pub(crate) fn is_answer(&self) -> bool {
        !matches!(self, Self::Failed { .. })
    }
}
