//! The steady load of single writes, and what each disturbance cost it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::harness::load::Phase;

use super::ledger::Price;

/// Calls without an answer in time: the machine is busy.
const LATE: &str = "deadline exceeded";
/// At most one write in so many may be late.
const RARE: u64 = 500;

/// The counts of all phases of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) right: u64,
    pub(crate) refused: u64,
    pub(crate) closed: u64,
    pub(crate) open: u64,
    pub(crate) unreachable: u64,
}

#[derive(Default)]
struct Sums {
    counts: BTreeMap<&'static str, Count>,
    late: u64,
    reasons: Vec<String>,
}

#[derive(Default)]
pub(crate) struct LoadAccount(Mutex<Sums>);

impl LoadAccount {
    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, during: &'static str, phase: &Phase, price: Price) {
        let mut sums = self.sums();
        let count = sums.counts.entry(during).or_default();
        count.right += phase.right;
        count.refused += phase.refused;
        count.closed += phase.failed.len() as u64;
        count.open += phase.wrong.len() as u64;
        count.unreachable += phase.unreachable;
        sums.late += phase.failed.iter().filter(|failed| failed.contains(LATE)).count() as u64;
        if !is_excused(phase, price) {
            sums.reasons.push(format!("the load during {during}: {phase}"));
        }
    }

    /// By disturbance.
    pub(crate) fn counts(&self) -> Vec<(&'static str, Count)> {
        self.sums().counts.iter().map(|(during, count)| (*during, *count)).collect()
    }

    pub(crate) fn open(&self) -> u64 {
        self.sums().counts.values().map(|count| count.open).sum()
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        let sums = self.sums();
        let right: u64 = sums.counts.values().map(|count| count.right).sum();
        let mut reasons = sums.reasons.clone();
        if sums.late > 1 + right / RARE {
            reasons.push(format!("{} of {right} writes of the load got no answer in time", sums.late));
        }
        reasons
    }
}

fn is_excused(phase: &Phase, price: Price) -> bool {
    let failed = phase.failed.iter().filter(|failed| !failed.contains(LATE)).count();
    match price {
        Price::Nothing => phase.wrong.is_empty() && failed == 0 && phase.unreachable == 0,
        Price::Calls => phase.failed_open_only() && phase.unreachable == 0,
        Price::ApiServer => phase.failed_open_only(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_price_excuses_what_it_names() {
        let failed = Phase { failed: vec!["create: EOF".to_owned()], ..Phase::default() };
        let open = Phase { wrong: vec!["edit: admitted".to_owned()], ..Phase::default() };
        let wrong = Phase { wrong: vec!["overtake: admitted".to_owned()], ..Phase::default() };
        let away = Phase { unreachable: 1, ..Phase::default() };
        let late = Phase { failed: vec!["create: context deadline exceeded".to_owned()], ..Phase::default() };
        for (phase, excused) in [
            (Phase::default(), [true, true, true]),
            (late, [true, true, true]),
            (failed, [false, true, true]),
            (open, [false, true, true]),
            (away, [false, false, true]),
            (wrong, [false, false, false]),
        ] {
            let prices = [Price::Nothing, Price::Calls, Price::ApiServer];
            assert_eq!(prices.map(|price| is_excused(&phase, price)), excused, "{phase}");
        }
    }
}
