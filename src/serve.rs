//! The server: HTTPS, certificates, policy reload, reports, and the work of the leader.

pub(crate) mod background;
pub(crate) mod callers;
pub mod https;
pub mod leader;
pub mod openmetrics;
mod ownership;
pub(crate) mod page;
pub mod pki;
pub mod process;
pub mod reload;
pub mod report;
pub(crate) mod traces;
pub mod webhook;
