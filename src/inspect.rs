//! Looking at a cluster: for people on the command line, and for the leader in the background.

pub(crate) mod api_error;
pub mod doctor;
pub mod runbook;
pub mod scan;
pub mod server_clock;
pub mod status;
pub mod storage_kind;
pub mod unstick;
pub mod view;
