//! The manifest of a record: the documents that Helm applied, without the hooks.

mod document;
mod documents;
mod hooks;
mod objects;
mod workloads;

pub(crate) use document::{DocumentKey, document};
pub(crate) use hooks::{HookJob, hook_jobs};
pub(crate) use objects::objects;
pub(crate) use workloads::{WorkloadKind, WorkloadRef, workloads};
