//! How the releases of a cluster stand, for whoever is on call: by the rules' own notions, by reads alone, with and without
//! the webhook.
//!
//! `row` and `ways` are pure: what a release's records tell, and the next safe step. `survey` reads, `follow` keeps reading,
//! and `describe` looks closer at one release.

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
