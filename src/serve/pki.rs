//! The certificates of the webhook: a CA of our own, and the leaf it signs for us.

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
