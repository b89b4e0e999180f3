//! The on-call's runbook as a command: the checks of the rule, a copy of the pending record, its deletion, and the way back.
//!
//! The checks are those of [`crate::rules::inspect`], over the deletion that is about to be asked for, so that there is no
//! second opinion. `copy` is pure: how a record becomes a copy, and a copy a record again.

mod copy;
mod restore;
mod store;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::facts::{Facts, Objects};
use crate::release::record::extra_chunks;
use crate::release::{Entry, History, ReleaseRef, Storage, Stored};
use crate::review::{Gvk, Gvr, Operation, Request, UserInfo};
use crate::rules::{Check, inspect};
use crate::status::View;
use crate::world::{Evidence, World};
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
    pub(crate) async fn checks(&self, view: &View<'_>, now: Timestamp) -> Result<Vec<Check>, String> {
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

    /// Keeps a copy of the record, in a Secret for each of its parts, and tells their names. One that was kept before is left
    /// as it is: its name says which state of the record it is of.
    ///
    /// # Errors
    /// When a part cannot be read or its copy not be made.
    pub async fn keep(&self, view: &View<'_>, dry_run: bool) -> Result<Vec<String>, UnstickError> {
        let store = Store::of(&view.client, &self.release.namespace);
        let failed = |why: String| UnstickError::Failed { what: format!("copy the record {}", self.entry.name), why };
        let index = value(&self.object).map_err(failed)?;
        let mut parts = Vec::new();
        for name in self.chunks().map_err(failed)? {
            let part = store.get("Secret", &name).await?;
            parts.push(part.ok_or_else(|| failed(format!("its part {name} is missing")))?);
        }
        let origin = Origin { release: &self.release, storage: self.storage, revision: self.entry.revision };
        // The copy of the record itself comes last: where it is, the others are.
        let copies = parts.iter().map(|part| copy_of(part, &origin, Some(&self.entry.name), &[]));
        let mut copies = copies.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let names: Vec<_> = copies.iter().map(|copy| copy.name.clone()).collect();
        copies.push(copy_of(&index, &origin, None, &names).map_err(failed)?);
        let mut kept = Vec::new();
        for copy in copies {
            match store.create("Secret", &copy.object, dry_run).await {
                Ok(_) | Err(UnstickError::Exists(_)) => kept.push(copy.name),
                Err(error) => return Err(error),
            }
        }
        Ok(kept)
    }

    /// Deletes the record, if it is still as it was read. Its parts go with it, by the garbage collector.
    ///
    /// # Errors
    /// When it changed, when an admission webhook refuses it, or the API server does not answer.
    pub async fn delete(&self, view: &View<'_>, dry_run: bool) -> Result<(), UnstickError> {
        let Self { release, storage, entry, object } = self;
        let read = value(object).map_err(|why| UnstickError::Failed { what: format!("read {}", entry.name), why })?;
        let given = |key: &str| read["metadata"][key].as_str().unwrap_or_default();
        let store = Store::of(&view.client, &release.namespace);
        let state = Some((given("uid"), given("resourceVersion")));
        store.delete(storage.kind(), &entry.name, state, dry_run).await
    }

    /// Takes away copies that are not needed: the record is still there.
    pub async fn forget(&self, view: &View<'_>, copies: &[String]) {
        let store = Store::of(&view.client, &self.release.namespace);
        for name in copies {
            // One that stays does no harm.
            let _ = store.delete("Secret", name, None, false).await;
        }
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

fn value(object: &RawValue) -> Result<Value, String> {
    serde_json::from_str(object.get()).map_err(|error| error.to_string())
}
