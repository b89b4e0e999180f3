//! Judging requests without a server: recordings, and the test suites of policies.

pub mod replay;
pub(crate) mod suite;
