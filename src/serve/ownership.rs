//! How objects that Interlock writes are marked as its own.

use std::collections::BTreeMap;

use interlock_engine::managed::MANAGED_BY_LABEL;

/// The field manager of what Interlock applies and patches.
pub(super) const FIELD_MANAGER: &str = "interlock";

/// The label, key and value, of every Event and report of Interlock.
pub(super) const MANAGED_BY: (&str, &str) = (MANAGED_BY_LABEL, "interlock");

/// Further labels beside Interlock's own, which none of them replaces.
pub(super) fn own_and(mut labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    labels
}
