//! Commands without a server: replay of recordings, what a policy would refuse in a log, test suites of policies, and the changes in
//! logs.

pub(crate) mod adopt;
pub(crate) mod changes;
pub(crate) mod demo;
mod log;
pub(crate) mod registration;
pub mod replay;
pub(crate) mod suite;
