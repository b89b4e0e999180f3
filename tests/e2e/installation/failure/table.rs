//! The tables in the documentation: what each kind of write gets for an outcome, and the outcome of each state.

const PAGE: &str = include_str!("../../../../docs/failure.md");

/// One state and the expected value of each kind of write.
pub(super) struct Row {
    pub(super) state: String,
    pub(super) cells: Vec<String>,
}

/// The states that a test proves.
#[track_caller]
pub(super) fn rows(test: &str) -> Vec<Row> {
    let rows: Vec<_> = PAGE.lines().filter(|line| line.starts_with('|') && line.contains(test)).map(row).collect();
    assert_eq!(rows.first().map(|row| row.state.as_str()), Some("all is well"));
    rows
}

fn row(line: &str) -> Row {
    let [state, outcome, _tests] = cells(line).try_into().expect("a state, its outcome and its tests");
    Row { state, cells: writes(&outcome) }
}

/// What each kind of write gets, in the order of the page. Its last line, the clean-up, is tested separately.
fn writes(outcome: &str) -> Vec<String> {
    let mut lines =
        PAGE.lines().skip_while(|line| !line.starts_with("| write |")).take_while(|line| line.starts_with('|'));
    let column = cells(lines.next().expect("the table of writes")).iter().position(|name| name == outcome);
    let column = column.unwrap_or_else(|| panic!("the table of writes has no outcome {outcome}"));
    let mut writes: Vec<_> = lines.skip(1).map(|line| cells(line).swap_remove(column)).collect();
    assert_eq!(writes.pop().as_deref(), Some("passes"));
    writes
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}
