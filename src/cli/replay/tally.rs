//! Counts the effects of a policy by rule, user and release.

use std::collections::HashMap;
use std::fmt;

use comfy_table::{Cell, Color};
use jiff::Timestamp;

use crate::cli::table;
use crate::offline::replay::{Replayed, ReplayedViolation};

/// The maximum number of rows: even a log of years has few users and releases, but a broken client can invent any
/// number.
pub(super) const MAX_ROWS: usize = 10_000;

/// Reviews, grouped and counted.
#[derive(Default)]
pub(super) struct Tally {
    reviews: usize,
    denied: usize,
    rows: HashMap<TallyKey, TallyRow>,
    /// Findings beyond the maximum number of rows.
    further: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct TallyKey {
    effect: Effect,
    rule: &'static str,
    user: String,
    release: String,
}

/// The effect of one rule on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Effect {
    Denied,
    Warned,
    Audited,
    Undecided,
}

/// A group of similar reviews.
pub(super) struct TallyRow {
    count: usize,
    first: Timestamp,
    last: Timestamp,
    example: String,
}

impl Tally {
    /// Counts a review. Dry runs count too, because they would have been refused too.
    pub(super) fn add(&mut self, replayed: &Replayed) {
        self.reviews += 1;
        self.denied += usize::from(!replayed.allowed);
        for violation in &replayed.violations {
            let key = TallyKey {
                effect: Effect::of(violation),
                rule: violation.rule,
                user: replayed.user.clone(),
                release: release(replayed),
            };
            if !count(&mut self.rows, key, replayed) {
                self.further += 1;
            }
        }
    }

    /// The number of refused reviews.
    pub(super) fn denied(&self) -> usize {
        self.denied
    }
}

impl Effect {
    fn of(violation: &ReplayedViolation) -> Self {
        match violation.mode {
            _ if violation.refuses => Self::Denied,
            _ if violation.undecided => Self::Undecided,
            "audit" => Self::Audited,
            _ => Self::Warned,
        }
    }

    fn cell(self) -> Cell {
        match self {
            Self::Denied => table::verdict(false),
            Self::Warned => Cell::new("warned").fg(Color::Yellow),
            Self::Audited => Cell::new("audited"),
            Self::Undecided => Cell::new("undecided"),
        }
    }
}

/// Counts a review in its row; false if the maximum number of rows is reached.
pub(super) fn count<K: std::hash::Hash + Eq>(rows: &mut HashMap<K, TallyRow>, key: K, replayed: &Replayed) -> bool {
    if let Some(row) = rows.get_mut(&key) {
        row.count += 1;
        row.first = row.first.min(replayed.at);
        row.last = row.last.max(replayed.at);
        return true;
    }
    if rows.len() >= MAX_ROWS {
        return false;
    }
    let Replayed { line, operation, resource, namespace, name, at, .. } = replayed;
    let slash = if namespace.is_empty() { "" } else { "/" };
    let example = format!("{operation} {resource} {namespace}{slash}{name}, line {line}");
    rows.insert(key, TallyRow { count: 1, first: *at, last: *at, example });
    true
}

impl TallyRow {
    /// Count, first and last time, and an example.
    pub(super) fn cells(&self) -> [Cell; 3] {
        let at = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S").to_string();
        let times =
            if self.first == self.last { at(self.first) } else { format!("{}\n{}", at(self.first), at(self.last)) };
        [Cell::new(self.count), Cell::new(times), Cell::new(&self.example)]
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }
}

/// The release of a review, if known.
pub(super) fn release(replayed: &Replayed) -> String {
    replayed.release.as_ref().map(ToString::to_string).unwrap_or_default()
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reviews, denied, rows, further } = self;
        let mut sorted: Vec<_> = rows.iter().collect();
        sorted.sort_by_key(|(key, row)| (key.effect, std::cmp::Reverse(row.count), *key));
        if !sorted.is_empty() {
            let mut table = table::table(&["verdict", "rule", "who", "release", "times", "first, last", "example"]);
            for (key, row) in sorted {
                let [count, times, example] = row.cells();
                let TallyKey { effect, rule, user, release } = key;
                table.add_row([effect.cell(), (*rule).into(), user.into(), release.into(), count, times, example]);
            }
            writeln!(out, "{table}")?;
        }
        if *further > 0 {
            writeln!(out, "and {further} more findings of other users and releases")?;
        }
        write!(out, "{reviews} reviews, {denied} denied")
    }
}
