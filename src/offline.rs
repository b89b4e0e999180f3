//! Without a server: judging recordings, the test suites of policies, and the changes that logs tell.

pub(crate) mod changes;
pub(crate) mod registration;
pub mod replay;
pub(crate) mod suite;
