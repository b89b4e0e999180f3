//! The rules, driven as a cluster would: stamped, judged, and applied when admitted.

mod ages;
mod deletion;
mod model;
mod scenario;
mod table;
mod writes;
