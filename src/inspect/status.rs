//! The status of releases for the person on call, computed as the rules do, without a write, and without the webhook.
//!
//! `summary` and `assess` are pure. `survey` lists releases, `follow` watches them, and `description`
//! reads one release in detail.

mod assess;
mod description;
mod elsewhere;
mod follow;
mod operations;
mod summary;
mod survey;

pub(crate) use assess::assess;
pub(crate) use description::{HelmReleaseOverview, OverrideInForce, ReleaseDescription, RevisionSummary, describe};
pub(crate) use follow::{changes, follow};
pub(crate) use operations::{OperationSummary, operations};
pub(crate) use summary::ReleaseSummary;
pub(crate) use survey::{StatusError, StatusOptions, Survey, examined, row, survey};
