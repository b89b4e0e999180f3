//! The clients.

pub(crate) mod change_control;
pub(crate) mod crossplane;
pub(crate) mod fleet;
pub(crate) mod flux;
pub(crate) mod handover;
pub(crate) mod helm;
pub(crate) mod klipper;
pub(crate) mod mapkubeapis;
pub(crate) mod nelm;
pub(crate) mod olm;
pub(crate) mod person;
mod sdk;
pub(crate) mod stranger;
pub(crate) mod sveltos;

#[cfg(test)]
mod recorded;
