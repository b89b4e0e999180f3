//! The mode that a policy gives a rule.

use interlock_engine::facts::Actor;
use interlock_engine::policy::{Policy, Removal, Scope};
use interlock_engine::review::Operation;
use interlock_engine::rule::{Mode, RuleId};

/// The mode of a rule for a user, for an update that no other case names.
pub(super) fn mode_of(policy: &Policy, rule: RuleId, actor: Actor<'_>) -> Mode {
    let scope = Scope {
        actor,
        namespace: "",
        release: None,
        kind: "",
        owner: None,
        operation: Operation::Update,
        creates_record: false,
        removal: Removal::Nothing,
    };
    policy.mode(rule, &scope)
}
