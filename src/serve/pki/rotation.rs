//! Plans the next step for the certificates: a pure function of the observed objects.
//!
//! ```text
//! Create | Replace      a Secret with a CA, if there is no usable one
//! Sign                  a leaf for this replica
//! Add                   the trusted CAs, to every caBundle that lacks one         (any replica: adding is harmless)
//! Begin                 a next CA, into the Secret's bundle                       (from here on only the leader)
//!   Add                 the first replica that sees the next CA publishes it
//! Promote               the next CA becomes the current one, once it is in every caBundle and has settled
//!   Sign                each replica, with the new CA
//! Retire, Tidy          the old CA leaves the bundle, then the caBundles, after the longest leaf lifetime
//! ```
//!
//! One invariant always holds: *the issuer of every served leaf is in every live caBundle*, once it was published. Only
//! [`RotationStep::Tidy`] removes a CA from a caBundle, and only after every leaf of that CA has expired. A leaf is signed by the CA that was
//! current when the Secret was last read. A promotion stores its time.

mod lifetimes;

use std::collections::HashMap;

use jiff::Timestamp;

use super::bundle::{Ca, CaBundle, Fingerprint};
pub(crate) use lifetimes::{Lifetimes, LifetimesError};

/// How many CAs a bundle may contain. A further rotation waits until a CA is retired. CAs add to the size of every copy of the
/// configurations, but not of calls.
const MAX_BUNDLE: usize = 8;

/// The CAs in the Secret, without their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CaSet {
    /// Signs leaves.
    pub current: Ca,
    /// Signs leaves once it is trusted everywhere.
    pub next: Option<Ca>,
    /// All trusted CAs, including `current` and `next`.
    pub bundle: CaBundle,
    /// When `current` was promoted.
    pub promoted: Option<Timestamp>,
    /// Whether a rotation was requested.
    pub asked: bool,
}

/// The state of the Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredCa {
    /// There is no Secret.
    Absent,
    /// The Secret contains no CA that is valid now. The value is the last CA that this replica knew, if still valid.
    Unusable(Option<CaSet>),
    /// The Secret is valid.
    Good(CaSet),
}

/// A serving certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub issuer: Ca,
    /// When a new leaf is due.
    pub renew_at: Timestamp,
    /// The last moment at which the leaf is valid.
    pub not_after: Timestamp,
}

/// All inputs of a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation<'a> {
    /// The Secret, read after the caBundles.
    pub stored: &'a StoredCa,
    /// The caBundle of every entry of the configurations.
    pub live: &'a [CaBundle],
    /// Since when each CA is in all caBundles.
    pub trusted_since: &'a TrustHistory,
    /// The leaf that this replica serves.
    pub leaf: Option<&'a Leaf>,
    /// Whether this replica leads, as far as it knows.
    pub leads: bool,
    pub now: Timestamp,
}

/// Since when each CA has been in every live caBundle, without an observation that missed it.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustHistory(HashMap<Fingerprint, Timestamp>);

/// The next step. Everything is read again after each step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RotationStep {
    /// Create the Secret, with the CA in memory or a new one.
    Create,
    /// Put a new CA into the Secret, because the Secret is unusable and this replica has no certificate to serve.
    Replace,
    /// Sign a leaf with the current CA, and serve it.
    Sign,
    /// Add these CAs to every caBundle.
    Add(CaBundle),
    /// Put a next CA into the Secret.
    Begin,
    /// Make the next CA the current one.
    Promote,
    /// Remove all CAs except these from the Secret's bundle.
    Retire(CaBundle),
    /// Replace every caBundle by the Secret's bundle.
    Tidy,
    /// Do nothing until this moment, unless an object changes.
    Wait(Timestamp),
}

/// Plans the next step.
#[must_use]
pub(crate) fn plan(situation: &Situation<'_>, lifetimes: &Lifetimes) -> RotationStep {
    let leaf = situation.leaf.filter(|leaf| leaf.not_after > situation.now);
    let (cas, in_order) = match (situation.stored, leaf) {
        (StoredCa::Absent, _) => return RotationStep::Create,
        (StoredCa::Good(cas), _) => (Some(cas), true),
        (StoredCa::Unusable(Some(known)), _) => (Some(known), false),
        (StoredCa::Unusable(None), Some(_)) => (None, false),
        (StoredCa::Unusable(None), None) => return RotationStep::Replace,
    };
    if cas.is_some_and(|cas| signs(cas, leaf, situation, lifetimes)) {
        return RotationStep::Sign;
    }
    let mut required = cas.map_or_else(CaBundle::default, |cas| cas.bundle.clone());
    if let Some(leaf) = leaf {
        required.add(&leaf.issuer);
    }
    if situation.live.iter().any(|entry| !entry.has_all(&required)) {
        return RotationStep::Add(required);
    }
    let wake = leaf.map_or(situation.now + lifetimes.leaf, |leaf| leaf.renew_at);
    match cas {
        Some(cas) if situation.leads && in_order => lead(cas, situation, lifetimes, wake),
        Some(cas) if leaf.is_some_and(|leaf| leaf.issuer != cas.current) => {
            RotationStep::Wait(wake.min(situation.settles(&cas.current, lifetimes)))
        }
        _ => RotationStep::Wait(wake),
    }
}

