//! Finds the problems of a release, and the one next step. `status`, `scan`, `wait`, `unstick` and the page print only this
//! diagnosis.
//!
//! [`diagnose`] is pure. `examine` reads only the state that a diagnosis needs: the checks of the runbook for a stuck operation, an
//! override if these checks fail, and a freeze if the step would start an operation.

mod examine;
mod next_step;
mod ownership;
mod problem;
mod state;

use interlock_engine::owners::ReleaseOwner;
use jiff::Timestamp;

use super::scan::FindingKind;
pub use examine::of_release;
pub(crate) use examine::{Checks, Examiner, after_unstick};
pub use next_step::NextStep;
pub(crate) use next_step::out_of_freeze;
pub use problem::Problem;
pub use state::Stuck;
pub(crate) use state::{BrokenRecords, ReleaseRecords, ReleaseState, VALUES};

/// The problems of a release, and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub owner: ReleaseOwner,
    pub stuck: Stuck,
    /// When the operation in flight, or a record that OLM is writing, starts to count as stuck.
    pub stuck_from: Option<Timestamp>,
    /// The worst first.
    pub problems: Vec<Problem>,
    /// `None` if there is nothing to do.
    pub next: Option<NextStep>,
}

/// Finds the problems of a release, and the next step; `None` without records.
#[must_use]
pub(crate) fn diagnose(state: &ReleaseState<'_>) -> Option<Diagnosis> {
    let newest = state.history.newest()?;
    let (stuck, stuck_from) = state.stuck(newest);
    let owner = state.owner(newest);
    let problems = problem::problems(state, newest, stuck);
    let next = next_step::next_step(state, newest, &owner, (stuck, stuck_from), &problems);
    Some(Diagnosis { owner, stuck, stuck_from, problems, next })
}

impl Diagnosis {
    /// Whether a problem of this kind was found.
    #[must_use]
    pub fn has(&self, kind: FindingKind) -> bool {
        self.problems.iter().any(|problem| problem.kind == kind)
    }
}

#[cfg(test)]
mod tests;
