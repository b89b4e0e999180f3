//! How long certificates live, and how long to wait between the phases of a rotation.

use jiff::SignedDuration;

/// The lifetimes of managed certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// A CA's life. The next one begins when a third of it is left.
    pub ca: SignedDuration,
    /// A leaf's life. A new one is signed when a third of it is left.
    pub leaf: SignedDuration,
    /// From when a CA is seen in every caBundle to its first leaf: API servers follow the configurations by watches, and
    /// replicas read the Secret once a minute at least. Longer than either takes.
    pub settle: SignedDuration,
}

/// Lifetimes that contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LifetimesError {
    /// Something is no time at all.
    #[error("the lifetimes of CA and leaf and the time to settle must be at least one second each")]
    Nothing,
    /// The last leaf of a CA would outlive it, or be cut short.
    #[error(
        "a CA's last third ({third} s) must be longer than a leaf's life and twice the time to settle ({least} s), for \
         in it the next CA is published and the last leaf of the old one ends: lengthen the CA's life or shorten the leaf's"
    )]
    TooShort {
        /// A third of the CA's life, in seconds.
        third: i64,
        /// What it must be longer than, in seconds.
        least: i64,
    },
}

impl Default for Lifetimes {
    /// A year, a week, ten minutes.
    fn default() -> Self {
        Self {
            ca: SignedDuration::from_hours(365 * 24),
            leaf: SignedDuration::from_hours(7 * 24),
            settle: SignedDuration::from_mins(10),
        }
    }
}

impl Lifetimes {
    /// Checks that the phases of a rotation fit into each other.
    ///
    /// # Errors
    /// [`LifetimesError`] says why not.
    pub fn checked(self) -> Result<Self, LifetimesError> {
        if [self.ca, self.leaf, self.settle].into_iter().any(|time| time < SignedDuration::from_secs(1)) {
            return Err(LifetimesError::Nothing);
        }
        let (third, least) = (self.ca_renewal(), self.leaf + self.settle * 2);
        if third <= least {
            return Err(LifetimesError::TooShort { third: third.as_secs(), least: least.as_secs() });
        }
        Ok(self)
    }

    /// How long before its end a CA gets a successor.
    #[must_use]
    pub fn ca_renewal(&self) -> SignedDuration {
        self.ca / 3
    }

    /// How long after a promotion no leaf of an older CA is left: one may have been signed by a replica that read the Secret
    /// just before.
    #[must_use]
    pub fn retirement(&self) -> SignedDuration {
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
    fn phases_must_fit_into_each_other() {
        assert_eq!(Lifetimes::default().checked(), Ok(Lifetimes::default()));
        assert!(seconds(60, 10, 2).is_ok());
        assert_eq!(seconds(42, 10, 2), Err(LifetimesError::TooShort { third: 14, least: 14 }));
        assert_eq!(seconds(60, 60, 2), Err(LifetimesError::TooShort { third: 20, least: 64 }));
        assert_eq!(seconds(60, 0, 2), Err(LifetimesError::Nothing));
    }
}
