//! The on-call's runbook as a command: the checks of the rule, a copy of the pending record, its deletion, and the way back.
//!
//! The checks are those of [`crate::engine::rules::inspect`], over the deletion that is about to be asked for, so that there is no
//! second opinion. `copy` is pure: how a record becomes a copy, and a copy a record again.

mod copy;
mod restore;
mod store;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::status::View;
use crate::engine::evidence::Evidence;
use crate::engine::facts::{Facts, Objects};
use crate::engine::release::record::extra_chunks;
use crate::engine::release::{Entry, History, ReleaseRef, Storage, Stored};
use crate::engine::review::{Gvk, Gvr, Operation, Request, UserInfo};
use crate::engine::rules::{RunbookCheck, inspect};
use crate::world::World;
use copy::{Origin, copy_of};
pub use restore::{Copied, Restored};
use store::Store;

/// Why an act on a record did not come about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnstickError {
    /// The record is another one by now than the one that was checked.
    #[error("the record {0} changed since it was looked at: somebody is at work on the release. Look again")]
    Changed(String),
    /// There is an object of this name already.
    #[error("there is a {0} already")]
    Exists(String),
    /// An admission webhook said no.
    #[error("{0}")]
    Refused(String),
    /// What the release has become meanwhile forbids it.
    #[error("{0}")]
    Overtaken(String),
    /// It could not be done.
    #[error("failed to {what}: {why}")]
    Failed {
        /// What was tried.
        what: String,
        /// Why it failed.
        why: String,
    },
}

impl UnstickError {
    /// Whether this is an answer, and not a failure to get one.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        !matches!(self, Self::Failed { .. })
    }
}

/// The newest record of a release, pending, as it was read at one moment: what is checked, copied and deleted is this state
/// of it and no other.
pub struct Pending {
    release: ReleaseRef,
    storage: Storage,
    entry: Entry,
    object: Box<RawValue>,
}

