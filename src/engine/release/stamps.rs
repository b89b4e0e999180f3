//! The annotations that say who started the transition of a record, and when.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// `userInfo.username` of the request that started the transition.
pub const HOLDER: &str = "interlock.dev/holder";
/// The server's clock at the start, in RFC 3339.
pub const STARTED: &str = "interlock.dev/started";
/// `name-version` of the chart.
pub const CHART: &str = "interlock.dev/chart";
/// The namespace of the release's objects.
pub const TARGET_NAMESPACE: &str = "interlock.dev/target-namespace";

/// `name-version@revision` of an interrupted operation that is not finished yet. The note is on the record that was
/// unlocked, or on the deployed record if the record of the operation was deleted.
pub const INTERRUPTED: &str = "interlock.dev/interrupted";

/// Every stamp.
pub const KEYS: [&str; 5] = [HOLDER, STARTED, CHART, TARGET_NAMESPACE, INTERRUPTED];

/// The stamps on a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stamps(BTreeMap<&'static str, String>);

impl Stamps {
    /// The stamps among the annotations of an object.
    #[must_use]
    pub fn of(annotation: impl Fn(&str) -> Option<String>) -> Self {
        Self(KEYS.into_iter().filter_map(|key| Some((key, annotation(key)?))).collect())
    }

    /// Sets a stamp.
    pub fn set(&mut self, key: &'static str, value: String) {
        self.0.insert(key, value);
    }

    /// Sets a stamp, or removes it.
    pub fn set_or_remove(&mut self, key: &'static str, value: Option<String>) {
        match value {
            Some(value) => self.set(key, value),
            None => _ = self.0.remove(key),
        }
    }

    /// The value of a stamp.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The user who started the transition; `None` if the stamp was lost.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.get(HOLDER)
    }

    /// `name-version` of the chart of the transition.
    #[must_use]
    pub fn chart(&self) -> Option<&str> {
        self.get(CHART)
    }

    /// When the transition started.
    #[must_use]
    pub fn started(&self) -> Option<Timestamp> {
        self.get(STARTED)?.parse().ok()
    }

    /// Whether no stamp is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stamps as annotations.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(key, value)| (*key, value.as_str()))
    }
}
