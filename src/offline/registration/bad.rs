//! Why a registration cannot be used.

pub(super) const KIND: &str = "ValidatingWebhookConfiguration";

/// The suffix of the names of Interlock's entries. A file may have the entries of other webhooks too.
pub(super) const OWN_ENTRIES: &str = ".interlock.dev";

/// A registration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadRegistration {
    /// The error includes the line.
    #[error("it is neither YAML nor JSON: {0}")]
    Syntax(String),
    /// A configuration has the wrong shape.
    #[error("the {KIND} cannot be parsed: {0}")]
    Shape(#[from] serde_json::Error),
    #[error("it has no {KIND} with entries of Interlock, whose names end with {OWN_ENTRIES}")]
    NoEntries,
    #[error("entry {entry}: {what}: {why}")]
    Entry { entry: String, what: String, why: String },
}
