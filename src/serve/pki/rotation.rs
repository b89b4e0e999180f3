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
//! Nobody takes a CA out of a caBundle but [`Step::Tidy`], and that only when every leaf that it signed has expired:
//! a leaf is signed by the CA that was current when the Secret was last read, and a promotion writes down its time.

mod times;

use std::collections::HashMap;

use jiff::Timestamp;

use super::bundle::{Bundle, Ca, Fingerprint};
pub use times::{Times, TimesError};

/// CAs that a bundle may hold before a further rotation has to wait for one to be retired: every call of the API server
/// carries none of them, but every copy of the configurations does.
const MOST: usize = 8;

/// The CAs that the Secret holds, without their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cas {
    /// Signs leaves.
    pub current: Ca,
    /// Will sign them, once it is trusted everywhere.
    pub next: Option<Ca>,
    /// Everything that is to be trusted, these two included.
    pub bundle: Bundle,
    /// Since when `current` is that.
    pub promoted: Option<Timestamp>,
    /// Somebody asked for a rotation.
    pub asked: bool,
}

/// What the Secret turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// There is none.
    Absent,
    /// It does not hold a CA that is valid now. With what this replica knew last, where that still is.
    Unusable(Option<Cas>),
    /// It is as it should be.
    Good(Cas),
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
pub struct Sight<'a> {
    /// The Secret, read after the caBundles.
    pub stored: &'a Stored,
    /// The caBundle of every entry of the configurations.
    pub live: &'a [Bundle],
    /// Since when each CA is in all of them.
    pub settling: &'a Settling,
    /// What this replica serves.
    pub leaf: Option<&'a Leaf>,
    /// Whether this replica leads, as far as it knows.
    pub leads: bool,
    /// By the wall clock.
    pub now: Timestamp,
}

/// Since when CAs have been seen in every live caBundle, without a look that missed them.
#[derive(Debug, Clone, Default)]
pub struct Settling(HashMap<Fingerprint, Timestamp>);

/// What to do. Everything is read anew after each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Make the Secret, of the CA in memory or a new one.
    Create,
    /// Put a new CA into the Secret: what is there cannot be used, and this replica has nothing to serve.
    Replace,
    /// Sign a leaf with the current CA, and serve it.
    Sign,
    /// Add these to every caBundle.
    Add(Bundle),
    /// Put a next CA into the Secret.
    Begin,
    /// Make the next CA the current one.
    Promote,
    /// Take CAs out of the Secret's bundle: only these remain.
    Retire(Bundle),
    /// Make every caBundle the Secret's bundle and nothing else.
    Tidy,
    /// Nothing before this moment, unless something changes.
    Wait(Timestamp),
}

/// The next step.
#[must_use]
pub fn plan(sight: &Sight<'_>, times: &Times) -> Step {
    let leaf = sight.leaf.filter(|leaf| leaf.not_after > sight.now);
    let (cas, in_order) = match (sight.stored, leaf) {
        (Stored::Absent, _) => return Step::Create,
        (Stored::Good(cas), _) => (Some(cas), true),
        (Stored::Unusable(Some(known)), _) => (Some(known), false),
        (Stored::Unusable(None), Some(_)) => (None, false),
        (Stored::Unusable(None), None) => return Step::Replace,
    };
    if cas.is_some_and(|cas| signs(cas, leaf, sight, times)) {
        return Step::Sign;
    }
    let mut required = cas.map_or_else(Bundle::default, |cas| cas.bundle.clone());
    if let Some(leaf) = leaf {
        required.add(&leaf.issuer);
    }
    if sight.live.iter().any(|entry| !entry.has_all(&required)) {
        return Step::Add(required);
    }
    let wake = leaf.map_or(sight.now + times.leaf, |leaf| leaf.renew_at);
    match cas {
        Some(cas) if sight.leads && in_order => lead(cas, sight, times, wake),
        Some(cas) if leaf.is_some_and(|leaf| leaf.issuer != cas.current) => {
            Step::Wait(wake.min(sight.settles(&cas.current, times)))
        }
        _ => Step::Wait(wake),
    }
}

