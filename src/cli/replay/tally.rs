//! Counts the effects of a policy by rule, user and release.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use comfy_table::{Cell, Table};
use jiff::Timestamp;

use super::effect::Effect;
use crate::cli::table;
use crate::offline::replay::Replayed;

/// The maximum number of rows. Even a log of years has few users and releases, but a broken client can use any number of names.
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

/// A group of similar reviews.
pub(super) struct TallyRow {
    count: usize,
    first: Timestamp,
    last: Timestamp,
    example: String,
}

impl Tally {
    /// Counts a review. Dry runs count too, because Interlock would have refused them too.
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

    /// A row for each rule, account and release. `width` is in characters; the default is the width of the terminal.
    fn table(&self, width: Option<u16>) -> Table {
        let mut sorted: Vec<_> = self.rows.iter().collect();
        sorted.sort_by_key(|(key, row)| (key.effect, Reverse(row.count), *key));
        let mut table = table::table(&["verdict", "rule, who, release", "times, first, last", "example"]);
        if let Some(width) = width {
            table.set_width(width);
        }
        for (key, row) in sorted {
            let [times, example] = row.cells();
            let TallyKey { effect, rule, user, release } = key;
            table.add_row([effect.cell(), lines([*rule, user, release]).into(), times, example]);
        }
        table::fit_words(&mut table, 1, self.rows.keys().map(|key| key.rule));
        table
    }
}

/// Counts a review in its row. False if a new row would exceed the maximum.
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
    let Replayed { line, operation, at, .. } = replayed;
    let example = format!("{operation} {}, line {line}", object_of(replayed));
    rows.insert(key, TallyRow { count: 1, first: *at, last: *at, example });
    true
}

impl TallyRow {
    /// Count with first and last time, and an example.
    pub(super) fn cells(&self) -> [Cell; 2] {
        let [first, last] = [self.first, self.last].map(|time| time.strftime("%Y-%m-%d %H:%M:%S"));
        let last = if self.first == self.last { String::new() } else { format!("\n{last}") };
        [Cell::new(format!("{}\n{first}{last}", self.count)), Cell::new(&self.example)]
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }
}

/// `deployments.apps shop/web`.
pub(super) fn object_of(replayed: &Replayed) -> String {
    let Replayed { resource, namespace, name, .. } = replayed;
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{resource} {namespace}{slash}{name}")
}

/// The lines of a cell, without empty ones.
pub(super) fn lines<'l>(lines: impl IntoIterator<Item = &'l str>) -> String {
    lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The release of a review, if known.
pub(super) fn release(replayed: &Replayed) -> String {
    replayed.release.as_ref().map(ToString::to_string).unwrap_or_default()
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reviews, denied, rows, further } = self;
        if !rows.is_empty() {
            writeln!(out, "{}", self.table(None))?;
        }
        if *further > 0 {
            writeln!(out, "and {further} more findings of other users and releases")?;
        }
        write!(out, "{reviews} reviews, {denied} denied")
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::rules;
    use interlock_engine::ways_out::WaysOut;

    use super::*;
    use crate::offline::replay::{ReplayedContext, ReplayedViolation};

    #[test]
    fn rule_names_are_not_broken_in_80_columns() {
        let mut tally = Tally::default();
        for rule in rules::all() {
            let violation = ReplayedViolation {
                rule: rule.as_str(),
                mode: "enforce",
                message: "no".to_owned(),
                ways_out: WaysOut::default(),
                undecided: false,
                refuses: true,
                pointers: Vec::new(),
            };
            tally.add(&Replayed {
                line: 1,
                uid: String::new(),
                operation: "UPDATE".to_owned(),
                resource: "clusterrolebindings.rbac.authorization.k8s.io".to_owned(),
                namespace: "shop".to_owned(),
                name: "a-rather-long-name-of-an-object".to_owned(),
                user: "system:serviceaccount:flux-system:helm-controller".to_owned(),
                allowed: false,
                code: 403,
                violations: vec![violation],
                warnings: Vec::new(),
                patch: None,
                release: None,
                at: Timestamp::UNIX_EPOCH,
                context: ReplayedContext::default(),
            });
        }
        let table = tally.table(Some(80)).to_string();
        assert!(table.lines().all(|line| line.trim_end().chars().count() <= 80), "{table}");
        for rule in rules::all() {
            assert!(table.contains(&format!(" {} ", rule.as_str())), "{} in\n{table}", rule.as_str());
        }
    }
}
