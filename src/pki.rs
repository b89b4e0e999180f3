//! The certificates of the webhook: a CA of our own, and the leaf it signs for us.

pub mod authority;
pub mod dev;
