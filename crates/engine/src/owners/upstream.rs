//! Objects that others are made from, and that are lost without it: an ApplicationSet, an AppProject, a source of Flux. They declare
//! nothing themselves, but they can be annotated as protected.

use std::borrow::Cow;

use serde::Deserialize;

use crate::json::null_is_default;
use crate::object::Metadata;

/// A kind of such objects.
#[derive(Debug)]
pub struct UpstreamKind {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    /// What happens without one, for the end of a sentence.
    pub(crate) loss: &'static str,
}

/// Such an object, with the fields that rules use.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Upstream<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    spec: UpstreamSpec<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UpstreamSpec<'a> {
    /// What it generates, if it generates objects.
    #[serde(borrow, deserialize_with = "null_is_default")]
    template: Template<'a>,
    #[serde(deserialize_with = "null_is_default")]
    sync_policy: GenerationPolicy,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GenerationPolicy {
    /// Whether the objects of what it generates outlive it.
    #[serde(deserialize_with = "null_is_default")]
    preserve_resources_on_deletion: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Template<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    spec: TemplateSpec<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TemplateSpec<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    destination: TemplateDestination<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TemplateDestination<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    namespace: Cow<'a, str>,
}

impl Upstream<'_> {
    /// Whether it, or everything that it generates, is annotated as protected.
    pub(crate) fn is_protected(&self) -> bool {
        self.metadata.is_protected() || self.spec.template.metadata.is_protected()
    }

    /// The namespace of the objects of what it generates; `None` if it generates nothing, or in a namespace by a parameter.
    pub(crate) fn home(&self) -> Option<&str> {
        let namespace = &*self.spec.template.spec.destination.namespace;
        Some(namespace).filter(|namespace| !namespace.is_empty() && !namespace.contains("{{"))
    }

    /// Whether nothing is lost with it, as its spec says.
    pub(crate) fn preserves(&self) -> bool {
        self.spec.sync_policy.preserve_resources_on_deletion
    }
}
