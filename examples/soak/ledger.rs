//! Every act with its ending, every disturbance with its time, and which ending a disturbance excuses.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ending::{Cause, Ending, Expect, judge};

/// How long the effects of a disturbance last: a call that began at its end has three seconds.
const AFTER: Duration = Duration::from_secs(4);
/// Calls without an answer in time: at most one act in so many. The machine is busy, and Interlock is not the cause.
const LATE: u64 = 500;
/// How much of a client's words is shown.
const SHOWN: usize = 1500;

/// What a disturbance may cost, by docs/failure.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Price {
    Nothing,
    /// Calls of the webhook.
    Calls,
    /// Calls of the webhook, and the API server itself.
    ApiServer,
}

/// The counts of one kind of act.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) acts: u64,
    pub(crate) right: u64,
    pub(crate) closed: u64,
    pub(crate) open: u64,
    pub(crate) undecided: u64,
    pub(crate) unreachable: u64,
    pub(crate) wrong: u64,
}

/// An act that did not end as expected.
#[derive(Debug, Clone)]
struct Fault {
    what: String,
    ending: Ending,
    from: Instant,
    to: Instant,
}

/// A disturbance, from its first effect to its end.
#[derive(Debug, Clone)]
struct Window {
    price: Price,
    from: Instant,
    to: Option<Instant>,
}