/// Whether a leaf is due, now that `current` can sign one.
fn signs(cas: &Cas, leaf: Option<&Leaf>, sight: &Sight<'_>, times: &Times) -> bool {
    let Some(leaf) = leaf else {
        // Nothing is lost by a leaf that is not trusted yet: this replica is not ready before it is.
        return true;
    };
    let due = sight.now >= leaf.renew_at;
    if leaf.issuer == cas.current {
        return due;
    }
    // API servers take a moment to see a new caBundle, unless waiting is worse.
    sight.trusts(&cas.current)
        && (due || !sight.trusts(&leaf.issuer) || sight.now >= sight.settles(&cas.current, times))
}

/// What only the leader does.
fn lead(cas: &Cas, sight: &Sight<'_>, times: &Times, mut wake: Timestamp) -> Step {
    let now = sight.now;
    if let Some(next) = &cas.next {
        let settles = sight.settles(next, times);
        if sight.trusts(next) && now >= settles {
            return Step::Promote;
        }
        wake = wake.min(settles);
    } else if cas.bundle.len() < MOST {
        let due = cas.current.not_after - times.ca_renewal();
        if cas.asked || now >= due {
            return Step::Begin;
        }
        wake = wake.min(due);
    }
    // Without a time nothing is retired before it expires.
    let retires = cas.promoted.map(|promoted| promoted + times.retirement());
    let quiet = retires.is_some_and(|retires| now >= retires);
    let kept = cas.kept(now, quiet);
    if kept != cas.bundle {
        return Step::Retire(kept);
    }
    let Some(retires) = retires else {
        return Step::Wait(wake);
    };
    // Of a Secret that somebody restored, the time is an old one; so the replicas get theirs to sign with its CA.
    let tidies = retires.max(sight.settles(&cas.current, times) + times.settle);
    let strays = sight.live.iter().any(|entry| *entry != cas.bundle);
    if strays && now >= tidies && sight.leaf.is_none_or(|leaf| cas.bundle.has(&leaf.issuer)) {
        return Step::Tidy;
    }
    if cas.bundle != cas.kept(now, true) {
        wake = wake.min(retires);
    }
    if strays {
        wake = wake.min(tidies.max(now + times.settle));
    }
    Step::Wait(wake)
}

impl Sight<'_> {
    /// Whether every entry trusts it; not where there is no entry.
    fn trusts(&self, ca: &Ca) -> bool {
        !self.live.is_empty() && self.live.iter().all(|entry| entry.has(ca))
    }

    /// From when on everybody who reads the configurations has seen it.
    fn settles(&self, ca: &Ca, times: &Times) -> Timestamp {
        self.settling.0.get(&ca.id).copied().unwrap_or(self.now) + times.settle
    }
}

impl Settling {
    /// Takes in a look at every entry.
    pub fn look(&mut self, live: &[Bundle], now: Timestamp) {
        let Some((first, rest)) = live.split_first() else {
            return self.0.clear();
        };
        let everywhere = first.iter().filter(|ca| rest.iter().all(|entry| entry.has(ca)));
        // A clock that was set back begins anew.
        let since = |ca: &Ca| self.0.get(&ca.id).copied().filter(|since| *since <= now).unwrap_or(now);
        self.0 = everywhere.map(|ca| (ca.id, since(ca))).collect();
    }
}

impl Cas {
    /// Of one CA, with everything that is trusted already: somebody may serve a leaf of it.
    #[must_use]
    pub fn fresh(current: Ca, live: &[Bundle], now: Timestamp) -> Self {
        let mut bundle = live.iter().fold(Bundle::default(), Bundle::with).unexpired(now);
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
    pub fn retired(&self, bundle: Bundle) -> Self {
        Self { bundle, ..self.clone() }
    }

    /// What the bundle comes to: the two CAs of now and, as long as leaves of theirs may be served, the others.
    fn kept(&self, now: Timestamp, quiet: bool) -> Bundle {
        let mut kept = if quiet { Bundle::default() } else { self.bundle.clone().unexpired(now) };
        kept.add(&self.current);
        self.next.iter().for_each(|next| kept.add(next));
        kept
    }
}

#[cfg(test)]
mod tests;
