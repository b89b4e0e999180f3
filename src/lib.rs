//! Interlock: a Kubernetes admission webhook that enforces safe release transitions.

pub mod budget;
pub mod cli;
pub mod facts;
pub mod judge;
pub mod mode;
pub mod pki;
pub mod policy;
pub mod release;
pub mod replay;
pub mod report;
pub mod review;
pub mod rules;
pub mod server;
pub mod stamp;
pub mod webhook;
pub mod world;
