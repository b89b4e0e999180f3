//! The tables of `docs/failure.md`: every state names an outcome and tests that exist. The e2e tests prove the states.

use crate::harness::named_tests::{exists, rows, tests};

#[test]
fn every_state_is_proved_by_tests_that_exist() {
    let (writes, states): (Vec<_>, Vec<_>) = rows("docs/failure.md").into_iter().partition(|row| row.len() == 6);
    assert_eq!(writes.len(), 11, "{writes:?}");
    let (clean_up, judged) = writes.split_last().unwrap();
    assert!(clean_up[1..].iter().all(|cell| cell == "passes"), "{clean_up:?}");
    for row in judged {
        assert!(row[1..].iter().all(|cell| ["judged", "open", "closed"].contains(&cell.as_str())), "{row:?}");
    }
    assert!(states.len() > 15, "{states:?}");
    for row in &states {
        let [_, outcome, proved] = row.as_slice() else { panic!("{row:?}") };
        assert!(["works", "no answer", "no review", "no cluster", "no stamps"].contains(&outcome.as_str()), "{row:?}");
        let tests = tests(proved);
        assert!(!tests.is_empty(), "{row:?}");
        for (file, name) in tests {
            assert!(exists(&file, &name), "there is no test {name} in {file}: {row:?}");
        }
    }
}
