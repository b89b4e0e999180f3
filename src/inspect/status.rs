//! The status of releases for the person on call, computed as the rules do, without a write, and without the webhook.
//!
//! `summary`, `assess` and `next_step` are pure. `survey` lists releases, `follow` watches them, and `description`
//! reads one release in detail.

mod assess;
mod description;
mod follow;
mod next_step;
mod summary;
mod survey;

pub(crate) use assess::assess;
pub(crate) use description::{HelmReleaseOverview, OverrideInForce, ReleaseDescription, RevisionSummary, describe};
pub(crate) use follow::{changes, follow};
pub(crate) use next_step::{helm_command, roll_forward, version};
pub(crate) use summary::{ReleaseOwner, ReleaseSummary, Stuck};
pub(crate) use survey::row;
pub(crate) use survey::{StatusError, StatusOptions, Survey, survey};
