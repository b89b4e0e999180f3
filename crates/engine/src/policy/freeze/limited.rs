//! The end that the policy sets for a stored Freeze.

use jiff::{SignedDuration, Timestamp};

use super::{Freeze, FreezeState};
use crate::facts::Actor;

/// The limits for Freezes that namespaces store in the cluster. Only the cluster policy sets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamFreezeSettings {
    pub allowed: bool,
    /// The maximum time between the creation of a Freeze and its end.
    pub max_duration: SignedDuration,
}

impl Default for TeamFreezeSettings {
    fn default() -> Self {
        Self {
            allowed: true,
            // Long enough for an incident over a weekend. A longer freeze is planned, and belongs in the policy.
            max_duration: SignedDuration::from_hours(7 * 24),
        }
    }
}

impl TeamFreezeSettings {
    /// A Freeze with its latest end; `None` if the policy does not allow the Freeze.
    #[must_use]
    pub fn limit<'f>(&self, freeze: &'f Freeze) -> Option<LimitedFreeze<'f>> {
        let latest_end = self.latest_end(freeze);
        (self.allowed || latest_end.is_none()).then_some(LimitedFreeze { freeze, latest_end })
    }

    /// When a freeze ends: by itself, or earlier by the policy's limit. `None` for a freeze of a policy that never ends.
    #[must_use]
    pub fn end_of(&self, freeze: &Freeze) -> Option<Timestamp> {
        freeze.own_end().into_iter().chain(self.latest_end(freeze)).min()
    }

    fn latest_end(&self, freeze: &Freeze) -> Option<Timestamp> {
        let created = freeze.creation.as_ref()?.at;
        Some(created.checked_add(self.max_duration).unwrap_or(Timestamp::MAX))
    }
}

/// A freeze with its latest end.
#[derive(Debug, Clone, Copy)]
pub struct LimitedFreeze<'f> {
    pub freeze: &'f Freeze,
    latest_end: Option<Timestamp>,
}

impl<'f> LimitedFreeze<'f> {
    /// A freeze of a policy, which ends only by its own window.
    #[must_use]
    pub fn of_policy(freeze: &'f Freeze) -> Self {
        Self { freeze, latest_end: None }
    }

    /// The state at a moment, and the end of that state.
    #[must_use]
    pub fn at(self, now: Timestamp) -> FreezeState {
        let end = self.latest_end.unwrap_or(Timestamp::MAX);
        if now >= end {
            return FreezeState::Open(None);
        }
        match self.freeze.at(now) {
            FreezeState::InForce(until) => FreezeState::InForce(until.into_iter().chain(self.latest_end).min()),
            FreezeState::Open(next) => FreezeState::Open(next.filter(|next| *next < end)),
        }
    }

    /// Whether the freeze stops an actor from starting operations at a moment.
    #[must_use]
    pub fn stops(self, actor: Actor<'_>, now: Timestamp) -> bool {
        !self.freeze.exempts(actor) && matches!(self.at(now), FreezeState::InForce(_))
    }
}
