//! Interlock: a Kubernetes admission webhook that enforces safe release transitions.

pub mod pki;
pub mod report;
pub mod server;
