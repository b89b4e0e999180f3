//! The groups of a user, as the log and `interlock changes` list them.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::text::{MAX_NAME_BYTES, into_printable};

/// The groups of a user, up to a number of bytes. A name that does not fit is left out entirely, because a part of it
/// could pass for another group. Clones share the names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Groups {
    #[serde(rename = "groups", serialize_with = "list")]
    names: Arc<[String]>,
    /// The number of groups that are not listed.
    omitted_groups: u64,
}

/// A text that is not a list of groups.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a JSON list of texts")]
pub struct BadGroups;

impl Groups {
    /// The groups whose list in JSON has at most `max_bytes` bytes. The names are printable.
    #[must_use]
    pub fn of<'g>(groups: impl IntoIterator<Item = &'g str>, max_bytes: usize) -> Self {
        let (mut names, mut omitted_groups, mut bytes) = (Vec::new(), 0, "[]".len());
        for group in groups {
            let listed = (group.len() <= MAX_NAME_BYTES.min(max_bytes)).then(|| listed(group));
            match listed.filter(|(_, length)| bytes + length <= max_bytes) {
                Some((name, length)) => {
                    bytes += length;
                    names.push(name);
                }
                None => omitted_groups += 1,
            }
        }
        Self { names: names.into(), omitted_groups }
    }

    /// Groups in the format of a log line: a list in JSON, and the number of groups left out.
    ///
    /// # Errors
    /// The text is not a list of texts.
    pub fn parse(text: &str, omitted_groups: u64) -> Result<Self, BadGroups> {
        let names: Vec<String> = serde_json::from_str(text).map_err(|_| BadGroups)?;
        Ok(Self { names: names.into(), omitted_groups })
    }

    /// The names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of groups that are not listed.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.omitted_groups
    }

    /// The list in JSON, because a name may contain any separator; `None` if it is empty.
    #[must_use]
    pub fn to_json(&self) -> Option<String> {
        serde_json::to_string(&*self.names).ok().filter(|_| !self.names.is_empty())
    }

    /// Whether no group is known.
    #[must_use]
    pub fn are_unknown(&self) -> bool {
        self.names.is_empty() && self.omitted_groups == 0
    }
}

/// A printable name, and the bytes that it takes in the JSON list, with its comma.
fn listed(group: &str) -> (String, usize) {
    let name = into_printable(group.to_owned(), usize::MAX);
    let bytes = serde_json::to_string(&name).map_or(usize::MAX, |json| json.len().saturating_add(1));
    (name, bytes)
}

fn list<S: Serializer>(names: &Arc<[String]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(names.iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_groups_with_any_names_is_unambiguous() {
        let groups = ["devs", "x;system:masters", "CN=ops,OU=it", "a\"b", "a\u{1b}b", ""];
        let listed = Groups::of(groups, 1024);
        assert_eq!(listed.names(), ["devs", "x;system:masters", "CN=ops,OU=it", "a\"b", "a\u{fffd}b", ""]);
        assert_eq!(Groups::parse(&listed.to_json().unwrap(), 0), Ok(listed));
        assert_eq!(Groups::parse("devs;ops", 0), Err(BadGroups));
        assert_eq!((Groups::of([], 1024).to_json(), Groups::default().are_unknown()), (None, true));
    }

    #[test]
    fn groups_that_do_not_fit_are_counted_and_never_cut() {
        let long = "g".repeat(MAX_NAME_BYTES + 1);
        let many: Vec<String> = (0..200).map(|index| format!("group-{index}\"")).collect();
        let groups = Groups::of(many.iter().map(String::as_str).chain([long.as_str()]), 1024);
        assert!(groups.to_json().unwrap().len() <= 1024);
        assert!(groups.names().iter().all(|name| many.contains(name)));
        assert_eq!(groups.names().len() as u64 + groups.omitted(), 201);
        assert!(groups.names().len() > 40 && groups.names().len() < 200);
        let none = Groups::of([long.as_str()], 1 << 20);
        assert_eq!((none.names().len(), none.omitted(), none.are_unknown()), (0, 1, false));
    }
}
