//! Random choices that a seed repeats.

use std::time::Duration;

/// `SplitMix64`. Only the choices repeat: the machine decides how long each step takes.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Choices of its own for another thread.
    pub(crate) fn another(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// The choices in random order.
    pub(crate) fn shuffled<T: Copy>(&mut self, choices: &[T]) -> Vec<T> {
        let mut rest = choices.to_vec();
        (0..rest.len()).map(|_| rest.swap_remove(self.below(rest.len()))).collect()
    }

    pub(crate) fn between(&mut self, from: Duration, to: Duration) -> Duration {
        from + (to - from) * self.below(1000) as u32 / 1000
    }
}
