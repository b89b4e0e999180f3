//! Tests that need more than one module but no cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod adopt;
mod alerts;
mod at_any_step;
mod certificates;
mod changes;
mod chart;
mod claims;
mod command_line;
mod crd;
mod demo;
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
mod overlays;
mod packaging;
mod page;
mod policies;
mod proofs;
mod readers;
mod release;
mod reload;
mod replay;
mod reviews;
mod shared_clusters;
mod shutdown;
mod standalone;
mod suites;
mod tls;
#[cfg(feature = "otel")]
mod traces;
mod versions;
mod worlds;

/// The programs that the e2e tests build too.
#[path = "../e2e/harness"]
#[allow(dead_code, reason = "most of it is for the e2e tests")]
mod programs {
    pub(crate) mod assets;
}
