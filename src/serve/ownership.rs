//! The marks on objects that Interlock writes.

use std::collections::BTreeMap;

use interlock_engine::managed::MANAGED_BY_LABEL;

/// The label of every Event and report of Interlock, as key and value.
pub(super) const MANAGED_BY: (&str, &str) = (MANAGED_BY_LABEL, "interlock");

/// Adds Interlock's own label to further labels. The own label wins.
pub(super) fn own_and(mut labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    labels
}
