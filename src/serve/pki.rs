//! The certificates of the webhook: a CA, and the serving certificate (leaf), which the CA signs.

pub(crate) mod authority;
pub(crate) mod bundle;
pub(crate) mod ca_secret;
pub mod dev;
pub mod files;
pub(crate) mod live;
pub(crate) mod managed;
pub mod metrics;
pub(crate) mod rotation;
pub mod tls;
