//! The exit status of a command that could run.

/// What a command found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    Nothing,
    Something,
}
