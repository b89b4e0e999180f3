//! Looking at a cluster, for people and for the leader.

pub(crate) mod api_error;
pub mod doctor;
pub mod runbook;
pub mod scan;
pub mod server_clock;
pub mod status;
pub mod storage_kind;
pub mod unstick;
pub mod view;
