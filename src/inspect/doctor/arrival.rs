//! The result of the dry runs: whether the API server's calls arrive.

/// Whether the API server's calls arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival<'a> {
    /// Interlock left a sign in a response.
    Answered,
    /// The writes were admitted without a sign. Entries that fail open hide the reason.
    Silent,
    /// The API server's message about a call that failed.
    Failed(&'a str),
    /// The reason.
    Unknown(&'a str),
}
