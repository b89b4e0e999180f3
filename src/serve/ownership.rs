//! How objects that Interlock writes are marked as its own.

/// The field manager of what Interlock applies and patches.
pub(super) const FIELD_MANAGER: &str = "interlock";

/// The label, key and value, of every Event and report of Interlock.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "interlock");
