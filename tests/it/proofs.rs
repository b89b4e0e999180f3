//! `tests/README.md`: every test file is on the page, and every file on the page exists. `docs/threat-model.md`: every
//! row names a test that attacks it, and the test exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::harness::binary::repository;
use crate::harness::named_tests::{exists, rows, tests};

/// The files of the page's links, relative to `tests/`.
fn linked() -> BTreeSet<String> {
    let page = fs::read_to_string(repository("tests/README.md")).unwrap();
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// The files below a directory that have tests, relative to `tests/`.
fn with_tests(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            with_tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && fs::read_to_string(&path)
                .unwrap()
                .lines()
                .any(|line| line == "#[test]" || line.contains("#[tokio::test"))
        {
            let relative = path.strip_prefix(repository("tests")).unwrap();
            found.insert(relative.to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn every_test_file_proves_a_promise_on_the_page() {
    let mut files = BTreeSet::new();
    for directory in ["tests/e2e", "tests/it", "tests/model"] {
        with_tests(&repository(directory), &mut files);
    }
    // This file proves nothing about Interlock.
    files.remove("it/proofs.rs");
    assert!(files.len() > 50, "{files:?}");
    let missing: Vec<_> = files.difference(&linked()).cloned().collect();
    assert!(missing.is_empty(), "tests/README.md does not name {missing:?}");
}

#[test]
fn every_file_on_the_page_exists() {
    let linked = linked();
    assert!(linked.len() > 50, "{linked:?}");
    let missing: Vec<_> = linked.iter().filter(|file| !repository("tests").join(file).exists()).collect();
    assert!(missing.is_empty(), "tests/README.md names {missing:?}, which do not exist");
}

#[test]
fn every_threat_is_attacked_by_tests_that_exist() {
    let rows = rows("docs/threat-model.md");
    assert!(rows.len() > 12, "{rows:?}");
    for row in &rows {
        let [_, threat, defence, attacks] = row.as_slice() else { panic!("four cells: {row:?}") };
        assert!(!threat.is_empty() && !defence.is_empty(), "{row:?}");
        assert!(!tests(attacks).is_empty(), "no test attacks {threat}");
        for (file, name) in tests(attacks) {
            assert!(exists(&file, &name), "there is no test {name} in {file}: {threat}");
        }
    }
}

#[test]
fn a_test_that_is_not_there_is_noticed() {
    assert!(exists("it/proofs.rs", "a_test_that_is_not_there_is_noticed"));
    assert!(!exists("it/proofs.rs", "with_tests"));
    assert!(!exists("it/proofs.rs", "somewhere_else"));
    assert!(!exists("it/nowhere.rs", "with_tests"));
}
