//! The commands and reports for people on call.

mod audit_log;
mod plugins;
mod reports;
mod routing;
mod scanning;
mod unstick;
mod ways_out;
