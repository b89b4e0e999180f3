//! An ApplicationSet, which generates Applications. Its controller deletes those that are generated no longer.

use std::borrow::Cow;

use serde::Deserialize;

use crate::json::null_is_default;
use crate::object::Metadata;

/// The kind of an ApplicationSet.
pub(super) const APPLICATION_SET: &str = "ApplicationSet";

/// The end of the name of its controller's service account. Operators put the name of an instance in front.
pub(super) const GENERATOR: &str = "-applicationset-controller";

/// An ApplicationSet, with the fields that rules use. It has a status subresource.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApplicationSet<'a> {
    #[serde(borrow)]
    pub(super) metadata: Metadata<'a>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub(super) status: ApplicationSetStatus<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ApplicationSetStatus<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    conditions: Vec<Condition<'a>>,
    /// The Applications before the deletions that its controller makes now.
    #[serde(borrow, deserialize_with = "null_is_default")]
    resources: Vec<Listed<'a>>,
    /// Their number. The list itself has a limit.
    #[serde(deserialize_with = "null_is_default")]
    resources_count: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "null_is_default")]
    kind: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    status: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    reason: Cow<'a, str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Listed<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    name: Cow<'a, str>,
}

impl ApplicationSet<'_> {
    /// How many Applications there are, with these, which exist.
    pub(super) fn applications_with(&self, existing: &[&str]) -> usize {
        let listed = |name: &str| self.status.resources.iter().any(|listed| listed.name == name);
        let unlisted = existing.iter().filter(|name| !listed(name)).count();
        self.status.resources_count.max(self.status.resources.len() + unlisted)
    }

    /// `ErrorOccurred=True (ApplicationValidationError)`, as its controller says; `None` if it has not said anything.
    pub(super) fn state(&self) -> Option<String> {
        let condition = self.status.conditions.iter().find(|condition| condition.kind == "ErrorOccurred")?;
        let is_word = |text: &str| text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let Condition { status, reason, .. } = condition;
        (is_word(status) && is_word(reason)).then(|| format!("ErrorOccurred={status} ({reason})"))
    }
}

/// The name of the ApplicationSet that generates an object.
pub(super) fn generator_of(metadata: &Metadata<'_>) -> Option<String> {
    #[derive(Deserialize)]
    struct Reference<'a> {
        #[serde(borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    let references: Vec<Reference<'_>> = serde_json::from_str(metadata.owner_references?.get()).ok()?;
    let set = references.into_iter().find(|reference| reference.kind == APPLICATION_SET)?;
    Some(set.name.into_owned())
}
