//! Freezes: when no operation may start.

mod limited;
mod window;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use limited::{LimitedFreeze, TeamFreezeSettings};
pub use window::{DayWindow, Interval, Window};

use super::Globs;
use super::globs::matches;
use super::namespaces::NamespaceCondition;
use crate::facts::Actor;
use crate::release::ReleaseRef;

/// A freeze. It refuses operations that start during the freeze. Operations that started earlier continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freeze {
    pub name: String,
    /// The reason, which refusals quote.
    pub reason: String,
    /// The releases concerned, in the words of the policy: `every release`, `releases web, api-* in namespaces prod-*`.
    pub scope: String,
    /// The exemption, in the words of the policy: `users bob, groups on-call`; `None` if nobody is exempt.
    pub exemption: Option<String>,
    /// The namespace whose policy sets the freeze, or in which the Freeze is stored. The freeze then concerns only the
    /// releases of this namespace. `None` if the cluster policy sets the freeze.
    pub home: Option<String>,
    /// The creation of a Freeze stored in the cluster; `None` if a policy sets the freeze.
    pub creation: Option<Creation>,
    pub(crate) window: Window,
    pub(crate) effect: FreezeEffect,
    /// The time zone of its times. Messages use the same zone.
    pub(crate) zone: TimeZone,
    /// Names of releases; `None` for every release.
    pub(crate) releases: Option<Globs>,
    /// Namespaces of releases.
    pub(crate) namespaces: NamespaceCondition,
    /// Exempt users.
    pub(crate) exempt_users: Globs,
    /// Groups whose users are exempt.
    pub(crate) exempt_groups: Globs,
}

/// Who created a Freeze that is stored in the cluster, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Creation {
    /// The stamped user, printable; `None` without a stamp.
    pub by: Option<String>,
    /// By the clock of the API server.
    pub at: Timestamp,
}

/// Whether operations start inside or outside the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeEffect {
    /// No operation starts in the window.
    Deny,
    /// Operations start only in the window.
    AllowOnly,
}

/// The state of a freeze at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeState {
    /// No operation starts until this moment, or ever if it is `None`.
    InForce(Option<Timestamp>),
    /// Operations start until this moment, or forever if it is `None`.
    Open(Option<Timestamp>),
}

impl Freeze {
    /// Whether the freeze concerns a release, by its home ([`Storage::home`](crate::release::Storage::home)) and its
    /// name.
    #[must_use]
    pub fn concerns(&self, release: &ReleaseRef) -> bool {
        self.concerns_namespace(&release.namespace) && matches(self.releases.as_ref(), Some(&release.name))
    }

    /// Whether the freeze concerns a release of a namespace.
    #[must_use]
    pub fn concerns_namespace(&self, namespace: &str) -> bool {
        self.home.as_ref().is_none_or(|home| home == namespace) && self.namespaces.holds(namespace)
    }

    /// Whether a user is exempt.
    #[must_use]
    pub fn exempts(&self, actor: Actor<'_>) -> bool {
        self.exempt_users.contains(actor.name) || actor.groups.iter().any(|group| self.exempt_groups.contains(group))
    }

    /// The end of a freeze that ends by itself; `None` if it is weekly, or in force outside its window.
    pub(crate) fn own_end(&self) -> Option<Timestamp> {
        match (&self.window, self.effect) {
            (Window::Range(span), FreezeEffect::Deny) => Some(span.end),
            _ => None,
        }
    }

    /// Whether the window is weekly.
    pub(crate) fn is_weekly(&self) -> bool {
        matches!(self.window, Window::Weekly(_))
    }

    /// Whether the window ever overlaps with that of another freeze.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.window.meets(&self.zone, &other.window, &other.zone)
    }

    /// Whether the window always contains that of another freeze.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.window.covers(&self.zone, &other.window, &other.zone)
    }

    /// The state at a moment, and the end of that state if nothing else ends the freeze.
    #[must_use]
    pub(super) fn at(&self, now: Timestamp) -> FreezeState {
        let (current, next) = self.window.around(now, &self.zone);
        let (end, begin) = (current.map(|span| span.end), next.map(|span| span.start));
        match (self.effect, end) {
            (FreezeEffect::Deny, Some(end)) => FreezeState::InForce(Some(end)),
            (FreezeEffect::Deny, None) => FreezeState::Open(begin),
            (FreezeEffect::AllowOnly, Some(end)) => FreezeState::Open(Some(end)),
            (FreezeEffect::AllowOnly, None) => FreezeState::InForce(begin),
        }
    }

    /// The freeze with its creation in the cluster.
    #[must_use]
    pub fn created(self, creation: Creation) -> Self {
        Self { creation: Some(creation), ..self }
    }

    /// The creator, if the freeze is stored in the cluster.
    #[must_use]
    pub fn creator(&self) -> Option<&str> {
        self.creation.as_ref().map(|creation| creation.by.as_deref().unwrap_or(UNKNOWN_USER))
    }

    /// The name in refusals: `the freeze sale`, or `the freeze stop-x7k2p, created by alice,`.
    #[must_use]
    pub fn title(&self) -> String {
        let creator = self.creator().map(|user| format!(", created by {user},")).unwrap_or_default();
        format!("the freeze {}{creator}", self.name)
    }

    /// A moment in the time zone of the freeze: `2027-01-02 06:00 Europe/Berlin`.
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
}

