//! The checked policy: which rules apply, and how.

mod accounts;
mod effective;
mod freeze;
mod globs;
mod ignore;
mod namespaces;
mod policies;
mod protected;
pub(crate) mod reason_pattern;
mod scalable_resource;
mod scope;
mod settings;

pub use accounts::{Accounts, Pipeline, PipelineHolder};
pub use effective::Policy;
pub use freeze::{
    ActiveFreeze, Creation, DayWindow, Freeze, FreezeEffect, FreezeState, Interval, LimitedFreeze, TeamFreezeSettings,
    Window, frozen_by, in_force,
};
pub use globs::Globs;
pub use ignore::{IgnoredFields, ignored_fields};
pub use namespaces::{
    ByNamespace, LabelOperator, LabelRequirement, LabelSelector, Labels, NamespaceCondition, NamespaceLabels,
};
pub use policies::Policies;
pub use protected::{Protected, ProtectedReleases};
pub use reason_pattern::ReasonPattern;
pub use scalable_resource::ScalableResource;
pub use scope::{Removal, Scope, When};
pub use settings::{
    AllowRollback, DEFAULT_NAMESPACE, DriftExceptions, DroppedBundlesSettings, Modes, OnFirstInstall, OnUndecided,
    OnUnexplained, OverrideSettings, RecoverySettings, RuleSettings, Share, StartedBy, WhenSuspended,
};
