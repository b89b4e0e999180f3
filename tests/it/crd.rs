//! The committed definitions match the types.

use std::fs;

use release_interlock::world::kubernetes::{freeze_definition, override_definition};

use crate::harness::binary::repository;

/// Set to write the file instead of comparing it.
const WRITE: &str = "INTERLOCK_WRITE_MANIFESTS";

#[test]
fn the_committed_definitions_are_those_of_the_types() {
    for (name, made) in
        [("releaseoverrides", override_definition::manifest()), ("freezes", freeze_definition::manifest())]
    {
        let (file, made) = (repository(&format!("manifests/base/{name}.yaml")), made.unwrap());
        if std::env::var_os(WRITE).is_some() {
            fs::write(&file, &made).unwrap();
        }
        let committed = fs::read_to_string(&file).unwrap_or_default();
        assert!(committed == made, "{} is old; {WRITE}=1 cargo test --test it crd writes it", file.display());
    }
}
