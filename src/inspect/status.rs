//! How the releases of a cluster stand, for whoever is on call: by the rules' own notions, by reads alone, with and without
//! the webhook.
//!
//! `row` and `ways` are pure: what a release's records tell, and the next safe step. `survey` reads, `follow` keeps reading,
//! and `describe` looks closer at one release.

mod describe;
mod follow;
mod row;
mod survey;
mod ways;

pub use describe::{Described, HelmReleaseLine, OverrideInForce, RevisionLine, describe};
pub use follow::{Clock, follow};
pub use row::{Kept, Owner, Row, Stuck};
pub use survey::{Options, StatusError, Survey, View, survey};
pub use ways::{forward, helm};
