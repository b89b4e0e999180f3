//! The rules in a simulated cluster: each request is stamped, judged, and applied if admitted.

mod accounts;
pub(crate) mod acts;
mod ages;
pub(crate) mod deletion;
pub(crate) mod doors;
mod elsewhere;
pub(crate) mod freeze;
mod go_readers;
mod hooks;
pub(crate) mod interrupted;
mod model;
pub(crate) mod objects;
pub(crate) mod overrides;
pub(crate) mod protected;
mod protected_by;
mod runbook;
pub(crate) mod scenario;
mod scopes;
mod stamps;
mod statuses;
mod stored_freezes;
mod table;
mod unreadable;
mod ways_out;
pub(crate) mod writes;
