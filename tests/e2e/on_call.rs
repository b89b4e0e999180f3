//! The commands and reports for people on call.

mod audit_log;
mod changes;
mod contexts;
mod next_step;
mod page;
mod plugins;
mod reports;
mod routing;
mod scanning;
mod unstick;
mod waiting;
mod ways_out;