#[derive(Debug, Default)]
struct Pages {
    tallies: BTreeMap<&'static str, Tally>,
    failures: BTreeMap<(String, &'static str), u64>,
    faults: Vec<Fault>,
    windows: Vec<Window>,
    disturbances: BTreeMap<&'static str, u64>,
}

/// What happened so far. Shared by everybody who acts.
pub(crate) struct Ledger {
    /// The entries that fail closed.
    closed: Vec<String>,
    pages: Mutex<Pages>,
}

impl Ledger {
    pub(crate) fn new(closed: Vec<String>) -> Self {
        Self { closed, pages: Mutex::default() }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an act that ends now. Returns whether it ended as expected.
    pub(crate) fn act(&self, kind: &'static str, expect: Expect, success: bool, text: &str, took: Duration) -> bool {
        let ending = judge(expect, success, text);
        let to = Instant::now();
        let from = to.checked_sub(took).unwrap_or(to);
        self.note(kind, ending, from, to)
    }

    fn note(&self, kind: &'static str, ending: Ending, from: Instant, to: Instant) -> bool {
        let mut pages = self.pages();
        let tally = pages.tallies.entry(kind).or_default();
        tally.acts += 1;
        match &ending {
            Ending::Right => {
                tally.right += 1;
                return true;
            }
            Ending::Closed { entry, cause, .. } => {
                tally.closed += 1;
                *pages.failures.entry((entry.clone(), cause.name())).or_default() += 1;
            }
            Ending::Undecided(_) => tally.undecided += 1,
            Ending::Open => tally.open += 1,
            Ending::Alone(_) => tally.unreachable += 1,
            Ending::Wrong(_) => tally.wrong += 1,
        }
        pages.faults.push(Fault { what: kind.to_owned(), ending, from, to });
        false
    }

    /// A disturbance begins. Returns its number.
    pub(crate) fn begin(&self, what: &'static str, price: Price) -> usize {
        let mut pages = self.pages();
        *pages.disturbances.entry(what).or_default() += 1;
        pages.windows.push(Window { price, from: Instant::now(), to: None });
        pages.windows.len() - 1
    }

    /// Its effects end now.
    pub(crate) fn end(&self, number: usize) {
        self.pages().windows[number].to = Some(Instant::now());
    }

    /// By kind.
    pub(crate) fn tallies(&self) -> Vec<(&'static str, Tally)> {
        self.pages().tallies.iter().map(|(kind, tally)| (*kind, *tally)).collect()
    }

    /// Failed calls by entry and cause.
    pub(crate) fn failures(&self) -> Vec<((String, &'static str), u64)> {
        self.pages().failures.iter().map(|(key, count)| (key.clone(), *count)).collect()
    }

    pub(crate) fn disturbances(&self) -> Vec<(&'static str, u64)> {
        self.pages().disturbances.iter().map(|(what, count)| (*what, *count)).collect()
    }

    /// Forbidden acts that were admitted.
    pub(crate) fn open(&self) -> u64 {
        self.pages().tallies.values().map(|tally| tally.open).sum()
    }

    /// The endings that nothing excuses.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let pages = self.pages();
        let mut reasons: Vec<_> = pages.faults.iter().filter_map(|fault| self.reason(fault, &pages.windows)).collect();
        let calls = [Price::Calls, Price::ApiServer];
        let late = |fault: &&Fault| is_late(&fault.ending) && !is_during(fault, &pages.windows, &calls);
        let late = pages.faults.iter().filter(late).count() as u64;
        let acts: u64 = pages.tallies.values().map(|tally| tally.acts).sum();
        if late > 1 + acts / LATE {
            reasons.push(format!("{late} of {acts} acts got no answer in time"));
        }
        reasons
    }

    fn reason(&self, fault: &Fault, windows: &[Window]) -> Option<String> {
        let Fault { what, ending, .. } = fault;
        let during = |prices: &[Price]| is_during(fault, windows, prices);
        let excused = match ending {
            Ending::Right => true,
            Ending::Closed { entry, .. } if !self.closed.contains(entry) => false,
            Ending::Closed { cause: Cause::Late, .. } => true,
            Ending::Closed { cause: Cause::Other, .. } | Ending::Wrong(_) => false,
            Ending::Closed { .. } | Ending::Open => during(&[Price::Calls, Price::ApiServer]),
            Ending::Undecided(_) | Ending::Alone(_) => during(&[Price::ApiServer]),
        };
        let text: String = format!("{ending:?}").replace("\\n", "\n    ").chars().take(SHOWN).collect();
        (!excused).then(|| format!("{what}: {text}"))
    }
}

/// Whether a disturbance of one of these prices had an effect while the act went on.
fn is_during(fault: &Fault, windows: &[Window], prices: &[Price]) -> bool {
    let overlaps = |window: &Window| {
        fault.to >= window.from
            && window.to.is_none_or(|end| fault.from <= end + AFTER)
            && prices.contains(&window.price)
    };
    windows.iter().any(overlaps)
}

fn is_late(ending: &Ending) -> bool {
    matches!(ending, Ending::Closed { cause: Cause::Late, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "create-delete.records.interlock.dev";
    const SECOND: Duration = Duration::from_secs(1);

    fn closed(entry: &str, cause: Cause) -> Ending {
        Ending::Closed { entry: entry.to_owned(), cause, why: String::new() }
    }

    /// A ledger in which a disturbance lasted from second 100 to second 110.
    fn disturbed(price: Price) -> (Ledger, Instant) {
        let ledger = Ledger::new(vec![ENTRY.to_owned()]);
        let start = Instant::now();
        let number = ledger.begin("test", price);
        ledger.end(number);
        ledger.pages().windows[number] = Window { price, from: start + 100 * SECOND, to: Some(start + 110 * SECOND) };
        (ledger, start)
    }

    fn reasons(price: Price, ending: Ending, [from, to]: [u32; 2]) -> usize {
        let (ledger, start) = disturbed(price);
        ledger.note("edit", ending, start + from * SECOND, start + to * SECOND);
        ledger.reasons().len()
    }

    #[test]
    fn only_a_disturbance_that_costs_calls_excuses_a_failed_call() {
        let ended = || closed(ENTRY, Cause::Ended);
        for ending in [ended(), closed(ENTRY, Cause::Refused), Ending::Open] {
            assert_eq!(reasons(Price::Calls, ending.clone(), [105, 106]), 0, "{ending:?}");
            assert_eq!(reasons(Price::ApiServer, ending.clone(), [105, 106]), 0, "{ending:?}");
            assert_eq!(reasons(Price::Nothing, ending.clone(), [105, 106]), 1, "{ending:?}");
            assert_eq!(reasons(Price::Calls, ending.clone(), [90, 99]), 1, "{ending:?}");
            assert_eq!(reasons(Price::Calls, ending.clone(), [115, 116]), 1, "{ending:?}");
        }
        for ending in [Ending::Alone(String::new()), Ending::Undecided(String::new())] {
            assert_eq!(reasons(Price::ApiServer, ending.clone(), [90, 101]), 0, "{ending:?}");
            assert_eq!(reasons(Price::Calls, ending.clone(), [105, 106]), 1, "{ending:?}");
        }
    }

    #[test]
    fn some_endings_have_no_excuse() {
        for ending in [
            Ending::Wrong("no".to_owned()),
            closed(ENTRY, Cause::Other),
            // An entry that fails open refuses nothing when it fails.
            closed("objects.interlock.dev", Cause::Ended),
        ] {
            assert_eq!(reasons(Price::ApiServer, ending.clone(), [105, 106]), 1, "{ending:?}");
        }
    }

    #[test]
    fn a_few_late_answers_are_the_machines_and_many_are_a_reason() {
        let ledger = Ledger::new(vec![ENTRY.to_owned()]);
        let now = Instant::now();
        assert!(!ledger.note("edit", closed(ENTRY, Cause::Late), now, now));
        assert!(ledger.note("edit", Ending::Right, now, now));
        assert!(ledger.reasons().is_empty());
        ledger.note("edit", closed(ENTRY, Cause::Late), now, now);
        assert_eq!(ledger.reasons(), ["2 of 3 acts got no answer in time"]);
        let tally = Tally { acts: 3, right: 1, closed: 2, ..Tally::default() };
        assert_eq!(ledger.tallies(), [("edit", tally)]);
    }
}
