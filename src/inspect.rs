//! Looking at a cluster, for people and for the leader.

pub mod doctor;
pub mod scan;
pub mod status;
pub mod unstick;
