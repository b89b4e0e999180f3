//! Why a record cannot be deleted or restored.

/// Why an act on a record did not come about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnstickError {
    /// The record is another one by now than the one that was checked.
    #[error("the record {0} changed since it was looked at: somebody is at work on the release. Look again")]
    Changed(String),
    /// There is an object of this name already.
    #[error("there is a {0} already")]
    Exists(String),
    /// An admission webhook said no.
    #[error("{0}")]
    Refused(String),
    /// What the release has become meanwhile forbids it.
    #[error("{0}")]
    Overtaken(String),
    /// It could not be done.
    #[error("failed to {what}: {why}")]
    Failed {
        /// What was tried.
        what: String,
        /// Why it failed.
        why: String,
    },
}

impl UnstickError {
    /// Whether this is an answer, and not a failure to get one.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        !matches!(self, Self::Failed { .. })
    }
}