/// The freeze that applies to a release.
#[derive(Debug, Clone, Copy)]
pub struct ActiveFreeze<'f> {
    pub freeze: &'f Freeze,
    /// When this freeze ends by itself; `None` for good.
    ends: Option<Timestamp>,
    /// The end of this freeze and of those that follow without a pause; `None` for good.
    pub until: Option<Timestamp>,
}

impl ActiveFreeze<'_> {
    /// `the freeze year-end is in force until 2027-01-02 06:00 Europe/Berlin (no changes over the holidays)`. If another freeze
    /// begins where it ends, `, and others follow until 2027-01-04 00:00 Europe/Berlin` follows.
    #[must_use]
    pub fn sentence(&self) -> String {
        let (title, reason) = (self.freeze.title(), &self.freeze.reason);
        let ends = self.freeze.shown_until(self.ends);
        let others = match self.until {
            until if until == self.ends => String::new(),
            until => format!(", and others follow {}", self.freeze.shown_until(until)),
        };
        format!("{title} is in force {ends} ({reason}){others}")
    }
}

/// The maximum number of consecutive freezes that are followed to the moment at which operations start again. A longer sequence
/// counts as in force for good: weekly windows without a pause between them would be followed forever.
const MAX_IN_A_ROW: usize = 64;

/// The creator, if the stamp was lost in an outage.
const UNKNOWN_USER: &str = "an unknown user";

/// The freeze that stops an actor from starting an operation of a release. If there are several, the one that lasts longest.
#[must_use]
pub fn in_force<'f>(
    freezes: impl Iterator<Item = LimitedFreeze<'f>>,
    release: &ReleaseRef,
    actor: Actor<'_>,
    now: Timestamp,
) -> Option<ActiveFreeze<'f>> {
    let concerned: Vec<_> = concerned(freezes, release).filter(|it| !it.freeze.exempts(actor)).collect();
    let (freeze, ends) = longest(concerned.iter().copied(), now)?;
    Some(ActiveFreeze { freeze, ends, until: end_of_row(&concerned, ends) })
}

/// The name of the freeze that applies to a release, for users who are exempt or not. If there are several, the one that lasts
/// longest.
#[must_use]
pub fn frozen_by<'f>(
    freezes: impl Iterator<Item = LimitedFreeze<'f>>,
    release: &ReleaseRef,
    now: Timestamp,
) -> Option<String> {
    longest(concerned(freezes, release), now).map(|(freeze, _)| freeze.name.clone())
}

fn concerned<'f>(
    freezes: impl Iterator<Item = LimitedFreeze<'f>>,
    release: &ReleaseRef,
) -> impl Iterator<Item = LimitedFreeze<'f>> {
    freezes.filter(|it| it.freeze.concerns(release))
}

/// The freeze in force at a moment that lasts longest, and its end.
fn longest<'f>(
    freezes: impl Iterator<Item = LimitedFreeze<'f>>,
    now: Timestamp,
) -> Option<(&'f Freeze, Option<Timestamp>)> {
    let in_force = freezes.filter_map(|it| match it.at(now) {
        FreezeState::InForce(until) => Some((it.freeze, until)),
        FreezeState::Open(_) => None,
    });
    in_force.max_by_key(|(_, until)| until.unwrap_or(Timestamp::MAX))
}

/// The end of a sequence of freezes, given the end of the first one; `None` for good.
fn end_of_row(freezes: &[LimitedFreeze<'_>], first: Option<Timestamp>) -> Option<Timestamp> {
    let mut end = first?;
    for _ in 0..MAX_IN_A_ROW {
        match longest(freezes.iter().copied(), end) {
            None => return Some(end),
            Some((_, next)) => end = next?,
        }
    }
    None
}

#[cfg(test)]
mod tests;
