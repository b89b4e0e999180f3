//! What a write of an Application may delete: the field with which a sync deletes objects that it keeps as before, or gives them up.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Application, keeps_objects};
use crate::json::null_is_default;

/// How syncs delete objects.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SyncPolicy {
    #[serde(deserialize_with = "null_is_default")]
    automated: AutomatedSync,
    #[serde(rename = "syncOptions", deserialize_with = "null_is_default")]
    options: Vec<String>,
}

impl SyncPolicy {
    /// Whether another version loses an option that keeps objects, or lets syncs delete what this one keeps.
    fn loses_in(&self, after: &Self) -> bool {
        let (then, now) = (&self.automated, &after.automated);
        self.options.iter().any(|option| keeps_objects(option) && !after.has_option(option))
            || (now.prunes() && !then.prunes())
            || (now.allow_empty && !then.allow_empty)
    }

    fn has_option(&self, option: &str) -> bool {
        self.options.iter().any(|it| it.trim() == option.trim())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AutomatedSync {
    /// It is enabled without this too.
    enabled: Option<bool>,
    /// Whether a sync deletes objects that left the source.
    #[serde(deserialize_with = "null_is_default")]
    prune: bool,
    /// Whether it deletes all of them.
    #[serde(deserialize_with = "null_is_default")]
    allow_empty: bool,
}

impl AutomatedSync {
    fn prunes(&self) -> bool {
        self.prune && self.enabled != Some(false)
    }
}

/// A sync, with the fields that say what it deletes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Operation {
    #[serde(deserialize_with = "null_is_default")]
    sync: SyncOperation,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SyncOperation {
    #[serde(deserialize_with = "null_is_default")]
    prune: bool,
    /// In place of what the spec names.
    source: Option<IgnoredAny>,
    sources: Option<IgnoredAny>,
    manifests: Option<IgnoredAny>,
}

/// The fields of the spec that leave all objects where they are, or change them as the source can. `syncPolicy` is asked for by itself.
const HARMLESS: [&str; 20] = [
    "ignoreDifferences",
    "info",
    "project",
    "revisionHistoryLimit",
    "source.helm.apiVersions",
    "source.helm.fileParameters",
    "source.helm.ignoreMissingValueFiles",
    "source.helm.kubeVersion",
    "source.helm.parameters",
    "source.helm.passCredentials",
    "source.helm.skipSchemaValidation",
    "source.helm.valueFiles",
    "source.helm.values",
    "source.helm.valuesObject",
    "source.helm.version",
    "source.kustomize.images",
    "source.kustomize.replicas",
    "source.kustomize.version",
    "source.targetRevision",
    "syncPolicy",
];

fn is_harmless(field: &str) -> bool {
    // The sources are a list.
    let field = field.strip_prefix("sources.").map_or(Cow::from(field), |rest| format!("source.{rest}").into());
    HARMLESS.contains(&&*field)
}

impl Application<'_> {
    /// The field with which a sync may delete objects that it keeps as before, or give them up. A sync by hand may prune too.
    pub(super) fn leaves_objects_of(&self, before: &Self) -> Option<String> {
        let (now, then) = (&self.spec, &before.spec);
        if then.sync_policy.loses_in(&now.sync_policy) {
            return Some("spec.syncPolicy".to_owned());
        }
        let field = then.changed_field(now, is_harmless);
        field.map(|field| format!("spec.{field}")).or_else(|| self.prunes_otherwise(before))
    }

    /// `operation.sync`, if it appears, prunes, and brings its own objects.
    fn prunes_otherwise(&self, before: &Self) -> Option<String> {
        let operation = self.operation.filter(|now| before.operation.is_none_or(|then| then.get() != now.get()))?;
        let Operation { sync } = serde_json::from_str(operation.get()).ok()?;
        let brings = sync.source.is_some() || sync.sources.is_some() || sync.manifests.is_some();
        (sync.prune && brings).then(|| "operation.sync".to_owned())
    }
}
