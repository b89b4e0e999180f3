//! The steps of a case, and the reviews that an API server would send for them.

use std::path::Path;

use interlock_engine::object::{ObjectKey, group_of};
use interlock_engine::policy_files::{impossible_group, impossible_kind, impossible_user};
use jiff::Timestamp;
use kube::core::{ApiResource, GroupVersionKind};
use serde::Deserialize;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::duration::duration;
use super::expectation::ThenFile;
use super::record::RecordFile;
use crate::offline::replay::Replay;
use crate::regular_file;

/// The largest file with a review, in bytes: as long as the longest line of a recording.
const MAX_REVIEW_BYTES: u64 = 64 << 20;

/// One step of `when`: either a complete `review`, or a user, an action and an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StepFile {
    /// An AdmissionReview, its `request`, or the name of a file with either.
    review: Option<Value>,
    #[serde(rename = "as")]
    user: Option<String>,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(rename = "do")]
    action: Option<Action>,
    object: Option<Value>,
    /// The object before the step; by default the known object.
    old: Option<Value>,
    record: Option<RecordFile>,
    /// For `do: scale`.
    replicas: Option<i64>,
    /// The resource, if it is not the plural of the kind.
    resource: Option<String>,
    /// The time since the previous step.
    after: Option<String>,
    #[serde(default)]
    dry_run: bool,
    pub(super) then: Option<ThenFile>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Create,
    /// Replaces the object with a complete new object.
    Update,
    /// A merge patch of the object.
    Patch,
    Delete,
    Scale,
}

impl StepFile {
    /// The time of this step, given the time of the previous one.
    pub(super) fn starts(&self, before: Timestamp) -> Result<Timestamp, String> {
        let after = self.after.as_deref().map(duration).transpose()?.unwrap_or_default();
        before.checked_add(after).map_err(|error| format!("after: {error}"))
    }

    /// The AdmissionReview of this step.
    pub(super) fn review(&self, world: &Replay, now: Timestamp, directory: &Path) -> Result<Value, String> {
        let Some(review) = &self.review else { return self.review_of_step(world, now) };
        if let Some(key) = self.superfluous_key() {
            return Err(format!("a complete review already contains `{key}`: remove the key"));
        }
        let review = match review {
            Value::String(name) => {
                let path = directory.join(name);
                let failed = |error: &dyn std::fmt::Display| format!("failed to read {}: {error}", path.display());
                let text = regular_file::read_text(&path, MAX_REVIEW_BYTES).map_err(|error| failed(&error))?;
                serde_json::from_str(&text).map_err(|error| failed(&error))?
            }
            review => review.clone(),
        };
        Ok(if review.get("request").is_some() { review } else { admission_review(review) })
    }

    /// A key that is not allowed with `review`.
    fn superfluous_key(&self) -> Option<&'static str> {
        let said = [
            ("as", self.user.is_some()),
            ("groups", !self.groups.is_empty()),
            ("do", self.action.is_some()),
            ("object", self.object.is_some()),
            ("old", self.old.is_some()),
            ("record", self.record.is_some()),
            ("replicas", self.replicas.is_some()),
            ("resource", self.resource.is_some()),
            ("dryRun", self.dry_run),
        ];
        said.into_iter().find_map(|(key, is_said)| is_said.then_some(key))
    }

    /// Refuses names that no request has. Such a step would be admitted, whatever the policy says.
    fn check_names(&self, user: &str, kind: &str) -> Result<(), String> {
        let impossible = impossible_user(user).or_else(|| self.groups.iter().find_map(|group| impossible_group(group)));
        impossible.or_else(|| impossible_kind(kind)).map_or(Ok(()), Err)
    }

    fn review_of_step(&self, world: &Replay, now: Timestamp) -> Result<Value, String> {
        let user = self.user.as_deref().ok_or("name the user in `as`")?;
        let action = self.action.ok_or("state the action in `do`: create, update, patch, delete or scale")?;
        let named = match (&self.object, &self.record) {
            (Some(object), None) => object.clone(),
            (None, Some(record)) => record.named()?,
            _ => return Err("name either an `object` or a `record`".to_owned()),
        };
        let raw = to_raw_value(&named).map_err(|error| error.to_string())?;
        let key = ObjectKey::of_object(raw.as_ref().into()).map_err(|error| format!("object: {error}"))?;
        self.check_names(user, &key.kind)?;
        let known = world.object(&key).and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let before = self.old.clone().or(known);
        let found = || {
            let ObjectKey { kind, namespace, name, .. } = &key;
            before
                .clone()
                .ok_or_else(|| format!("there is no {kind} {namespace}/{name}: add it to `given`, or set `old`"))
        };
        let new_object = |before: Option<&Value>| match &self.record {
            Some(record) => record.object(before, now),
            None => Ok(named.clone()),
        };
        let (operation, new, old) = match action {
            Action::Create => ("CREATE", Some(new_object(None)?), None),
            Action::Update => ("UPDATE", Some(new_object(Some(&found()?))?), Some(found()?)),
            Action::Patch => ("UPDATE", Some(merged(found()?, &named)), Some(found()?)),
            Action::Delete => ("DELETE", None, Some(found()?)),
            Action::Scale => {
                let replicas = self.replicas.ok_or("set `replicas`")?;
                let scaled = found()?;
                let scale = |replicas: &Value| {
                    json!({
                        "apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas},
                        "metadata": {"name": key.name, "namespace": key.namespace},
                    })
                };
                let old = scaled.pointer("/spec/replicas").cloned().unwrap_or_else(|| 1.into());
                ("UPDATE", Some(scale(&replicas.into())), Some(scale(&old)))
            }
        };
        if action == Action::Scale && self.record.is_some() {
            return Err("a record has no scale".to_owned());
        }
        let api_version = named["apiVersion"].as_str().unwrap_or_default();
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let kind = match action {
            Action::Scale => json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
            _ => json!({"group": key.group, "version": version, "kind": key.kind}),
        };
        let resource = self.resource.clone().unwrap_or_else(|| plural(&key.kind));
        Ok(admission_review(json!({
            "uid": "suite", "kind": kind, "name": key.name, "operation": operation, "dryRun": self.dry_run,
            "resource": {"group": group_of(api_version), "version": version, "resource": resource},
            "subResource": (action == Action::Scale).then_some("scale"),
            // The API server sets this field for a Namespace too.
            "namespace": if key.kind == "Namespace" { &key.name } else { &key.namespace },
            "userInfo": {"username": user, "groups": self.groups},
            "object": new, "oldObject": old,
        })))
    }
}

fn admission_review(request: Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}

/// The object after a JSON merge patch (RFC 7396).
fn merged(mut target: Value, patch: &Value) -> Value {
    json_patch::merge(&mut target, patch);
    target
}

/// The plural of a kind, as most APIs name their resources.
fn plural(kind: &str) -> String {
    // No API has such a kind, and kube's function expects two letters of ASCII.
    if kind.len() < 2 || !kind.is_ascii() {
        return format!("{}s", kind.to_lowercase());
    }
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "", kind)).plural
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_the_plurals_of_kinds() {
        for (kind, resource) in [
            ("Deployment", "deployments"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Endpoints", "endpoints"),
            ("Y", "ys"),
            ("Éy", "éys"),
        ] {
            assert_eq!(plural(kind), resource);
        }
    }
}
