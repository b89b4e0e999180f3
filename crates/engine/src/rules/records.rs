//! The rules about release records.

pub(super) mod binding;
pub(crate) mod case;
pub(super) mod concurrent_operation;
pub(super) mod forged_stamp;
pub(super) mod illegal_transition;
mod installs_over;
pub(super) mod lease;
mod moved;
pub(super) mod pending_recovery;
pub(super) mod record_deletion;
pub mod record_integrity;
pub(super) mod record_tampering;
pub mod recovery;
pub(super) mod resume_interrupted;
pub(super) mod revision_order;
pub(super) mod runbook;
pub(super) mod standing;
pub mod unreadable;
pub(super) mod unusual_create;
mod workload_health;

use super::check::Rule;

/// In the order in which they are evaluated and reported.
pub(super) static RULES: &[&Rule] = &[
    &super::freeze::RULE,
    &concurrent_operation::RULE,
    &pending_recovery::RULE,
    &resume_interrupted::RULE,
    &revision_order::RULE,
    &unusual_create::RULE,
    &super::protected_release::RULE,
    &illegal_transition::RULE,
    &record_integrity::RULE,
    &record_tampering::RULE,
    &record_deletion::RULE,
    &forged_stamp::RULE,
];
