//! The annotations with the user who started the transition of a record, and the time of the start.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{DriverRef, ProtectorRef, Status};

/// `userInfo.username` of the request that started the transition.
pub const HOLDER: &str = "interlock.dev/holder";
/// The pipeline whose sessions share the transition: `PIPELINE`, or `PIPELINE/GROUP`. Absent if only the user holds it.
pub const PIPELINE: &str = "interlock.dev/pipeline";
/// The server's clock at the start, in RFC 3339.
pub const STARTED: &str = "interlock.dev/started";
/// The server's clock at the end of the transition, in RFC 3339. `managedFields` has the time too, but clients write
/// those.
pub const ENDED: &str = "interlock.dev/ended";
/// The declaration for which the holder worked at the start: `KIND/NAMESPACE/NAME/UID/GENERATION`. Absent if none is known.
pub const DRIVER: &str = "interlock.dev/driver";
/// `name-version` of the chart.
pub const CHART: &str = "interlock.dev/chart";
/// The namespace of the release's objects.
pub const TARGET_NAMESPACE: &str = "interlock.dev/target-namespace";

/// `name-version@revision` of an interrupted operation that is not finished yet. The note is on the unlocked record. If
/// the record of the operation was deleted, the note is on the newest remaining record.
pub const INTERRUPTED: &str = "interlock.dev/interrupted";

/// A digest of the hooks of a record, set while a filtered test has left some of them out.
pub const HOOKS: &str = "interlock.dev/hooks";

/// The annotated object that protects the release: `KIND/NAMESPACE/NAME/UID`. The leader sets it, and removes it once that object
/// exists without its annotation. A new record inherits it.
pub const PROTECTED_BY: &str = "interlock.dev/protected-by";

/// Every stamp.
pub const KEYS: [&str; 10] =
    [HOLDER, PIPELINE, DRIVER, STARTED, ENDED, CHART, TARGET_NAMESPACE, INTERRUPTED, HOOKS, PROTECTED_BY];

/// The stamps on a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stamps(BTreeMap<&'static str, String>);

impl Stamps {
    /// The stamps among the annotations of an object.
    #[must_use]
    pub fn of(annotation: impl Fn(&str) -> Option<String>) -> Self {
        Self(KEYS.into_iter().filter_map(|key| Some((key, annotation(key)?))).collect())
    }

    /// No stamps.
    pub const NONE: &'static Self = &Self(BTreeMap::new());

    /// The stamps of an operation that this user holds.
    #[must_use]
    pub fn held_by(user: &str) -> Self {
        Self(BTreeMap::from([(HOLDER, user.to_owned())]))
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

    /// The pipeline whose sessions share the transition.
    #[must_use]
    pub fn pipeline(&self) -> Option<&str> {
        self.get(PIPELINE)
    }

    /// The declaration for which the holder worked at the start.
    #[must_use]
    pub fn driver(&self) -> Option<DriverRef<'_>> {
        DriverRef::parse(self.get(DRIVER)?)
    }

    /// The annotated object that protects the release.
    #[must_use]
    pub fn protected_by(&self) -> Option<ProtectorRef<'_>> {
        ProtectorRef::parse(self.get(PROTECTED_BY)?)
    }

    /// `name-version` of the chart of the transition.
    #[must_use]
    pub fn chart(&self) -> Option<&str> {
        self.get(CHART)
    }

    /// The namespace of the release's objects.
    #[must_use]
    pub fn target_namespace(&self) -> Option<&str> {
        self.get(TARGET_NAMESPACE)
    }

    /// When the transition started.
    #[must_use]
    pub fn started(&self) -> Option<Timestamp> {
        self.get(STARTED)?.parse().ok()
    }

    /// When the operation of a record in this status started, by the server's clock.
    ///
    /// An operation creates its pending record. An uninstall, however, starts on a record that may be months old, so
    /// the stamp has its start. If the stamp was lost, only the creation of the record is certain.
    #[must_use]
    pub fn operation_started(&self, status: Option<Status>, created: Option<Timestamp>) -> Option<Timestamp> {
        self.started().filter(|_| status == Some(Status::Uninstalling)).or(created)
    }

    /// When the transition ended; `None` while it is in flight, or if the stamp was lost.
    #[must_use]
    pub fn ended(&self) -> Option<Timestamp> {
        self.get(ENDED)?.parse().ok()
    }

    /// The stamps as annotations.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(key, value)| (*key, value.as_str()))
    }
}
