//! The rules over what declares releases: Sveltos, Flux, OLM.

pub(super) mod case;
pub(super) mod dangling_bundle;
pub(super) mod dropped_bundles;
pub(super) mod duplicate_release;
pub(super) mod extension_change_while_pending;
pub(super) mod extension_safety;
pub(super) mod group_commit;
pub(super) mod remove_while_live;
pub(super) mod retarget;
pub(super) mod retry_strategy;

use super::check::Rule;

/// In the order in which they are evaluated and reported.
pub(super) static RULES: &[&Rule] = &[
    &dropped_bundles::RULE,
    &dangling_bundle::RULE,
    &remove_while_live::RULE,
    &duplicate_release::RULE,
    &retarget::RULE,
    &retry_strategy::RULE,
    &extension_change_while_pending::RULE,
    &extension_safety::RULE,
];
