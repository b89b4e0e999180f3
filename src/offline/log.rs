//! The lines of log files, and the audit events in them.

mod event;
mod lines;
mod zstd;

pub(super) use event::{AuditEvent, ObjectReference};
pub(super) use lines::{LineError, Lines};
