//! What needs more than one module but no cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod certificates;
mod client;
mod command_line;
mod crd;
mod failure;
mod fixtures;
mod hard_mode;
mod hostile;
mod http;
mod layering;
mod manifests;
mod policies;
mod reload;
mod replay;
mod reviews;
mod server;
mod shutdown;
mod suites;
mod tls;
mod worlds;
