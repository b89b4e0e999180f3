//! Restores a record from its copy.

use interlock_engine::release::{ReleaseRef, Revision, Status, Storage};
use jiff::Timestamp;
use serde_json::Value;

use super::copy::{COPY_LABEL, ORIGINAL, PART_OF, PARTS, RELEASE, REVISION, STORAGE, original_of};
use super::error::UnstickError;
use super::store::StoredObjects;
use crate::inspect::view::View;

/// The owner of a further part of a record.
const OWNER_UID: &str = "/metadata/ownerReferences/0/uid";

/// A restored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Restored {
    /// The object name of the record.
    pub record: String,
    pub revision: u64,
    /// The deleted copies.
    pub copies: Vec<String>,
}

/// A copy of a record that can be restored.
pub(crate) struct RecordCopy {
    release: ReleaseRef,
    storage: Storage,
    revision: Revision,
    /// The copy of the record.
    name: String,
    original: Value,
    /// The copies of further parts, with their originals.
    parts: Vec<(String, Value)>,
    /// Further copies of the same version of the record, from concurrent commands.
    duplicates: Vec<String>,
    /// The record, if it already exists again.
    there: Option<Value>,
}

impl RecordCopy {
    /// Finds the newest copy of a record of a release; `None` without a copy.
    ///
    /// # Errors
    /// When the same or a newer revision exists, when the copy cannot be parsed, or when the API server does not
    /// answer.
    pub(crate) async fn find(view: &View<'_>, release: &ReleaseRef) -> Result<Option<Self>, UnstickError> {
        let store = StoredObjects::of(&view.client, &release.namespace);
        let (label, value) = COPY_LABEL;
        let all = store.list_metadata("Secret", &format!("{label}={value}")).await?;
        let Some((name, storage, revision)) = newest(&all, &release.name) else {
            return Ok(None);
        };
        let Some(copy) = store.get("Secret", &name).await? else {
            return Ok(None);
        };
        let original = original_of(&copy).map_err(|why| failed("read the copy of the record", why))?;
        if !is_copy_of(&original, release, storage, revision) {
            let why = format!(
                "Secret {name} is not a copy of a pending record of this release, so it was not \
                created by interlock unstick"
            );
            return Err(failed(&format!("restore revision {revision} of release {release}"), why));
        }
        let mut parts = Vec::new();
        for part in part_names(&copy) {
            let copy = store.get("Secret", &part).await?;
            let copy = copy.ok_or_else(|| failed("restore the record", format!("its part {part} does not exist")))?;
            parts.push((part, original_of(&copy).map_err(|why| failed("read the copy of a part", why))?));
        }
        let history = view.history(release, storage).await;
        let history = history.map_err(|error| failed("restore the record", error.to_string()))?;
        if history.newest().is_none() {
            return Err(UnstickError::Overtaken(format!(
                "Cannot restore revision {revision} of release {release}: the release has no records any more, \
                 because it was uninstalled"
            )));
        }
        let mut there = None;
        if let Some(newest) = history.newest().filter(|newest| newest.revision >= revision) {
            there = store.get(storage.kind(), text(&original, "/metadata/name")).await?;
            there = there.filter(|there| newest.revision == revision && there["data"] == original["data"]);
            if there.is_none() {
                return Err(UnstickError::Overtaken(format!(
                    "Cannot restore revision {revision} of release {release}: revision {} is {} now, and the newest \
                     one counts. To delete the copy: kubectl delete secret {name} -n {}",
                    newest.revision, newest.status, release.namespace
                )));
            }
        }
        let duplicates = duplicates(&all, &copy);
        Ok(Some(Self { release: release.clone(), storage, revision, name, original, parts, duplicates, there }))
    }

    /// The object name of the record.
    #[must_use]
    pub(crate) fn record(&self) -> &str {
        text(&self.original, "/metadata/name")
    }

