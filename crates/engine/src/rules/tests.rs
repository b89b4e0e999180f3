//! The rules, driven as a cluster would: stamped, judged, and applied when admitted.

mod accounts;
mod ages;
mod deletion;
mod doors;
mod flux;
mod freeze;
mod go_readers;
mod interrupted;
mod model;
mod names;
mod objects;
mod olm;
mod overrides;
mod protected;
mod runbook;
mod scenario;
mod scopes;
mod stamps;
mod stored_freezes;
mod sveltos;
mod table;
mod ways_out;
mod writes;
