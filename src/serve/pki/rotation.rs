//! What is to be done next about the certificates: pure, from what was read.
//!
//! ```text
//! Create | Replace      a Secret with a CA, where there is none that can be used
//! Sign                  a leaf of our own
//! Add                   what must be trusted, to every caBundle that lacks it     (any replica: adding harms nobody)
//! Begin                 a next CA, into the bundle                                (from here on the leader)
//!   Add                 it is published by whoever sees it first
//! Promote               next becomes current, once it was seen everywhere and has settled
//!   Sign                each replica, with the new one
//! Retire, Tidy          the old CA leaves the bundle, then the caBundles, after the longest leaf life
//! ```
//!
//! What holds at every moment: *the issuer of every leaf that is served is in every live caBundle*, once it was published.
//! Nobody takes a CA out of a caBundle but [`RotationStep::Tidy`], and that only when every leaf that it signed has expired:
//! a leaf is signed by the CA that was current when the Secret was last read, and a promotion writes down its time.

mod lifetimes;

use std::collections::HashMap;

use jiff::Timestamp;

use super::bundle::{Ca, CaBundle, Fingerprint};
pub use lifetimes::{Lifetimes, LifetimesError};

/// CAs that a bundle may hold before a further rotation has to wait for one to be retired: every call of the API server
/// carries none of them, but every copy of the configurations does.
const MAX_BUNDLE: usize = 8;

/// The CAs that the Secret holds, without their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaSet {
    /// Signs leaves.
    pub current: Ca,
    /// Will sign them, once it is trusted everywhere.
    pub next: Option<Ca>,
    /// Everything that is to be trusted, these two included.
    pub bundle: CaBundle,
    /// Since when `current` is that.
    pub promoted: Option<Timestamp>,
    /// Somebody asked for a rotation.
    pub asked: bool,
}

/// What the Secret turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredCa {
    /// There is none.
    Absent,
    /// It does not hold a CA that is valid now. With what this replica knew last, where that still is.
    Unusable(Option<CaSet>),
    /// It is as it should be.
    Good(CaSet),
}

/// A leaf that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Who signed it.
    pub issuer: Ca,
    /// From when on a new one is due.
    pub renew_at: Timestamp,
    /// The last moment at which it is valid.
    pub not_after: Timestamp,
}

/// Everything that a decision rests on.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The Secret, read after the caBundles.
    pub stored: &'a StoredCa,
    /// The caBundle of every entry of the configurations.
    pub live: &'a [CaBundle],
    /// Since when each CA is in all of them.
    pub trusted_since: &'a TrustHistory,
    /// What this replica serves.
    pub leaf: Option<&'a Leaf>,
    /// Whether this replica leads, as far as it knows.
    pub leads: bool,
    /// By the wall clock.
    pub now: Timestamp,
}

/// Since when CAs have been seen in every live caBundle, without a look that missed them.
#[derive(Debug, Clone, Default)]
pub struct TrustHistory(HashMap<Fingerprint, Timestamp>);

/// What to do. Everything is read anew after each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RotationStep {
    /// Make the Secret, of the CA in memory or a new one.
    Create,
    /// Put a new CA into the Secret: what is there cannot be used, and this replica has nothing to serve.
    Replace,
    /// Sign a leaf with the current CA, and serve it.
    Sign,
    /// Add these to every caBundle.
    Add(CaBundle),
    /// Put a next CA into the Secret.
    Begin,
    /// Make the next CA the current one.
    Promote,
    /// Take CAs out of the Secret's bundle: only these remain.
    Retire(CaBundle),
    /// Make every caBundle the Secret's bundle and nothing else.
    Tidy,
    /// Nothing before this moment, unless something changes.
    Wait(Timestamp),
}

/// The next step.
#[must_use]
pub fn plan(situation: &Situation<'_>, lifetimes: &Lifetimes) -> RotationStep {
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
        // Nothing is lost by a leaf that is not trusted yet: this replica is not ready before it is.
        return true;
    };
    let due = situation.now >= leaf.renew_at;
    if leaf.issuer == cas.current {
        return due;
    }
    // API servers take a moment to see a new caBundle, unless waiting is worse.
    situation.trusts(&cas.current)
        && (due || !situation.trusts(&leaf.issuer) || situation.now >= situation.settles(&cas.current, lifetimes))
}

