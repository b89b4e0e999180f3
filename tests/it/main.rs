//! Tests that need more than one module but no cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod alerts;
mod certificates;
mod changes;
mod claims;
mod command_line;
mod crd;
mod documentation;
mod effort;
mod failure;
mod fresh_machine;
mod fuzz;
mod hard_mode;
mod harness;
mod hostile;
mod http;
mod image;
mod layering;
mod logging;
mod manifests;
mod outlets;
mod packaging;
mod page;
mod policies;
mod proofs;
mod release;
mod reload;
mod replay;
mod reviews;
mod shared_clusters;
mod shutdown;
mod suites;
mod tls;
#[cfg(feature = "otel")]
mod traces;
mod versions;
mod worlds;
