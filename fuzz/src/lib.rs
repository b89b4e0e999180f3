//! The bodies of the fuzz targets. libFuzzer calls them (`fuzz_targets/`), and so does `cargo test`, for every file of the
//! committed corpora (`tests/it/fuzz.rs`).
//!
//! A body panics if Interlock breaks a promise about its input: no panic, bounded work, and the same result as a slow and
//! plain reference.

pub mod audit;
pub mod declared;
pub mod delta;
pub mod evidence;
pub mod intake;
mod json;
pub mod managed_fields;
pub mod manifest;
pub mod payload;
pub mod policy;
pub mod record_head;
pub mod review;
mod scene;
pub mod stamp;

/// Whether bytes are an input of a target. The others are not kept in a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    Own,
    Foreign,
}

/// A fuzz target by the name of its corpus.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]) -> Input,
}

/// Every target.
pub const TARGETS: [Target; 12] = [
    Target { name: "audit", run: audit::run },
    Target { name: "declared", run: declared::run },
    Target { name: "delta", run: delta::run },
    Target { name: "evidence", run: evidence::run },
    Target { name: "intake", run: intake::run },
    Target { name: "managed_fields", run: managed_fields::run },
    Target { name: "manifest", run: manifest::run },
    Target { name: "payload", run: payload::run },
    Target { name: "policy", run: policy::run },
    Target { name: "record_head", run: record_head::run },
    Target { name: "review", run: review::run },
    Target { name: "stamp", run: stamp::run },
];
