//! Tests on real parts: a real API server with its controllers, the real helm 3 and helm 4, and the built `interlock`.
//!
//! A test uses a [`harness::plane::Plane`], shared or its own, and a [`harness::namespace::Namespace`] of its own in it, with
//! the clients of [`harness::clients`], the charts of [`harness::chart`] and the stored records of [`harness::records`].
//! Tests that install Interlock use a [`harness::cluster::Cluster`]: a plane with a [`harness::kubelet`] and a
//! [`harness::balancer`]. `tests/README.md` says which file proves which promise.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic, helpers included, and has no public interface"
)]

mod book;
mod controllers;
mod harness;
mod installation;
mod objects;
mod on_call;
mod policies;
mod records;

/// The parts of `examples/soak` that judge, with their tests. The soak itself takes minutes.
#[path = "../../examples/soak"]
#[allow(dead_code, reason = "the example uses the rest")]
mod soak {
    mod ending;
    mod ledger;
    mod load_account;
    mod passed;
    mod resources;
}
