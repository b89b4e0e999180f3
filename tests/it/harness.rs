//! What tests use: a server, clients for it, the built binary, and reviews as values.

pub(crate) mod client;
pub(crate) mod fixtures;
pub(crate) mod server;
pub(crate) mod standalone;
