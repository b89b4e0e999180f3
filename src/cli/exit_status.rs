//! The exit status of a command that could run; one that could not exits with 2.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitStatus {
    /// 0.
    Success,
    /// 1: the command found what it looks for.
    Findings,
    /// 3: what the command waited for has not happened in time.
    TimedOut,
    /// 4: a freeze lasts longer than the command may wait.
    Frozen,
}
