//! Judging without a server.

pub mod replay;
pub mod suite;
