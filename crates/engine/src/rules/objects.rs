//! The rules about the objects of releases.

pub(crate) mod case;
mod conflict;
mod content;
pub(super) mod declared_fields;
pub mod exceptions;
pub(super) mod foreign_edit_in_transition;
pub(super) mod manual_delete;
pub(super) mod manual_edit;
pub(super) mod manual_scale;
pub(super) mod operation_holder;
mod operation_hook;
mod owning_records;
mod proven_owner;
mod without_records;

use super::check::Rule;
use crate::owners::kustomize::rules::dropped_inventory;

/// In the order in which they are evaluated and reported.
pub(super) static RULES: &[&Rule] = &[
    &foreign_edit_in_transition::RULE,
    &manual_edit::RULE,
    &manual_delete::RULE,
    &manual_scale::RULE,
    &dropped_inventory::RULE,
];
