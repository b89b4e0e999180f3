//! The manifest of a record: the documents that Helm applied, without the hooks.

mod document;
mod documents;
mod heading;
mod hooks;
mod key;
mod mentions;
mod objects;
mod source;
mod workloads;

pub use document::document;
pub(crate) use heading::is_same_group;
pub use hooks::{HookObject, hooks_of_kind};
pub use key::DocumentKey;
pub use objects::{object_keys, objects};
pub use workloads::{WorkloadKind, WorkloadRef, workloads};
