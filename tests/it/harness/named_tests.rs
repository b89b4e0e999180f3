//! Tables of the documentation whose rows name tests.

use std::fs;

use crate::harness::binary::repository;

/// The cells of each row of a page's tables, below their headings.
pub(crate) fn rows(page: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(repository(page)).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let tables = lines.split(|line| !line.starts_with('|'));
    let rows = tables.flat_map(|table| table.iter().skip(2));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The file and the name of each test in a cell.
pub(crate) fn tests(cell: &str) -> Vec<(String, String)> {
    let names = cell.split('`').filter_map(|part| part.split_once("::"));
    names.map(|(file, name)| (file.to_owned(), name.to_owned())).collect()
}

/// Whether a file has a test of this name. Files outside `src/` and `crates/` are in `tests/`.
pub(crate) fn exists(file: &str, name: &str) -> bool {
    let root = repository("");
    let is_source = file.starts_with("src/") || file.starts_with("crates/");
    let file = if is_source { root.join(file) } else { root.join("tests").join(file) };
    fs::read_to_string(file).is_ok_and(|source| {
        source
            .match_indices(&format!("fn {name}("))
            .any(|(at, _)| source[..at].trim_end().lines().rev().take(2).any(is_attribute))
    })
}

/// Whether a line is the attribute of a test. A line with `async` may follow it.
fn is_attribute(line: &str) -> bool {
    line.trim_start().strip_prefix("#[").is_some_and(|attribute| attribute.contains("test"))
}
