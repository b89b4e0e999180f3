//! Where the run spends its time: `INTERLOCK_TEST_PROFILE=1 cargo test --test e2e` keeps a table in `target/e2e-profile.txt`, by reason,
//! while the tests run.
//!
//! Eight tests run side by side, so the seconds of all reasons together are more than those of the run. A wait contains the programs that
//! look whether it has ended.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::harness::assets::target_dir;

/// Set to keep the table.
const PROFILE: &str = "INTERLOCK_TEST_PROFILE";

/// How often the file is written, at most.
const PAUSE: Duration = Duration::from_secs(1);

/// What takes time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// The start of a control plane.
    ControlPlane,
    /// The start of a replica of the webhook.
    Webhook,
    /// A program, from its start to its end.
    Program(String),
    /// Until a condition holds.
    Wait(String),
}

/// Counts and times by reason, and when they were last written.
static TABLE: LazyLock<Option<Mutex<Table>>> = LazyLock::new(|| std::env::var_os(PROFILE).map(|_| Mutex::default()));

#[derive(Default)]
struct Table {
    rows: BTreeMap<Reason, (usize, Duration)>,
    written: Option<Instant>,
}

/// Counts something that took time.
pub(crate) fn took(reason: impl FnOnce() -> Reason, time: Duration) {
    let Some(table) = &*TABLE else { return };
    let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
    let row = table.rows.entry(reason()).or_default();
    *row = (row.0 + 1, row.1 + time);
    if table.written.is_none_or(|written| written.elapsed() > PAUSE) {
        table.written = Some(Instant::now());
        // The table is for people. A test does not fail for it.
        let _ = std::fs::write(target_dir().join("e2e-profile.txt"), text(&table.rows));
    }
}

/// The longest first.
fn text(rows: &BTreeMap<Reason, (usize, Duration)>) -> String {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
    let mut text = String::from("  seconds  times  reason\n");
    for (reason, (times, time)) in rows {
        let reason = match reason {
            Reason::ControlPlane => "a control plane starts".to_owned(),
            Reason::Webhook => "a replica starts".to_owned(),
            Reason::Program(name) => format!("program {name}"),
            Reason::Wait(what) => format!("until {what}"),
        };
        writeln!(text, "{:>9.1} {times:>6}  {reason}", time.as_secs_f64()).expect("a text can be written to");
    }
    text
}

#[test]
fn the_table_begins_with_what_takes_longest() {
    let rows = [
        (Reason::ControlPlane, (2, Duration::from_millis(6_200))),
        (Reason::Wait("it leads".to_owned()), (1, Duration::from_secs(15))),
    ];
    let shown = text(&rows.into());
    assert_eq!(
        shown,
        "  seconds  times  reason\n     15.0      1  until it leads\n      6.2      2  a control plane starts\n"
    );
}
