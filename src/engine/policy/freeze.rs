//! Freezes: when no operation may start.

mod window;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use window::{DayWindow, Interval, Window};

use super::Globs;
use super::globs::matches;
use crate::engine::facts::Actor;
use crate::engine::release::ReleaseRef;

/// A freeze. What starts in it is refused; what has started before goes on.
#[derive(Debug, Clone)]
pub struct Freeze {
    pub name: String,
    /// Why. Refused users read it.
    pub reason: String,
    /// What it concerns, in the words of the policy: `every release`, `releases web, api-* in namespaces prod-*`.
    pub scope: String,
    pub(in crate::engine) window: Window,
    pub(in crate::engine) effect: FreezeEffect,
    /// The zone that its times are in, and in which they are shown.
    pub(in crate::engine) zone: TimeZone,
    /// Names of releases; `None` for every release.
    pub(in crate::engine) releases: Option<Globs>,
    /// Namespaces of releases; `None` for every namespace.
    pub(in crate::engine) namespaces: Option<Globs>,
    /// Users that it does not concern.
    pub(in crate::engine) exempt_users: Globs,
    /// Groups whose users it does not concern.
    pub(in crate::engine) exempt_groups: Globs,
}

/// Whether operations start inside of the window or outside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeEffect {
    /// No operation starts in the window.
    Deny,
    /// Operations start in the window only.
    AllowOnly,
}

/// A freeze at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeState {
    /// No operation starts; until then, or for good.
    InForce(Option<Timestamp>),
    /// Operations start; until then, or for good.
    Open(Option<Timestamp>),
}

impl Freeze {
    /// Whether it concerns a release, by the namespace of its records.
    #[must_use]
    pub fn concerns(&self, release: &ReleaseRef) -> bool {
        matches(self.namespaces.as_ref(), Some(&release.namespace))
            && matches(self.releases.as_ref(), Some(&release.name))
    }

    /// Whether it concerns some release of a namespace.
    #[must_use]
    pub fn concerns_namespace(&self, namespace: &str) -> bool {
        matches(self.namespaces.as_ref(), Some(namespace))
    }

    /// Whether it does not concern a user.
    #[must_use]
    pub fn exempts(&self, actor: Actor<'_>) -> bool {
        self.exempt_users.contains(actor.name) || actor.groups.iter().any(|group| self.exempt_groups.contains(group))
    }

    /// Whether its window comes every week.
    pub(in crate::engine) fn is_weekly(&self) -> bool {
        matches!(self.window, Window::Weekly(_))
    }

    /// Whether its window overlaps with that of another freeze, ever.
    pub(in crate::engine) fn meets(&self, other: &Self) -> bool {
        self.window.meets(&self.zone, &other.window, &other.zone)
    }

    /// Whether it is in force at a moment, and until when that stays so.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> FreezeState {
        let (current, next) = self.window.around(now, &self.zone);
        let (end, begin) = (current.map(|span| span.end), next.map(|span| span.start));
        match (self.effect, end) {
            (FreezeEffect::Deny, Some(end)) => FreezeState::InForce(Some(end)),
            (FreezeEffect::Deny, None) => FreezeState::Open(begin),
            (FreezeEffect::AllowOnly, Some(end)) => FreezeState::Open(Some(end)),
            (FreezeEffect::AllowOnly, None) => FreezeState::InForce(begin),
        }
    }

    /// Until when it keeps an actor from starting operations, or for good; `None` if it does not.
    #[must_use]
    pub fn stops(&self, actor: Actor<'_>, now: Timestamp) -> Option<Option<Timestamp>> {
        self.frozen_until(now).filter(|_| !self.exempts(actor))
    }

    /// Until when it is in force, or for good; `None` if it is not.
    fn frozen_until(&self, now: Timestamp) -> Option<Option<Timestamp>> {
        match self.at(now) {
            FreezeState::InForce(until) => Some(until),
            FreezeState::Open(_) => None,
        }
    }

    /// A moment in the words of the freeze: `2027-01-02 06:00 Europe/Berlin`.
    #[must_use]
    pub fn shown(&self, moment: Timestamp) -> String {
        let zoned = moment.to_zoned(self.zone.clone());
        format!("{} {}", zoned.strftime("%Y-%m-%d %H:%M"), self.zone.iana_name().unwrap_or("UTC"))
    }

    /// `until 2027-01-02 06:00 Europe/Berlin`, or `for good`.
    #[must_use]
    pub fn shown_until(&self, until: Option<Timestamp>) -> String {
        until.map_or_else(|| "for good".to_owned(), |until| format!("until {}", self.shown(until)))
    }

    /// `the freeze year-end is in force until 2027-01-02 06:00 Europe/Berlin (no changes over the holidays)`
    #[must_use]
    pub fn said(&self, until: Option<Timestamp>) -> String {
        format!("the freeze {} is in force {} ({})", self.name, self.shown_until(until), self.reason)
    }
}

/// The freeze that keeps an actor from starting an operation of a release, and until when. Of several the one that lasts longest.
#[must_use]
pub fn in_force<'f>(
    freezes: &'f [Freeze],
    release: &ReleaseRef,
    actor: Actor<'_>,
    now: Timestamp,
) -> Option<(&'f Freeze, Option<Timestamp>)> {
    longest(freezes, release, |freeze| freeze.stops(actor, now))
}

/// The name of the freeze that is in force over a release, exempt users or not. Of several the one that lasts longest.
#[must_use]
pub fn frozen_by(freezes: &[Freeze], release: &ReleaseRef, now: Timestamp) -> Option<String> {
    longest(freezes, release, |freeze| freeze.frozen_until(now)).map(|(freeze, _)| freeze.name.clone())
}

/// The freeze of a release that lasts longest, and until when or for good. `until` returns `None` for a freeze that does not count.
fn longest<'f>(
    freezes: &'f [Freeze],
    release: &ReleaseRef,
    until: impl Fn(&Freeze) -> Option<Option<Timestamp>>,
) -> Option<(&'f Freeze, Option<Timestamp>)> {
    let concerned = freezes.iter().filter(|freeze| freeze.concerns(release));
    let in_force = concerned.filter_map(|freeze| Some((freeze, until(freeze)?)));
    in_force.max_by_key(|(_, until)| until.unwrap_or(Timestamp::MAX))
}