/// Whether a leaf is due, now that `current` can sign one.
fn signs(cas: &CaSet, leaf: Option<&Leaf>, situation: &Situation<'_>, lifetimes: &Lifetimes) -> bool {
    let Some(leaf) = leaf else {
        // A leaf that is not trusted yet does no harm: the replica becomes ready only when the leaf is trusted.
        return true;
    };
    let due = situation.now >= leaf.renew_at;
    if leaf.issuer == cas.current {
        return due;
    }
    // API servers take a moment to see a new caBundle. Wait, unless the served leaf expires soon or is not trusted either.
    situation.trusts(&cas.current)
        && (due || !situation.trusts(&leaf.issuer) || situation.now >= situation.settles(&cas.current, lifetimes))
}

/// The steps of the leader.
fn lead(cas: &CaSet, situation: &Situation<'_>, lifetimes: &Lifetimes, mut wake: Timestamp) -> RotationStep {
    let now = situation.now;
    if let Some(next) = &cas.next {
        let settles = situation.settles(next, lifetimes);
        if situation.trusts(next) && now >= settles {
            return RotationStep::Promote;
        }
        wake = wake.min(settles);
    } else if cas.bundle.len() < MAX_BUNDLE {
        let due = cas.current.not_after - lifetimes.ca_renewal();
        if cas.asked || now >= due {
            return RotationStep::Begin;
        }
        wake = wake.min(due);
    }
    // Without a promotion time, a CA is removed only after its expiry.
    let retires = cas.promoted.map(|promoted| promoted + lifetimes.retirement());
    let quiet = retires.is_some_and(|retires| now >= retires);
    let remaining = cas.remaining(now, quiet);
    if remaining != cas.bundle {
        return RotationStep::Retire(remaining);
    }
    let Some(retires) = retires else {
        return RotationStep::Wait(wake);
    };
    // A restored Secret has an old promotion time. The replicas need time to sign with its CA.
    let tidies = retires.max(situation.settles(&cas.current, lifetimes) + lifetimes.settle);
    let strays = situation.live.iter().any(|entry| *entry != cas.bundle);
    if strays && now >= tidies && situation.leaf.is_none_or(|leaf| cas.bundle.has(&leaf.issuer)) {
        return RotationStep::Tidy;
    }
    if cas.bundle != cas.remaining(now, true) {
        wake = wake.min(retires);
    }
    if strays {
        wake = wake.min(tidies.max(now + lifetimes.settle));
    }
    RotationStep::Wait(wake)
}

impl Situation<'_> {
    /// Whether every entry trusts a CA. False if there are no entries.
    fn trusts(&self, ca: &Ca) -> bool {
        !self.live.is_empty() && self.live.iter().all(|entry| entry.has(ca))
    }

    /// When all API servers and replicas have seen the CA.
    fn settles(&self, ca: &Ca, lifetimes: &Lifetimes) -> Timestamp {
        self.trusted_since.0.get(&ca.id).copied().unwrap_or(self.now) + lifetimes.settle
    }
}

impl TrustHistory {
    /// Adds an observation of every entry.
    pub(crate) fn observe(&mut self, live: &[CaBundle], now: Timestamp) {
        let Some((first, rest)) = live.split_first() else {
            return self.0.clear();
        };
        let everywhere = first.iter().filter(|ca| rest.iter().all(|entry| entry.has(ca)));
        let history = everywhere.map(|ca| {
            // If the clock was set back, the time starts again.
            let since = self.0.get(&ca.id).copied().filter(|since| *since <= now);
            (ca.id, since.unwrap_or(now))
        });
        self.0 = history.collect();
    }
}

impl CaSet {
    /// A first CA. All CAs that are already trusted stay trusted, because another replica may serve a leaf of one of them.
    #[must_use]
    pub(crate) fn fresh(current: Ca, live: &[CaBundle], now: Timestamp) -> Self {
        let mut bundle = live.iter().fold(CaBundle::default(), CaBundle::with).unexpired(now);
        bundle.add(&current);
        Self { current, next: None, bundle, promoted: Some(now), asked: false }
    }

    /// Adds a next CA.
    #[must_use]
    pub(crate) fn begun(&self, next: Ca) -> Self {
        let mut bundle = self.bundle.clone();
        bundle.add(&next);
        Self { next: Some(next), bundle, asked: false, ..self.clone() }
    }

    /// Makes the next CA the current one. Without a next CA nothing changes.
    #[must_use]
    pub(crate) fn promoted(&self, now: Timestamp) -> Self {
        match &self.next {
            Some(next) => Self { current: next.clone(), next: None, promoted: Some(now), ..self.clone() },
            None => self.clone(),
        }
    }

    /// Replaces the bundle.
    #[must_use]
    pub(crate) fn retired(&self, bundle: CaBundle) -> Self {
        Self { bundle, ..self.clone() }
    }

    /// The CAs that remain: the current one, the next one, and the others while leaves of those may be served.
    fn remaining(&self, now: Timestamp, quiet: bool) -> CaBundle {
        let mut remaining = if quiet { CaBundle::default() } else { self.bundle.clone().unexpired(now) };
        remaining.add(&self.current);
        self.next.iter().for_each(|next| remaining.add(next));
        remaining
    }
}

#[cfg(test)]
mod tests;
