//! The rules of the peers.

use std::path::{Path, PathBuf};

/// A file of `policies/`.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/policies").join(name)
}
