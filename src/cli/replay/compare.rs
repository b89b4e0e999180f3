//! Compares the verdicts of two policies for the same recording.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::tally::{TallyRow, count, lines, release};
use crate::cli::table;
use crate::offline::replay::{Replayed, ReplayedViolation, ReviewResult};

/// The reviews with different verdicts, grouped and counted.
#[derive(Default)]
pub(super) struct PolicyComparison {
    reviews: usize,
    differing: usize,
    rows: HashMap<ComparisonKey, TallyRow>,
    /// Reviews beyond the maximum number of rows.
    further: usize,
}

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ComparisonKey {
    here: String,
    there: String,
    user: String,
    release: String,
}

/// A review with different verdicts: one line of `replay --compare -o json`.
#[derive(Serialize)]
pub(super) struct VerdictDifference<'r> {
    line: usize,
    uid: &'r str,
    operation: &'r str,
    resource: &'r str,
    namespace: &'r str,
    name: &'r str,
    user: &'r str,
    /// With `--policies`.
    policies: PolicyVerdict<'r>,
    /// With `--compare`.
    compare: PolicyVerdict<'r>,
}

#[derive(Serialize)]
struct PolicyVerdict<'r> {
    allowed: bool,
    code: u16,
    violations: &'r [ReplayedViolation],
    warnings: &'r [String],
}

impl<'r> PolicyVerdict<'r> {
    fn of(replayed: &'r Replayed) -> Self {
        let Replayed { allowed, code, violations, warnings, .. } = replayed;
        Self { allowed: *allowed, code: *code, violations, warnings }
    }
}

impl PolicyComparison {
    /// Counts a review. Returns the difference if the verdicts differ.
    pub(super) fn add<'r>(&mut self, here: &'r Replayed, there: &'r Replayed) -> Option<VerdictDifference<'r>> {
        self.reviews += 1;
        let (own, other) = (verdict(here), verdict(there));
        if own == other {
            return None;
        }
        self.differing += 1;
        let key = ComparisonKey { here: own, there: other, user: here.user.clone(), release: release(here) };
        if !count(&mut self.rows, key, here) {
            self.further += 1;
        }
        let Replayed { line, uid, operation, resource, namespace, name, user, .. } = here;
        let (policies, compare) = (PolicyVerdict::of(here), PolicyVerdict::of(there));
        Some(VerdictDifference { line: *line, uid, operation, resource, namespace, name, user, policies, compare })
    }

    pub(super) fn differing(&self) -> usize {
        self.differing
    }
}

/// The verdict and its rules, for example `denied: manual-edit`.
fn verdict(replayed: &Replayed) -> String {
    let result = ReviewResult::of(replayed);
    if result == ReviewResult::Allowed {
        return result.as_str().to_owned();
    }
    let rules: Vec<_> = replayed
        .violations
        .iter()
        .map(|it| if it.undecided { format!("{} (undecided)", it.rule) } else { it.rule.to_owned() })
        .collect();
    format!("{}: {}", result.as_str(), rules.join(", "))
}

impl fmt::Display for PolicyComparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reviews, differing, rows, further } = self;
        if !rows.is_empty() {
            let mut sorted: Vec<_> = rows.iter().collect();
            sorted.sort_by_key(|(key, row)| (std::cmp::Reverse(row.count()), *key));
            let mut table = table::table(&["verdicts", "who, release", "times, first, last", "example"]);
            for (ComparisonKey { here, there, user, release }, row) in sorted {
                let [times, example] = row.cells();
                let verdicts = format!("--policies:\n{here}\n--compare:\n{there}");
                table.add_row([verdicts.into(), lines([user.as_str(), release]).into(), times, example]);
            }
            let words = rows.keys().flat_map(|key| [&key.here, &key.there]).flat_map(|verdict| verdict.split(' '));
            table::fit_words(&mut table, 0, words);
            writeln!(out, "{table}")?;
        }
        if *further > 0 {
            writeln!(out, "and {further} more reviews of other users and releases")?;
        }
        write!(out, "{reviews} reviews, {differing} judged differently")
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::cli::replay::tally::MAX_ROWS;
    use crate::offline::replay::ReplayedContext;

    fn judged(user: usize, allowed: bool) -> Replayed {
        Replayed {
            line: 1,
            uid: String::new(),
            operation: "CREATE".to_owned(),
            resource: "secrets".to_owned(),
            namespace: "shop".to_owned(),
            name: "a".to_owned(),
            user: format!("user-{user}"),
            allowed,
            code: 200,
            violations: Vec::new(),
            warnings: Vec::new(),
            patch: None,
            release: None,
            at: Timestamp::UNIX_EPOCH,
            context: ReplayedContext::default(),
        }
    }

    #[test]
    fn differences_beyond_the_table_are_counted() {
        let mut comparison = PolicyComparison::default();
        for user in 0..MAX_ROWS + 3 {
            assert!(comparison.add(&judged(user, false), &judged(user, true)).is_some());
        }
        // This review has a row.
        _ = comparison.add(&judged(0, false), &judged(0, true));
        assert_eq!((comparison.rows.len(), comparison.further, comparison.differing()), (MAX_ROWS, 3, MAX_ROWS + 4));
    }
}
