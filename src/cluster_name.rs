//! The name that people gave a cluster, for the logs, metrics and reports of many clusters in one place.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The longest name, in bytes. The ARN of an EKS cluster has at most 180.
const MAX_BYTES: usize = 253;

/// A name of ASCII letters, digits and `._:/@_-`, such as `prod-eu` or `arn:aws:eks:eu-west-1:1:cluster/prod`. It needs no escaping in JSON,
/// HTML or a label of Prometheus. At most 253 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterName(Arc<str>);

impl ClusterName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for ClusterName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > MAX_BYTES {
            return Err(format!("a cluster name has 1 to {MAX_BYTES} characters"));
        }
        match text.chars().find(|it| !(it.is_ascii_alphanumeric() || "._:/@_-".contains(*it))) {
            Some(wrong) => Err(format!("a cluster name has letters, digits and ._:/@_- but not {wrong:?}")),
            None => Ok(Self(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_clouds_are_accepted_and_markup_is_not() {
        for name in [
            "prod-eu",
            "arn:aws:eks:eu-west-1:111122223333:cluster/prod",
            "gke_project_europe-west1_prod",
            "admin@kind",
        ] {
            assert_eq!(name.parse::<ClusterName>().unwrap().as_str(), name);
        }
        for wrong in ["", "a b", "<b>", "a\"", "\n", &"a".repeat(MAX_BYTES + 1)] {
            assert!(wrong.parse::<ClusterName>().is_err(), "{wrong:?}");
        }
    }
}
