//! What needs more than one module but no cluster.

mod layering;
mod replay;
