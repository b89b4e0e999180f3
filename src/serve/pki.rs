//! The certificates of the webhook: a CA, and the serving certificate (leaf) that it signs.

pub mod authority;
pub mod bundle;
pub mod ca_secret;
pub mod dev;
pub mod files;
pub mod live;
pub mod managed;
pub mod metrics;
pub mod rotation;
pub mod tls;
