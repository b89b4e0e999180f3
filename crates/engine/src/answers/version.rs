//! Versions of records. A version never changes, so cached facts about its content stay valid.

use serde::Deserialize;

/// One version of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectVersion {
    pub uid: String,
    pub resource_version: String,
}

impl ObjectVersion {
    /// The version by uid and resourceVersion; `None` if one of them is unknown.
    pub fn new(uid: &str, resource_version: &str) -> Option<Self> {
        let known = !uid.is_empty() && !resource_version.is_empty();
        known.then(|| Self { uid: uid.to_owned(), resource_version: resource_version.to_owned() })
    }

    /// Whether the JSON text of an object has this version.
    pub fn matches(&self, object: &str) -> bool {
        #[derive(Deserialize)]
        struct Object {
            metadata: Version,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            uid: String,
            resource_version: String,
        }
        let read = serde_json::from_str::<Object>(object).map(|object| object.metadata);
        read.is_ok_and(|version| version.uid == self.uid && version.resource_version == self.resource_version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uid_and_resource_version_identify_a_version() {
        let object = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"},"data":{}}"#;
        let state = |version: usize| ObjectVersion { uid: "u".to_owned(), resource_version: version.to_string() };
        assert!(state(7).matches(object));
        assert!(!state(8).matches(object));
        assert!(!state(7).matches(&object.replace(r#""u""#, r#""other""#)));
        assert!(!state(7).matches("{}"));
        assert_eq!(ObjectVersion::new("u", "7"), Some(state(7)));
        assert_eq!((ObjectVersion::new("", "7"), ObjectVersion::new("u", "")), (None, None));
    }
}
