//! The rules by name.

use crate::rule::RuleId;
use crate::rules::{declarations, objects, protected_release, records};

pub(in crate::rules::tests) const CONCURRENT_OPERATION: RuleId = records::concurrent_operation::RULE.id();
pub(in crate::rules::tests) const FREEZE: RuleId = records::freeze::RULE.id();
pub(in crate::rules::tests) const PENDING_RECOVERY: RuleId = records::pending_recovery::RULE.id();
pub(in crate::rules::tests) const RESUME_INTERRUPTED: RuleId = records::resume_interrupted::RULE.id();
pub(in crate::rules::tests) const REVISION_ORDER: RuleId = records::revision_order::RULE.id();
pub(in crate::rules::tests) const PROTECTED_RELEASE: RuleId = protected_release::RULE.id();
pub(in crate::rules::tests) const UNUSUAL_CREATE: RuleId = records::unusual_create::RULE.id();
pub(in crate::rules::tests) const ILLEGAL_TRANSITION: RuleId = records::illegal_transition::RULE.id();
pub(in crate::rules::tests) const RECORD_INTEGRITY: RuleId = records::record_integrity::RULE.id();
pub(in crate::rules::tests) const RECORD_TAMPERING: RuleId = records::record_tampering::RULE.id();
pub(in crate::rules::tests) const RECORD_DELETION: RuleId = records::record_deletion::RULE.id();
pub(in crate::rules::tests) const FOREIGN_EDIT_IN_TRANSITION: RuleId = objects::foreign_edit_in_transition::RULE.id();
pub(in crate::rules::tests) const MANUAL_EDIT: RuleId = objects::manual_edit::RULE.id();
pub(in crate::rules::tests) const MANUAL_DELETE: RuleId = objects::manual_delete::RULE.id();
pub(in crate::rules::tests) const MANUAL_SCALE: RuleId = objects::manual_scale::RULE.id();
pub(in crate::rules::tests) const DROPPED_BUNDLES: RuleId = declarations::dropped_bundles::RULE.id();
pub(in crate::rules::tests) const DANGLING_BUNDLE: RuleId = declarations::dangling_bundle::RULE.id();
pub(in crate::rules::tests) const REMOVE_WHILE_LIVE: RuleId = declarations::remove_while_live::RULE.id();
pub(in crate::rules::tests) const DUPLICATE_RELEASE: RuleId = declarations::duplicate_release::RULE.id();
pub(in crate::rules::tests) const RETARGET: RuleId = declarations::retarget::RULE.id();
pub(in crate::rules::tests) const EXTENSION_CHANGE_WHILE_PENDING: RuleId =
    declarations::extension_change_while_pending::RULE.id();
