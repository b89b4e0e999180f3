//! How a command prints.

use clap::ValueEnum;

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}
