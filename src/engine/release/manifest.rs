//! The manifest of a record: the documents that Helm applied, without the hooks.

mod document;
mod documents;
mod heading;
mod hooks;
mod key;
mod objects;
mod outline;
mod workloads;

pub(crate) use document::document;
pub(crate) use heading::is_same_group;
pub(crate) use hooks::{HookJob, hook_jobs};
pub(crate) use key::DocumentKey;
pub(crate) use objects::objects;
pub(crate) use workloads::{WorkloadKind, WorkloadRef, workloads};