/// What only the leader does.
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
    // Without a time nothing is retired before it expires.
    let retires = cas.promoted.map(|promoted| promoted + lifetimes.retirement());
    let quiet = retires.is_some_and(|retires| now >= retires);
    let kept = cas.kept(now, quiet);
    if kept != cas.bundle {
        return RotationStep::Retire(kept);
    }
    let Some(retires) = retires else {
        return RotationStep::Wait(wake);
    };
    // Of a Secret that somebody restored, the time is an old one; so the replicas get theirs to sign with its CA.
    let tidies = retires.max(situation.settles(&cas.current, lifetimes) + lifetimes.settle);
    let strays = situation.live.iter().any(|entry| *entry != cas.bundle);
    if strays && now >= tidies && situation.leaf.is_none_or(|leaf| cas.bundle.has(&leaf.issuer)) {
        return RotationStep::Tidy;
    }
    if cas.bundle != cas.kept(now, true) {
        wake = wake.min(retires);
    }
    if strays {
        wake = wake.min(tidies.max(now + lifetimes.settle));
    }
    RotationStep::Wait(wake)
}

impl Situation<'_> {
    /// Whether every entry trusts it; not where there is no entry.
    fn trusts(&self, ca: &Ca) -> bool {
        !self.live.is_empty() && self.live.iter().all(|entry| entry.has(ca))
    }

    /// From when on everybody who reads the configurations has seen it.
    fn settles(&self, ca: &Ca, lifetimes: &Lifetimes) -> Timestamp {
        self.trusted_since.0.get(&ca.id).copied().unwrap_or(self.now) + lifetimes.settle
    }
}

impl TrustHistory {
    /// Takes in a look at every entry.
    pub fn look(&mut self, live: &[CaBundle], now: Timestamp) {
        let Some((first, rest)) = live.split_first() else {
            return self.0.clear();
        };
        let everywhere = first.iter().filter(|ca| rest.iter().all(|entry| entry.has(ca)));
        // A clock that was set back begins anew.
        let since = |ca: &Ca| self.0.get(&ca.id).copied().filter(|since| *since <= now).unwrap_or(now);
        self.0 = everywhere.map(|ca| (ca.id, since(ca))).collect();
    }
}

impl CaSet {
    /// Of one CA, with everything that is trusted already: somebody may serve a leaf of it.
    #[must_use]
    pub fn fresh(current: Ca, live: &[CaBundle], now: Timestamp) -> Self {
        let mut bundle = live.iter().fold(CaBundle::default(), CaBundle::with).unexpired(now);
        bundle.add(&current);
        Self { current, next: None, bundle, promoted: Some(now), asked: false }
    }

    /// With a next one.
    #[must_use]
    pub fn begun(&self, next: Ca) -> Self {
        let mut bundle = self.bundle.clone();
        bundle.add(&next);
        Self { next: Some(next), bundle, asked: false, ..self.clone() }
    }

    /// With the next one as the current one; without a next one, as it is.
    #[must_use]
    pub fn promoted(&self, now: Timestamp) -> Self {
        match &self.next {
            Some(next) => Self { current: next.clone(), next: None, promoted: Some(now), ..self.clone() },
            None => self.clone(),
        }
    }

    /// With another bundle.
    #[must_use]
    pub fn retired(&self, bundle: CaBundle) -> Self {
        Self { bundle, ..self.clone() }
    }

    /// What the bundle comes to: the two CAs of now and, as long as leaves of theirs may be served, the others.
    fn kept(&self, now: Timestamp, quiet: bool) -> CaBundle {
        let mut kept = if quiet { CaBundle::default() } else { self.bundle.clone().unexpired(now) };
        kept.add(&self.current);
        self.next.iter().for_each(|next| kept.add(next));
        kept
    }
}

#[cfg(test)]
mod tests;
