//! The committed definition matches the type.

use std::fs;

use release_interlock::world::kubernetes::override_definition;

use crate::harness::binary::repository;

/// Set to write the file instead of comparing it.
const WRITE: &str = "INTERLOCK_WRITE_MANIFESTS";

#[test]
fn the_committed_definition_is_that_of_the_type() {
    let file = repository("manifests/base/releaseoverrides.yaml");
    let made = override_definition::manifest().unwrap();
    if std::env::var_os(WRITE).is_some() {
        fs::write(&file, &made).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == made, "{} is old; {WRITE}=1 cargo test --test it crd writes it", file.display());
}
