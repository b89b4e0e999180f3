//! The manifest of a record: the documents that Helm applied, without the hooks.

mod document;
mod documents;
mod hooks;
mod objects;
mod workloads;

pub use document::{DocumentKey, document};
pub use hooks::{HookJob, hook_jobs};
pub use objects::objects;
pub use workloads::{WorkloadKind, WorkloadRef, workloads};
