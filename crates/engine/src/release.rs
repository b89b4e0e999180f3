//! Helm's model of a release: names, revisions, statuses and transitions, records and their storage.

mod driver_ref;
pub(crate) mod history;
mod hook;
pub(crate) mod interrupted;
pub mod manifest;
pub(crate) mod name;
mod protector_ref;
pub mod record;
pub mod stamps;
pub mod status;
pub mod storage;

pub use driver_ref::DriverRef;
pub use history::{Entry, History};
pub use interrupted::InterruptedOperation;
pub use name::{MAX_RELEASE_NAME_LENGTH, RecordName, ReleaseName, ReleaseRef, Revision};
pub use protector_ref::{ProtectorRef, ProtectorState};
pub use record::{DecodeError, Record};
pub use stamps::Stamps;
pub use status::Status;
pub use storage::{Storage, Stored};