impl Pending {
    /// Reads the newest record of a release; `None` where that is not pending, or went meanwhile.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(crate) async fn read(
        view: &View<'_>,
        release: &ReleaseRef,
        storage: Storage,
        history: &History,
    ) -> Result<Option<Self>, String> {
        let Some(entry) = history.newest().filter(|newest| newest.status.is_pending()) else {
            return Ok(None);
        };
        let Some(text) = view.world.cluster.text(storage, &release.namespace, &entry.name).await? else {
            return Ok(None);
        };
        let object = RawValue::from_string(text).map_err(|error| format!("{} does not read: {error}", entry.name))?;
        Ok(Some(Self { release: release.clone(), storage, entry: entry.clone(), object }))
    }

    /// Makes every check of the runbook.
    ///
    /// # Errors
    /// When the record is no Secret or ConfigMap. What a check cannot learn is told by the check.
    pub(crate) async fn checks(&self, view: &View<'_>, now: Timestamp) -> Result<Vec<RunbookCheck>, String> {
        let kind = self.storage.kind();
        let request = Request {
            uid: "".into(),
            kind: Gvk { group: "".into(), version: "v1".into(), kind: kind.into() },
            resource: Gvr { group: "".into(), version: "v1".into(), resource: store::plural(kind).into() },
            sub_resource: None,
            name: Some(self.entry.name.as_str().into()),
            namespace: Some(self.release.namespace.as_str().into()),
            operation: Operation::Delete,
            // No check goes by who it is.
            user_info: UserInfo { username: "".into(), groups: Vec::new() },
            object: None,
            old_object: Some(&self.object),
            dry_run: None,
        };
        let objects = Objects::read(&request).map_err(|error| error.to_string())?;
        let bodies = objects.seal(request.operation).open();
        let facts = Facts::of(&request, &objects, &bodies);
        let policy = view.policies.of(&self.release.namespace);
        let mut evidence = Evidence::default();
        loop {
            match inspect(&facts, policy, &evidence, now) {
                Ok(checks) => return Ok(checks),
                Err(query) => {
                    let answer = view.world.answer(&query).await;
                    evidence.add(query, answer);
                }
            }
        }
    }

    /// The object of the record.
    #[must_use]
    pub fn record(&self) -> &str {
        &self.entry.name
    }

    /// Keeps a copy of the record, in a Secret for each of its parts, deletes the record, if it is still as it was read, and
    /// tells the names of these Secrets. Where the record stays, its copy goes. Its parts go with it, by the garbage collector.
    ///
    /// # Errors
    /// When a part cannot be read or its copy not be made, when the record changed, when an admission webhook refuses its
    /// deletion, or the API server does not answer.
    pub async fn unstick(&self, view: &View<'_>, dry_run: bool) -> Result<Vec<String>, UnstickError> {
        let store = Store::of(&view.client, &self.release.namespace);
        let copies = self.keep(&store, dry_run).await?;
        let Err(error) = self.delete(&store, dry_run).await else {
            return Ok(copies);
        };
        if let (UnstickError::Failed { what, why }, false) = (&error, dry_run) {
            // Without an answer the record may be gone, and its copy is all that is left.
            match store.get(self.storage.kind(), &self.entry.name).await {
                Ok(None) => return Ok(copies),
                Ok(Some(_)) => {}
                Err(_) => {
                    let (what, copies) = (what.clone(), copies.join(", "));
                    let why = format!("{why}. Whether it is gone is not known; a copy of it is in Secret {copies}");
                    return Err(UnstickError::Failed { what, why });
                }
            }
        }
        forget(&store, &copies, dry_run).await;
        Err(error)
    }

    async fn keep(&self, store: &Store<'_>, dry_run: bool) -> Result<Vec<String>, UnstickError> {
        let failed = |why: String| UnstickError::Failed { what: format!("copy the record {}", self.entry.name), why };
        let index = value(&self.object).map_err(failed)?;
        let mut parts = Vec::new();
        for name in self.chunks().map_err(failed)? {
            let part = store.get("Secret", &name).await?;
            parts.push(part.ok_or_else(|| failed(format!("its part {name} is missing")))?);
        }
        let origin = Origin { release: &self.release, storage: self.storage, revision: self.entry.revision };
        let mut kept = Vec::new();
        // The copy of the record itself comes last: where it is, the others are.
        for (object, part_of) in parts.iter().map(|part| (part, Some(self.record()))).chain([(&index, None)]) {
            let others = if part_of.is_none() { kept.as_slice() } else { &[] };
            let made = match copy_of(object, &origin, part_of, others).map_err(failed) {
                Ok(copy) => store.create("Secret", &copy, dry_run).await,
                Err(error) => Err(error),
            };
            match made {
                Ok(made) => kept.push(made["metadata"]["name"].as_str().unwrap_or_default().to_owned()),
                Err(error) => {
                    forget(store, &kept, dry_run).await;
                    return Err(error);
                }
            }
        }
        Ok(kept)
    }

    async fn delete(&self, store: &Store<'_>, dry_run: bool) -> Result<(), UnstickError> {
        let Self { storage, entry, object, .. } = self;
        let read = value(object).map_err(|why| UnstickError::Failed { what: format!("read {}", entry.name), why })?;
        let given = |key: &str| read["metadata"][key].as_str().unwrap_or_default();
        let state = Some((given("uid"), given("resourceVersion")));
        store.delete(storage.kind(), &entry.name, state, dry_run).await
    }

    /// The further parts of the record.
    fn chunks(&self) -> Result<Vec<String>, String> {
        let stored = Stored::read(&self.object).map_err(|error| error.to_string())?;
        if self.storage == Storage::OlmIndex {
            extra_chunks(&stored.data).map_err(|error| error.to_string())
        } else {
            Ok(Vec::new())
        }
    }
}

/// Takes away copies that are not needed: the record is still there.
async fn forget(store: &Store<'_>, copies: &[String], dry_run: bool) {
    for name in copies.iter().filter(|_| !dry_run) {
        // One that stays does no harm.
        let _ = store.delete("Secret", name, None, false).await;
    }
}

fn value(object: &RawValue) -> Result<Value, String> {
    serde_json::from_str(object.get()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
