//! What the webhook tells the world about its work.

pub mod metrics;
