//! The hooks of an operation. What a hook of the record in flight does, it does for the operation: it cleans up before an upgrade, or
//! recreates what cannot be changed.
//!
//! Hooks run under accounts that other pods of the namespace have too. So only a token that is bound to a pod counts: that pod is read,
//! and the Job that controls it, and one of them must be the hook. Nobody but the API server says which pod a token is bound to.

use jiff::Timestamp;
use serde::Deserialize;

use super::case::ObjectCase;
use crate::evidence::{CandidateRecords, StoredBody, question};
use crate::object::ObjectKey;
use crate::release::{Entry, Record};
use crate::review::BoundPod;
use crate::rules::undecided::{Undecided, ask, if_answered};

/// The metadata of a pod or a Job.
#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    creation_timestamp: Timestamp,
    #[serde(default)]
    owner_references: Option<Vec<OwnerReference>>,
}

impl Object {
    /// Whether this is the object with the uid, created since a time. The API server writes the seconds of a creation, and no
    /// fractions.
    fn is_since(&self, uid: &str, started: Timestamp) -> bool {
        let Metadata { uid: own, creation_timestamp, .. } = &self.metadata;
        own == uid && creation_timestamp.as_second() >= started.as_second()
    }
}

#[derive(Deserialize)]
struct OwnerReference {
    kind: String,
    name: String,
    uid: String,
    #[serde(default)]
    controller: Option<bool>,
}

impl ObjectCase<'_> {
    /// Whether the actor is a hook of the operation of a record: its pod was created since the operation started, and the record
    /// declares that pod, or the Job that controls it, as a hook. What cannot be read is none.
    pub(super) fn is_hook_of(&self, candidate: &CandidateRecords, operation: &Entry) -> Result<bool, Undecided> {
        let actor = self.facts.actor;
        let account = actor.service_account().and_then(|account| account.split_once(':'));
        let (Some((namespace, _)), Some(BoundPod { name, uid }), Some(started)) =
            (account, actor.pod, operation.started())
        else {
            return Ok(false);
        };
        if !operation.status.is_in_flight() {
            return Ok(false);
        }
        let pod = self.read(ObjectKey::new("", "Pod", namespace, name))?;
        let Some(pod) = pod.filter(|pod| pod.is_since(uid, started)) else {
            return Ok(false);
        };
        let mut owners = pod.metadata.owner_references.unwrap_or_default().into_iter();
        let Some(job) = owners.find(|owner| owner.controller == Some(true)) else {
            return self.declares_hook(candidate, operation, "Pod", (namespace, name));
        };
        if job.kind != "Job" {
            return Ok(false);
        }
        let found = self.read(ObjectKey::new("batch", "Job", namespace, &job.name))?;
        if !found.is_some_and(|found| found.is_since(&job.uid, started)) {
            return Ok(false);
        }
        self.declares_hook(candidate, operation, "Job", (namespace, &job.name))
    }

    fn read(&self, key: ObjectKey) -> Result<Option<Object>, Undecided> {
        let found = if_answered(ask(self.evidence, question::Object(key)))?;
        Ok(found.and_then(|text| serde_json::from_str(text).ok()))
    }

    /// Whether a record declares this object as a hook.
    fn declares_hook(
        &self,
        candidate: &CandidateRecords,
        operation: &Entry,
        kind: &str,
        (namespace, name): (&str, &str),
    ) -> Result<bool, Undecided> {
        let body = question::Body {
            storage: candidate.storage,
            namespace: candidate.namespace.clone(),
            object: operation.name.clone(),
        };
        let Some(StoredBody::Json(json)) = if_answered(ask(self.evidence, body))? else { return Ok(false) };
        let Ok(record) = Record::read(json, self.facts.effort) else { return Ok(false) };
        let hooks = record.hooks_of_kind(kind, self.facts.effort).unwrap_or_default();
        Ok(hooks.iter().any(|hook| hook.namespace == namespace && hook.name == name))
    }
}
