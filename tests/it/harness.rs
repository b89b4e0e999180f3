//! What tests use: the built binary, a server and clients for it, the webhook without a socket, and reviews as values.

pub(crate) mod binary;
pub(crate) mod client;
pub(crate) mod desk;
pub(crate) mod fixtures;
pub(crate) mod metrics;
pub(crate) mod mounted;
pub(crate) mod named_tests;
pub(crate) mod secrets;
pub(crate) mod server;
pub(crate) mod standalone;
