//! The exit status of a command that could run. A command that could not run exits with 2.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitStatus {
    /// 0.
    Success,
    /// 1: there are findings.
    Findings,
    /// 3: the condition was not reached in time.
    TimedOut,
    /// 4: a freeze lasts longer than the timeout.
    Frozen,
}
