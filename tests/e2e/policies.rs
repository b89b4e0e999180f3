//! What policies and overrides change.

mod cap;
mod freezes;
mod modes;
mod overrides;
mod playground;
mod protected;
mod protected_by;
mod selectors;
mod stop_the_line;
mod tickets;
