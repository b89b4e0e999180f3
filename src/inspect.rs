//! Looking at a cluster: for people on the command line, and for the leader in the background.

pub(crate) mod annotation;
pub(crate) mod arrival;
pub(crate) mod changes;
pub mod diagnosis;
pub(crate) mod doctor;
pub(crate) mod html;
pub(crate) mod overrides;
pub(crate) mod records;
pub(crate) mod runbook;
pub mod scan;
pub(crate) mod status;
pub(crate) mod unprotect;
pub(crate) mod unstick;
pub(crate) mod view;
pub(crate) mod wait;
