//! The runbook for a stuck release as a command: checks, a copy of the pending record, its deletion, and the restore.
//!
//! The checks are the same as in [`interlock_engine::rules::inspect`] for the deletion that is about to be requested, so that
//! the command and the webhook agree. `copy` is pure: it converts a record to a copy and back.

mod carried;
mod copy;
mod error;
mod restore;
mod store;

use serde_json::Value;
use serde_json::value::RawValue;

use super::runbook::StuckRecord;
use super::view::View;
pub(crate) use carried::CarryingObject;
use copy::{CopyOrigin, copy_of};
pub(crate) use error::UnstickError;
use interlock_engine::effort::Effort;
use interlock_engine::release::record::{Payload, extra_chunks};
use interlock_engine::release::{Record, Storage, Stored};
pub(crate) use restore::RecordCopy;
use store::StoredObjects;

/// The largest values in a copy, in bytes. A Secret has at most 1 MiB, and most of that may be the record.
const MAX_VALUES_BYTES: usize = 64 << 10;

impl StuckRecord {
    /// Copies each part of the record to a Secret, deletes the record if it has not changed since it was read, and
    /// returns the names of the Secrets. If the record is not deleted, the copy is. The garbage collector deletes
    /// further parts of the record.
    ///
    /// # Errors
    /// When a part cannot be read or copied, when the record changed, when an admission webhook refuses the deletion,
    /// or when the API server does not answer.
    pub(crate) async fn unstick(&self, view: &View<'_>, dry_run: bool) -> Result<Vec<String>, UnstickError> {
        let store = StoredObjects::of(&view.client, &self.release.namespace);
        let copies = self.copy(&store, dry_run).await?;
        let Err(error) = self.delete(&store, dry_run).await else {
            return Ok(copies);
        };
        if let (UnstickError::Failed { what, why }, false) = (&error, dry_run) {
            // Without an answer the record may be deleted, and the copy may be all that is left.
            match store.get(self.storage.kind(), &self.entry.name).await {
                Ok(None) => return Ok(copies),
                Ok(Some(_)) => {}
                Err(_) => {
                    let (what, copies) = (what.clone(), copies.join(", "));
                    let why = format!(
                        "{why}. It is unknown whether the record was deleted. A copy is kept in Secret \
                        {copies}"
                    );
                    return Err(UnstickError::Failed { what, why });
                }
            }
        }
        delete_copies(&store, &copies, dry_run).await;
        Err(error)
    }

    async fn copy(&self, store: &StoredObjects<'_>, dry_run: bool) -> Result<Vec<String>, UnstickError> {
        let failed = |why: String| UnstickError::Failed { what: format!("copy the record {}", self.entry.name), why };
        let index = value(&self.object).map_err(failed)?;
        let mut parts = Vec::new();
        for name in self.chunks().map_err(failed)? {
            // The checks name missing parts. Without its parts, a record is useless and blocks its extension.
            parts.extend(store.get("Secret", &name).await?);
        }
        let origin = CopyOrigin { release: &self.release, storage: self.storage, revision: self.entry.revision };
        let (mut kept, values) = (Vec::new(), self.values());
        // The copy of the record itself comes last: if it exists, the copies of its parts exist.
        for (object, part_of) in parts.iter().map(|part| (part, Some(self.record()))).chain([(&index, None)]) {
            let others = if part_of.is_none() { kept.as_slice() } else { &[] };
            let values = values.as_deref().filter(|_| part_of.is_none());
            let made = match copy_of(object, &origin, part_of, others, values).map_err(failed) {
                Ok(copy) => store.create("Secret", &copy, dry_run).await,
                Err(error) => Err(error),
            };
            match made {
                Ok(made) => kept.push(made["metadata"]["name"].as_str().unwrap_or_default().to_owned()),
                Err(error) => {
                    delete_copies(store, &kept, dry_run).await;
                    return Err(error);
                }
            }
        }
        Ok(kept)
    }

    /// The Secret with the values of the record, among its copies; `None` if the copies do not have them.
    #[must_use]
    pub(crate) fn copy_with_values<'c>(&self, copies: &'c [String]) -> Option<&'c str> {
        copies.last().filter(|_| self.values().is_some()).map(String::as_str)
    }

    /// The values of the operation; `None` for a record that cannot be read, for one of OLM, and for values that do not fit into a Secret
    /// beside the record.
    fn values(&self) -> Option<String> {
        let stored = Stored::read(self.object.as_ref().into()).ok().filter(|_| self.storage != Storage::Index)?;
        let effort = Effort::of_review();
        let body = Payload::decode(self.storage, &stored.data).ok()?.inflate(&effort).ok()?;
        let values = Record::read(&body, &effort).ok()?.values().to_owned();
        (values.len() <= MAX_VALUES_BYTES).then_some(values)
    }

    async fn delete(&self, store: &StoredObjects<'_>, dry_run: bool) -> Result<(), UnstickError> {
        let Self { storage, entry, object, .. } = self;
        let read = value(object).map_err(|why| UnstickError::Failed { what: format!("read {}", entry.name), why })?;
        let given = |key: &str| read["metadata"][key].as_str().unwrap_or_default();
        let state = Some((given("uid"), given("resourceVersion")));
        store.delete(storage.kind(), &entry.name, state, dry_run).await
    }

    /// The names of further parts of the record.
    fn chunks(&self) -> Result<Vec<String>, String> {
        let stored = Stored::read(self.object.as_ref().into()).map_err(|error| error.to_string())?;
        if self.storage == Storage::Index {
            extra_chunks(&stored.data).map_err(|error| error.to_string())
        } else {
            Ok(Vec::new())
        }
    }
}

/// Deletes copies that are not needed, because the record still exists.
async fn delete_copies(store: &StoredObjects<'_>, copies: &[String], dry_run: bool) {
    for name in copies.iter().filter(|_| !dry_run) {
        // A remaining copy does no harm.
        let _ = store.delete("Secret", name, None, false).await;
    }
}

fn value(object: &RawValue) -> Result<Value, String> {
    serde_json::from_str(object.get()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
