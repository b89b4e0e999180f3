//! The corpora of the fuzz targets, replayed. libFuzzer finds such inputs (`fuzz/README.md`); a found crash stays in the corpus,
//! and has a named test next to the code that it was in.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;

use crate::harness::binary::repository;

#[allow(unreachable_pub, reason = "the same files are the library of the fuzz crate")]
#[path = "../../fuzz/src/lib.rs"]
mod targets;

use targets::{Input, TARGETS, Target};

/// The most bytes of all corpora. They are in the repository.
const MAX_BYTES: usize = 2 << 20;

/// The fewest files of a corpus. A minimised one has at least as many paths to take.
const MIN_FILES: usize = 10;

/// The files of a corpus, by name.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let directory = repository("fuzz/corpus").join(name);
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let files = entries.map(|entry| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap())
    });
    files.collect()
}

/// Runs a target on its corpus.
fn replay(target: &Target) {
    let Target { name, run } = target;
    let files = corpus(name);
    assert!(files.len() >= MIN_FILES, "fuzz/corpus/{name} has only {} files", files.len());
    let (mut crashes, mut foreign) = (Vec::new(), Vec::new());
    for (file, input) in &files {
        match catch_unwind(|| run(input)) {
            Ok(Input::Own) => {}
            Ok(Input::Foreign) => foreign.push(file),
            Err(_) => crashes.push(file),
        }
    }
    let all = files.len();
    assert!(crashes.is_empty(), "fuzz/corpus/{name}: {} of {all} files fail: {crashes:?}", crashes.len());
    assert!(
        foreign.is_empty(),
        "fuzz/corpus/{name}: {} of {all} files are no input of the target: {foreign:?}",
        foreign.len()
    );
}

macro_rules! replayed {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(TARGETS.iter().find(|target| target.name == stringify!($name)).unwrap());
        })*

        /// The targets that have a test here.
        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
    };
}

replayed! { audit declared delta evidence intake managed_fields manifest payload policy record_head review stamp }

#[test]
fn every_target_has_a_corpus_a_binary_and_a_test() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let names = |directory: &str, suffix: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(repository(directory)).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter_map(|name| Some(name.to_str()?.strip_suffix(suffix)?.to_owned())).collect()
    };
    assert_eq!(names("fuzz/corpus", ""), targets);
    assert_eq!(names("fuzz/fuzz_targets", ".rs"), targets.iter().cloned().chain(["mutator".to_owned()]).collect());
    assert_eq!(REPLAYED.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), targets);
}

#[test]
fn the_corpora_are_small() {
    let bytes: usize = TARGETS.iter().flat_map(|target| corpus(target.name)).map(|(_, input)| input.len()).sum();
    assert!(bytes < MAX_BYTES, "{} KiB in fuzz/corpus", bytes >> 10);
}

#[test]
fn an_input_that_is_none_is_noticed() {
    for Target { name, run } in TARGETS {
        // Any bytes may be a payload.
        assert!(name == "payload" || run(b"\xff\xfe") == Input::Foreign, "{name}");
    }
}
