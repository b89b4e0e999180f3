//! The rules that only Flux has, and what others ask of a release that Flux may drive.

pub(crate) mod duplicate_release;
pub mod release;
pub(crate) mod retarget;
pub(crate) mod retry_strategy;

#[cfg(test)]
pub(crate) mod tests;
