//! `tests/README.md`: every test file is on the page, and every file on the page exists. `docs/threat-model.md`: every
//! row names a test that attacks it, and the test exists. `tests/claims.md`: every sentence of a page that claims something of
//! everybody or for ever names what would fail if it were false.

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

/// The pages whose claims are listed.
const PAGES: [&str; 5] =
    ["README.md", "docs/rules.md", "docs/policies.md", "docs/shared-clusters.md", "docs/policy-reference.md"];

/// The words of a claim about everybody, or for ever.
const ABSOLUTE: [&str; 5] = ["nobody", "any", "whatever", "never", "only"];

/// The sentences of a page that have such a word, in their order: without code blocks, and a cell of a table at a time.
fn claims(page: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut is_code = false;
    for line in page.lines().map(str::trim) {
        if line.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        if is_code || line.starts_with("<!--") {
            continue;
        }
        let is_numbered = line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        let starts = line.is_empty() || is_numbered || ["|", "- ", "#"].iter().any(|mark| line.starts_with(mark));
        match blocks.last_mut().filter(|_| !starts) {
            Some(block) => *block = format!("{block} {line}").trim().to_owned(),
            None => blocks.push(line.to_owned()),
        }
    }
    let cells = blocks.iter().flat_map(|block| match block.starts_with('|') {
        true => block.split('|').collect::<Vec<_>>(),
        false => vec![block.trim_start_matches(['-', '#']).trim_start()],
    });
    let sentences = cells.flat_map(|cell| cell.trim().split_inclusive(". ").map(|sentence| sentence.trim().to_owned()));
    let has_word = |sentence: &String| {
        let mut words = sentence.split(|letter: char| !letter.is_alphanumeric());
        words.any(|word| ABSOLUTE.contains(&word.to_lowercase().as_str()))
    };
    sentences.filter(has_word).collect()
}

#[test]
fn every_absolute_claim_names_what_would_fail_if_it_were_false() {
    let list = fs::read_to_string(repository("tests/claims.md")).unwrap();
    for page in PAGES {
        let (_, section) = list.split_once(&format!("## {page}\n")).unwrap_or_else(|| panic!("no section of {page}"));
        let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
        let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
        let rows: Vec<_> = rows
            .map(|row| row.trim_matches(['|', ' ']).split_once(" | ").unwrap_or_else(|| panic!("two cells: {row}")))
            .collect();
        let listed: Vec<_> = rows.iter().map(|(sentence, _)| (*sentence).to_owned()).collect();
        assert_eq!(listed, claims(&fs::read_to_string(repository(page)).unwrap()), "the claims of {page}");
        for (sentence, proof) in rows {
            let named = tests(proof);
            // Or why it claims nothing of Interlock.
            assert!(!named.is_empty() || (proof.len() > 10 && !proof.contains("::")), "{sentence}: {proof}");
            for (file, name) in named {
                assert!(exists(&file, &name), "there is no test {name} in {file}: {sentence}");
            }
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
