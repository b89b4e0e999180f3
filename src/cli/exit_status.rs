//! The exit status of a command that could run; one that could not exits with 2.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitStatus {
    /// 0.
    Success,
    /// 1: the command found what it looks for.
    Findings,
}
