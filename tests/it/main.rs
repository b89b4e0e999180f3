//! What needs more than one module but no cluster.

mod client;
mod hostile;
mod http;
mod layering;
mod replay;
mod server;
mod shutdown;
mod tls;
