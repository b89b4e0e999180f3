//! What fails open and what fails closed: the table of `docs/failure.md`, proved on a real API server.

mod columns;
mod flood;
mod states;
mod table;

use std::time::Duration;

use crate::harness::eventually::{eventually, within};
use crate::harness::plane::Plane;
use columns::Columns;
use states::States;

/// How long the API server may take to apply another registration, in the slowest row.
const HEARD: Duration = Duration::from_secs(40);

#[test]
fn every_state_is_as_the_table_says() {
    let plane = Plane::breakable();
    let rows = table::rows("e2e/installation/failure.rs::every_state_is_as_the_table_says");
    let states = States::new(&plane);
    let columns = Columns::new(&plane);
    std::thread::scope(|scope| {
        for row in &rows {
            scope.spawn(|| columns.prepare(&row.state));
        }
    });
    for row in &rows {
        states.enter(&row.state);
        eventually(HEARD, "the API server has heard of the state", || columns.heard_of(states.sign(&row.state)));
        // In parallel: the namespace controller is slow.
        std::thread::scope(|scope| {
            let cleaned = scope.spawn(|| {
                within(HEARD, "the garbage collector and the namespace controller clean up", || {
                    columns.clean_up(&row.state)
                })
            });
            let seen = within(HEARD, &row.state, || {
                let seen = columns.all();
                if seen == row.cells { Ok(()) } else { Err(format!("{seen:?}\nbut the table says\n{:?}", row.cells)) }
            });
            seen.unwrap_or_else(|error| panic!("{error}\n{}", columns.transcript()));
            let cleaned = cleaned.join().expect("cleaning up ends");
            cleaned.unwrap_or_else(|error| panic!("{}: {error}", row.state));
        });
    }
    // Back to the first state.
    states.enter(&rows[0].state);
    eventually(HEARD, "everything is judged again", || {
        let seen = columns.all();
        if seen == rows[0].cells { Ok(()) } else { Err(format!("{seen:?}")) }
    });
}
