//! The versions of Kubernetes that Interlock supports.

/// The oldest supported minor version. Match conditions of webhooks are stable since 1.30, and flow control since 1.29. Without
/// match conditions, every Secret would be sent to Interlock.
pub const OLDEST_MINOR: u64 = 30;

/// The newest minor version that the tests have run on.
pub const NEWEST_TESTED_MINOR: u64 = 37;

/// Whether Interlock supports an API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    TooOld,
    Supported,
    /// Probably works.
    NewerThanTested,
    /// The version cannot be parsed.
    Unknown,
}

/// Whether Interlock supports a minor version, as in the answer to `/version`. Some vendors report `30+`.
#[must_use]
pub fn support_of(minor: &str) -> Support {
    match minor.trim_end_matches('+').parse::<u64>() {
        Ok(minor) if minor < OLDEST_MINOR => Support::TooOld,
        Ok(minor) if minor > NEWEST_TESTED_MINOR => Support::NewerThanTested,
        Ok(_) => Support::Supported,
        Err(_) => Support::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minor_versions_are_classified() {
        let (oldest, newest) = (OLDEST_MINOR, NEWEST_TESTED_MINOR);
        for (minor, support) in [
            (format!("{}", oldest - 1), Support::TooOld),
            (format!("{}+", oldest - 1), Support::TooOld),
            (format!("{oldest}"), Support::Supported),
            (format!("{newest}+"), Support::Supported),
            (format!("{}", newest + 1), Support::NewerThanTested),
            ("x".to_owned(), Support::Unknown),
            (String::new(), Support::Unknown),
        ] {
            assert_eq!(support_of(&minor), support, "{minor:?}");
        }
    }
}
