//! The table in the documentation.

/// One state and the expected value of each column.
pub(super) struct Row {
    pub(super) state: String,
    pub(super) cells: Vec<String>,
}

/// The rows that a test proves.
#[track_caller]
pub(super) fn rows(test: &str) -> Vec<Row> {
    let rows =
        include_str!("../../../../docs/failure.md").lines().filter(|line| line.starts_with('|') && line.contains(test));
    let rows: Vec<_> = rows.map(row).collect();
    assert_eq!(rows.first().map(|row| row.state.as_str()), Some("all is well"));
    rows
}

fn row(line: &str) -> Row {
    let mut cells: Vec<_> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let state = cells.remove(0);
    // The last two are the clean-up, which is tested separately, and the tests' names.
    cells.truncate(cells.len() - 2);
    Row { state, cells }
}
