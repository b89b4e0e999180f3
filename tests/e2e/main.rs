//! Tests on real parts: a real API server with its controllers, the real helm 3 and helm 4, and the built `interlock`.
//!
//! What a test uses: a [`harness::plane::Plane`] (shared by all tests, or its own), a [`harness::namespace::Namespace`] of
//! its own in it, and in that the clients of [`harness::clients`] as somebody, the charts of [`harness::chart`] and the
//! views of [`harness::records`]. Where Interlock itself is to be installed, a [`harness::cluster::Cluster`]: a plane with a
//! [`harness::kubelet`] and a [`harness::balancer`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic, helpers included, and has no public interface"
)]

mod controllers;
mod harness;
mod installation;
mod objects;
mod on_call;
mod policies;
mod records;
