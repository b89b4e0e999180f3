//! The terms of each owner that keeps records.

use crate::release::{Status, Storage};
use crate::ways_out::{Step, WaysOut};

/// The terms for one release.
#[derive(Debug, Clone, Copy)]
pub struct OwnerWords<'a> {
    pub storage: Storage,
    /// The namespace of the records.
    pub namespace: &'a str,
    pub release: &'a str,
}

/// The terms of an owner that keeps records.
pub(super) struct Vocabulary {
    pub(super) name: &'static str,
    pub(super) client: &'static str,
    /// Whether it has commands to roll back and to uninstall. If not, it continues by itself, as an object declares.
    pub(super) has_commands: bool,
    pub(super) newer_operation: &'static str,
    pub(super) roll_back: &'static str,
    pub(super) change: fn(&OwnerWords<'_>) -> WaysOut,
    pub(super) start_anew: fn(&OwnerWords<'_>) -> WaysOut,
    pub(super) upgrade_instead: fn(&OwnerWords<'_>) -> WaysOut,
    pub(super) go_forward: fn(&OwnerWords<'_>) -> WaysOut,
    pub(super) look: fn(&OwnerWords<'_>) -> String,
    pub(super) remove_command: fn(&OwnerWords<'_>) -> String,
    pub(super) run_again: fn(Status) -> String,
    pub(super) finish: fn(&OwnerWords<'_>, &str) -> Step,
}
