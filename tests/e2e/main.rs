//! Tests on real parts: a real API server with its controllers, the real helm 3 and helm 4, and the built `interlock`.
//!
//! What a test uses: a [`plane::Plane`] (shared by all tests, or its own), a [`namespace::Namespace`] of its own in it,
//! and in that the clients of [`clients`] as somebody, the charts of [`chart`] and the views of [`records`]. Where Interlock
//! itself is to be installed, a [`cluster::Cluster`]: a plane with a [`kubelet`] and a [`balancer`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic, helpers included, and has no public interface"
)]

mod acts;
mod addon_controller;
mod assets;
mod balancer;
mod chart;
mod clients;
mod cluster;
mod controllers;
mod decisions;
mod eventually;
mod forging;
mod gate;
mod kubelet;
mod load;
mod namespace;
mod origins;
mod plane;
mod process;
mod records;
mod rendered;
mod webhook;

mod adoption;
mod audit_log;
mod bystanders;
mod certificates;
mod deletion;
mod doctor;
mod drift;
mod failure;
mod flux;
mod hard_mode;
mod helm_releases;
mod in_transition;
mod installed;
mod interrupted;
mod kill;
mod large_chart;
mod leftovers;
mod life;
mod manifests;
mod manual_deletes;
mod manual_edits;
mod olm;
mod olm_resume;
mod on_call;
mod outage;
mod overrides;
mod playground;
mod policies;
mod profiles;
mod races;
mod recovery;
mod reports;
mod rights;
mod scaling;
mod scanning;
mod smoke;
mod storm;
mod sveltos;
mod tampering;
