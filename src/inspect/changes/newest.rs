//! Keeps the newest changes, so that logs of years are read in bounded memory.

use std::cmp::Reverse;

use jiff::Timestamp;

/// Keeps the newest items, and counts the others.
#[derive(Debug)]
pub(crate) struct Newest<T> {
    items: Vec<T>,
    limit: usize,
    dropped: usize,
    time: fn(&T) -> Timestamp,
}

impl<T> Newest<T> {
    /// Keeps at most `limit` items in the end, and twice as many meanwhile.
    pub(crate) fn new(limit: usize, time: fn(&T) -> Timestamp) -> Self {
        Self { items: Vec::new(), limit, dropped: 0, time }
    }

    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
        if self.items.len() >= 2 * self.limit {
            self.drop_oldest();
        }
    }

    /// The newest items, oldest first, and the number of dropped items.
    pub(crate) fn into_sorted(mut self) -> (Vec<T>, usize) {
        if self.items.len() > self.limit {
            self.drop_oldest();
        }
        self.items.sort_by_key(self.time);
        (self.items, self.dropped)
    }

    fn drop_oldest(&mut self) {
        let time = self.time;
        self.items.sort_by_key(|item| Reverse(time(item)));
        self.dropped += self.items.len().saturating_sub(self.limit);
        self.items.truncate(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_in_order_and_the_others_are_counted() {
        let mut newest = Newest::new(3, |second: &i64| Timestamp::from_second(*second).unwrap());
        for second in [5, 1, 9, 7, 3, 8, 2, 6] {
            newest.push(second);
            assert!(newest.items.len() < 6);
        }
        assert_eq!(newest.into_sorted(), (vec![7, 8, 9], 5));
        let mut few = Newest::new(3, |second: &i64| Timestamp::from_second(*second).unwrap());
        [2, 1].into_iter().for_each(|second| few.push(second));
        assert_eq!(few.into_sorted(), (vec![1, 2], 0));
    }
}
