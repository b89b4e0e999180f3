//! The annotations on Interlock's Events, for programs.

/// The reporting controller of every Event of Interlock.
pub(crate) const CONTROLLER: &str = "interlock.dev/webhook";

/// The id of the rule.
pub(crate) const RULE: &str = "interlock.dev/rule";
/// The mode of the rule.
pub(crate) const MODE: &str = "interlock.dev/mode";
/// The verdict: `denied`, `warned` and so on.
pub(crate) const VERDICT: &str = "interlock.dev/verdict";
/// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
pub(crate) const OPERATION: &str = "interlock.dev/operation";
/// The name of the user.
pub(crate) const ACTOR: &str = "interlock.dev/actor";
/// Namespace and name of the release.
pub(crate) const RELEASE: &str = "interlock.dev/release";
/// The object, as `apps/v1 Deployment shop/web`.
pub(crate) const OBJECT: &str = "interlock.dev/object";
/// Namespace and name of the override that was used.
pub(crate) const OVERRIDE: &str = "interlock.dev/override";
/// The ticket of that override.
pub(crate) const TICKET: &str = "interlock.dev/ticket";
/// The name of the freeze that was in force.
pub(crate) const FREEZE: &str = "interlock.dev/freeze";
/// The end of that freeze, RFC 3339; absent if it does not end.
pub(crate) const FROZEN_UNTIL: &str = "interlock.dev/frozen-until";
/// Present if the release had records.
pub(crate) const RECORDED: &str = "interlock.dev/recorded";
/// The name of the cluster.
pub(crate) const CLUSTER: &str = "interlock.dev/cluster";
/// All annotations.
pub(crate) const ALL: [&str; 13] =
    [RULE, MODE, VERDICT, OPERATION, ACTOR, RELEASE, OBJECT, OVERRIDE, TICKET, FREEZE, FROZEN_UNTIL, RECORDED, CLUSTER];
