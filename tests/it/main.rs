//! Tests of the server as its clients see it: the routers without a socket, and real TLS on a port of the system's
//! choosing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod client;
mod hostile;
mod http;
mod server;
mod shutdown;
mod tls;
