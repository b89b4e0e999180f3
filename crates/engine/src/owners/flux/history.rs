//! `status.history` of a HelmRelease.

use std::fmt;

use serde::Deserializer;
use serde::de::{SeqAccess, Visitor};

use super::Snapshot;

/// The maximum number of revisions that are read. Empty items take fifty times the memory of their text.
const MOST_SNAPSHOTS: usize = 32;

/// Reads the newest revisions, and the oldest one. Those between them are left out if there are too many.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Snapshot>, D::Error> {
    deserializer.deserialize_any(Snapshots)
}

struct Snapshots;

impl<'de> Visitor<'de> for Snapshots {
    type Value = Vec<Snapshot>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of revisions")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(snapshot) = items.next_element()? {
            found.truncate(MOST_SNAPSHOTS - 1);
            found.push(snapshot);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::owners::flux::HelmReleaseStatus;

    #[test]
    fn the_newest_revisions_are_read_and_the_oldest() {
        let versions = |count: i64| {
            let history: Vec<_> = (0..count).map(|age| json!({"version": count - age})).collect();
            let status: HelmReleaseStatus = serde_json::from_value(json!({"history": history})).unwrap();
            status.history.iter().map(|snapshot| snapshot.version).collect::<Vec<_>>()
        };
        assert_eq!(versions(3), [3, 2, 1]);
        let many = versions(1_000);
        assert_eq!((many.len(), many[0], many[30], many[31]), (32, 1_000, 970, 1));
        let none: HelmReleaseStatus = serde_json::from_value(json!({"history": null})).unwrap();
        assert!(none.history.is_empty());
        assert!(serde_json::from_value::<HelmReleaseStatus>(json!({"history": "x"})).is_err());
    }
}
