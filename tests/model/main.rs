//! The model checker: every interleaving of two clients on one release, judged by the real stamp and the real decision.
//!
//! `docs/proof.md` says what is proved, and within which bounds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod applications;
mod client;
mod clients;
mod cluster;
mod commands;
mod court;
mod explore;
mod guards;
mod objects;
mod pairs;
mod properties;
mod recording;
mod scopes;
mod steps;
mod texts;
mod users;
mod ways_out;
