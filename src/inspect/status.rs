//! How the releases of a cluster stand, for whoever is on call: by the rules' own notions, by reads alone, with and without
//! the webhook.
//!
//! `row` and `ways` are pure: what a release's records tell, and the next safe step. `survey` reads, `follow` keeps reading,
//! and `describe` looks closer at one release.

mod assess;
mod describe;
mod follow;
mod next_step;
mod summary;
mod survey;

pub use describe::{Described, HelmReleaseLine, OverrideInForce, RevisionLine, describe};
pub use follow::{Clock, follow};
pub use next_step::{forward, helm};
pub use summary::{Owner, Row, Stuck};
pub(crate) use survey::row;
pub use survey::{Options, StatusError, Survey, survey};
