//! The shell of the server.

pub mod https;
pub mod leader;
pub mod pki;
pub mod reload;
pub mod report;
pub mod traces;
pub mod webhook;
