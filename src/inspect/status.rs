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

pub use description::{HelmReleaseSummary, OverrideInForce, ReleaseDescription, RevisionSummary, describe};
pub use follow::follow;
pub use next_step::{helm_command, roll_forward};
pub use summary::{Owner, ReleaseSummary, Stuck};
pub(crate) use survey::row;
pub use survey::{StatusError, StatusOptions, Survey, survey};
