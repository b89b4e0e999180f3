//! What is remembered of many similar things: how often, when, and some names. All of it is bounded, because a log has any number of
//! names.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

pub(crate) use crate::offline::replay::counted;

/// The most names that are remembered of one kind.
const MAX_NAMES: usize = 20;

/// The most distinct days.
const MAX_DAYS: usize = 31;

/// How often something happened, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Times {
    pub(crate) count: usize,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    #[serde(skip)]
    days: BTreeSet<Date>,
}

impl Times {
    /// Nothing yet, from this time on.
    pub(super) fn from(time: Timestamp) -> Self {
        Self { count: 0, first: time, last: time, days: BTreeSet::new() }
    }

    pub(super) fn add(&mut self, time: Timestamp) {
        self.count += 1;
        self.first = self.first.min(time);
        self.last = self.last.max(time);
        if self.days.len() < MAX_DAYS {
            self.days.insert(time.to_zoned(TimeZone::UTC).date());
        }
    }

    /// Adds the times of similar things.
    pub(super) fn extend(&mut self, other: &Self) {
        self.count += other.count;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.days.extend(other.days.iter().take(MAX_DAYS));
    }

    /// On how many days.
    pub(super) fn days(&self) -> usize {
        self.days.len()
    }
}

/// Some distinct names, in order, and whether there were more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Names {
    pub(crate) named: BTreeSet<String>,
    #[serde(rename = "more")]
    has_more: bool,
}

impl Names {
    pub(super) fn add(&mut self, name: &str) {
        if name.is_empty() || self.named.contains(name) {
            return;
        }
        if self.named.len() < MAX_NAMES {
            self.named.insert(name.to_owned());
        } else {
            self.has_more = true;
        }
    }

    pub(super) fn extend(&mut self, other: &Self) {
        other.named.iter().for_each(|name| self.add(name));
        self.has_more |= other.has_more;
    }

    pub(crate) fn len(&self) -> usize {
        self.named.len()
    }

    /// `shop/web`, or `3: shop/a, shop/b, ...`.
    pub(crate) fn shown(&self, most: usize) -> String {
        let shown: Vec<_> = self.named.iter().take(most).map(String::as_str).collect();
        let rest = if self.len() > most || self.has_more { ", ..." } else { "" };
        format!("{}{rest}", shown.join(", "))
    }

    /// `1 release`, `more than 20 releases`.
    pub(crate) fn counted(&self, what: &str) -> String {
        let more = if self.has_more { "more than " } else { "" };
        format!("{more}{}", counted(self.len(), what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_days_are_bounded() {
        let (mut names, start) = (Names::default(), Timestamp::UNIX_EPOCH);
        let mut times = Times::from(start);
        for number in 0..100 {
            names.add(&format!("n{number:03}"));
            times.add(start + jiff::SignedDuration::from_hours(24 * number));
        }
        assert_eq!(
            (names.counted("name").as_str(), names.shown(2).as_str()),
            ("more than 20 names", "n000, n001, ...")
        );
        assert_eq!((times.count, times.days()), (100, MAX_DAYS));
        assert_eq!((counted(1, "write"), counted(2, "write")), ("1 write".to_owned(), "2 writes".to_owned()));
    }
}
