//! The lifetimes of certificates, and the waiting times between the phases of a rotation.

use jiff::SignedDuration;

/// The lifetimes of managed certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    /// The lifetime of a CA. A rotation begins when a third is left.
    pub ca: SignedDuration,
    /// The lifetime of a leaf. A new leaf is signed when a third is left.
    pub leaf: SignedDuration,
    /// The wait between the time at which a CA is in every caBundle and its first leaf. It must be longer than API servers take to see
    /// changed configurations, and longer than the minute within which replicas read the Secret.
    pub settle: SignedDuration,
}

/// Lifetimes that contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LifetimesError {
    /// A time is shorter than a second.
    #[error("the lifetimes of CA and leaf and the settle time must be at least one second each")]
    Nothing,
    /// The last leaf of a CA would outlive the CA.
    #[error(
        "a third of the CA's lifetime ({third} s) must be longer than the leaf's lifetime plus twice the settle time \
         ({least} s), because a rotation has to finish in it: lengthen the CA's lifetime or shorten the leaf's"
    )]
    TooShort {
        /// In seconds.
        third: i64,
        /// In seconds.
        least: i64,
    },
}

impl Default for Lifetimes {
    /// A CA of a year, a leaf of a week, ten minutes to settle.
    fn default() -> Self {
        Self {
            ca: SignedDuration::from_hours(365 * 24),
            leaf: SignedDuration::from_hours(7 * 24),
            settle: SignedDuration::from_mins(10),
        }
    }
}

impl Lifetimes {
    /// Checks that the phases of a rotation fit together.
    ///
    /// # Errors
    /// [`LifetimesError`] gives the reason.
    pub(crate) fn checked(self) -> Result<Self, LifetimesError> {
        if [self.ca, self.leaf, self.settle].into_iter().any(|time| time < SignedDuration::from_secs(1)) {
            return Err(LifetimesError::Nothing);
        }
        let (third, least) = (self.ca_renewal(), self.leaf + self.settle * 2);
        if third <= least {
            return Err(LifetimesError::TooShort { third: third.as_secs(), least: least.as_secs() });
        }
        Ok(self)
    }

    /// How long before its expiry a CA is replaced.
    #[must_use]
    pub(crate) fn ca_renewal(&self) -> SignedDuration {
        self.ca / 3
    }

    /// How long after a promotion leaves of older CAs may exist. A replica may have read the Secret just before the promotion, and then
    /// signed a leaf with the older CA.
    #[must_use]
    pub(crate) fn retirement(&self) -> SignedDuration {
        self.leaf + self.settle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(ca: i64, leaf: i64, settle: i64) -> Result<Lifetimes, LifetimesError> {
        let [ca, leaf, settle] = [ca, leaf, settle].map(SignedDuration::from_secs);
        Lifetimes { ca, leaf, settle }.checked()
    }

    #[test]
    fn lifetimes_whose_phases_do_not_fit_are_rejected() {
        assert_eq!(Lifetimes::default().checked(), Ok(Lifetimes::default()));
        assert!(seconds(60, 10, 2).is_ok());
        assert_eq!(seconds(42, 10, 2), Err(LifetimesError::TooShort { third: 14, least: 14 }));
        assert_eq!(seconds(60, 60, 2), Err(LifetimesError::TooShort { third: 20, least: 64 }));
        assert_eq!(seconds(60, 0, 2), Err(LifetimesError::Nothing));
    }
}
