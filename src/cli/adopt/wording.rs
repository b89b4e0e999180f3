//! The spelling of times and accounts in the reports for people.

use jiff::Timestamp;

/// A service account as NAMESPACE:NAME, as in the cases of a policy.
pub(super) fn short(account: &str) -> &str {
    account.strip_prefix("system:serviceaccount:").unwrap_or(account)
}

/// A time to the minute.
pub(super) fn minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}