    /// Creates the record again, and then deletes the copy. The call can be repeated: an existing record is not changed.
    ///
    /// # Errors
    /// When an admission webhook refuses the record, or the API server does not answer.
    pub(crate) async fn restore(self, view: &View<'_>, dry_run: bool) -> Result<Restored, UnstickError> {
        let store = StoredObjects::of(&view.client, &self.release.namespace);
        let uid = self.there.as_ref().map(|there| text(there, "/metadata/uid").to_owned());
        for (_, part) in &self.parts {
            let name = text(part, "/metadata/name");
            let there = store.get("Secret", name).await?;
            if there.is_some_and(|there| uid.as_deref() != Some(text(&there, OWNER_UID))) {
                let why = format!(
                    "{name}, a part of the deleted record, is still being collected by the garbage \
                        collector. Try again in a minute"
                );
                return Err(UnstickError::Overtaken(why));
            }
        }
        let record = self.record().to_owned();
        let mut copies: Vec<_> = self.parts.iter().map(|(name, _)| name.clone()).collect();
        copies.push(self.name);
        copies.extend(self.duplicates);
        let restored = Restored { record, revision: self.revision.0, copies };
        let index = match self.there {
            Some(there) => there,
            None => store.create(self.storage.kind(), &self.original, dry_run).await?,
        };
        if dry_run {
            return Ok(restored);
        }
        for (_, mut part) in self.parts {
            // The garbage collector would delete a part whose owner is the deleted record.
            if let Some(owner) = part.pointer_mut(OWNER_UID) {
                *owner = index["metadata"]["uid"].clone();
            }
            match store.create("Secret", &part, false).await {
                Ok(_) | Err(UnstickError::Exists(_)) => {}
                Err(error) => return Err(error),
            }
        }
        for name in &restored.copies {
            store.delete("Secret", name, None, false).await?;
        }
        Ok(restored)
    }
}

fn failed(what: &str, why: String) -> UnstickError {
    UnstickError::Failed { what: what.to_owned(), why }
}

/// Whether the original is a pending record of the release: every user who may create Secrets can forge a copy.
fn is_copy_of(original: &Value, release: &ReleaseRef, storage: Storage, revision: Revision) -> bool {
    let label = |key: &str| original["metadata"]["labels"][key].as_str().unwrap_or_default();
    original["kind"] == storage.kind()
        && label("name") == release.name
        && label("version").parse() == Ok(revision)
        && label("status").parse().is_ok_and(Status::is_pending)
}

/// The copy of the highest revision of a release, and the latest of several copies.
fn newest(all: &[Value], release: &str) -> Option<(String, Storage, Revision)> {
    let copies = all.iter().filter_map(|copy| {
        let annotation = |key: &str| copy["metadata"]["annotations"][key].as_str();
        if annotation(RELEASE) != Some(release) || annotation(PART_OF).is_some() {
            return None;
        }
        let storage = Storage::named(annotation(STORAGE)?).unwrap_or(Storage::Secret);
        let revision: Revision = annotation(REVISION)?.parse().ok()?;
        let created = text(copy, "/metadata/creationTimestamp").parse::<Timestamp>().ok();
        Some((revision, created, text(copy, "/metadata/name"), storage))
    });
    let newest = copies.max_by_key(|(revision, created, ..)| (*revision, *created));
    newest.map(|(revision, _, name, storage)| (name.to_owned(), storage, revision))
}

/// Other copies of the same original, with the copies of its parts.
fn duplicates(all: &[Value], copy: &Value) -> Vec<String> {
    let twins =
        all.iter().filter(|it| original(it) == original(copy) && it["metadata"]["name"] != copy["metadata"]["name"]);
    twins.flat_map(|twin| part_names(twin).into_iter().chain([text(twin, "/metadata/name").to_owned()])).collect()
}

fn original(copy: &Value) -> &Value {
    &copy["metadata"]["annotations"][ORIGINAL]
}

/// The names of the copies of further parts.
fn part_names(copy: &Value) -> Vec<String> {
    let part_names = copy["metadata"]["annotations"][PARTS].as_str();
    part_names.and_then(|part_names| serde_json::from_str(part_names).ok()).unwrap_or_default()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
