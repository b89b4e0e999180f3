//! What policies and overrides change.

mod modes;
mod overrides;
mod playground;
