//! The rules about objects that declare releases: of Sveltos, Flux and OLM.

pub(crate) mod case;
mod forged_status;

use super::check::Rule;
use crate::owners::argo::rules::dropped_applications;
use crate::owners::flux::rules::{duplicate_release, retarget, retry_strategy};
use crate::owners::olm::rules::{extension_change_while_pending, extension_safety};
use crate::owners::sveltos::rules::{dangling_bundle, dropped_bundles, remove_while_live};

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
    &dropped_applications::RULE,
    &forged_status::RULE,
];
