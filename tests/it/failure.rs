//! The table of `docs/failure.md`: every row names tests that exist. The e2e tests prove the rows.

use crate::harness::named_tests::{exists, rows, tests};

#[test]
fn every_row_is_proved_by_tests_that_exist() {
    let rows = rows("docs/failure.md");
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
