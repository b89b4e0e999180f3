//! What needs more than one module but no cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod alerts;
mod certificates;
mod client;
mod command_line;
mod crd;
mod documentation;
mod failure;
mod fixtures;
mod hard_mode;
mod hostile;
mod http;
mod layering;
mod logging;
mod manifests;
mod metrics;
mod policies;
mod reload;
mod replay;
mod reviews;
mod server;
mod shutdown;
mod standalone;
mod suites;
mod tls;
#[cfg(feature = "otel")]
mod traces;
mod worlds;
