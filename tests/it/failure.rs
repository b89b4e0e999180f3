//! The table of `docs/failure.md`: every row names tests that exist. The e2e tests prove the rows.

use std::fs;

use crate::harness::binary::repository;

/// The cells of each row below the heading.
fn rows() -> Vec<Vec<String>> {
    let file = repository("docs/failure.md");
    let text = fs::read_to_string(file).unwrap();
    let rows = text.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The file and the name of each test in a cell.
fn tests(cell: &str) -> Vec<(String, String)> {
    let names = cell.split('`').filter_map(|part| part.split_once("::"));
    names.map(|(file, name)| (file.to_owned(), name.to_owned())).collect()
}

fn exists(file: &str, name: &str) -> bool {
    let root = repository("");
    let file = if file.starts_with("src/") { root.join(file) } else { root.join("tests").join(file) };
    fs::read_to_string(file).is_ok_and(|source| {
        source
            .match_indices(&format!("fn {name}("))
            .any(|(at, _)| source[..at].trim_end().lines().rev().take(2).any(|line| line.contains("test")))
    })
}

#[test]
fn every_row_is_proved_by_tests_that_exist() {
    let rows = rows();
    assert!(rows.len() > 15, "{rows:?}");
    for row in &rows {
        assert_eq!(row.len(), 13, "{row:?}");
        let (proved, cells) = row.split_last().unwrap();
        assert!(cells[1..11].iter().all(|cell| ["judged", "open", "closed", "-"].contains(&cell.as_str())), "{row:?}");
        assert_eq!(cells[11], "passes", "{row:?}");
        let tests = tests(proved);
        assert!(!tests.is_empty(), "{row:?}");
        for (file, name) in tests {
            assert!(exists(&file, &name), "there is no test {name} in {file}: {row:?}");
        }
    }
}

#[test]
fn a_test_that_is_not_there_is_noticed() {
    assert!(exists("it/failure.rs", "a_test_that_is_not_there_is_noticed"));
    assert!(!exists("it/failure.rs", "rows"));
    assert!(!exists("it/failure.rs", "somewhere_else"));
    assert!(!exists("it/nowhere.rs", "rows"));
}
