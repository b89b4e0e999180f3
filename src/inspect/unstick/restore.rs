//! Puts a copy of a record back.

use jiff::Timestamp;
use serde_json::Value;

use super::copy::{COPY_LABEL, ORIGINAL, PART_OF, PARTS, RELEASE, REVISION, STORAGE, original_of};
use super::error::UnstickError;
use super::store::ObjectStore;
use crate::engine::release::{ReleaseRef, Revision, Status, Storage};
use crate::inspect::view::View;

/// Whose a part of a record is.
const OWNER_UID: &str = "/metadata/ownerReferences/0/uid";

/// What was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The object of the record.
    pub record: String,
    /// Its revision.
    pub revision: u64,
    /// The copies that it came from, gone by now.
    pub copies: Vec<String>,
}

/// A copy of a record that can be put back: nothing has overtaken it.
pub struct RecordCopy {
    release: ReleaseRef,
    storage: Storage,
    revision: Revision,
    /// The copy of the record.
    name: String,
    original: Value,
    /// The copies of its parts, and these.
    parts: Vec<(String, Value)>,
    /// Copies of the same state of the record, which somebody else kept at the same time.
    duplicates: Vec<String>,
    /// The record, where it is back already.
    there: Option<Value>,
}

impl RecordCopy {
    /// The newest copy of a record of a release, `None` where there is none.
    ///
    /// # Errors
    /// When a revision that is not older exists by now, when the copy does not read, or the API server does not answer.
    pub async fn find(view: &View<'_>, release: &ReleaseRef) -> Result<Option<Self>, UnstickError> {
        let failed = |what: &str, why: String| UnstickError::Failed { what: what.to_owned(), why };
        let store = ObjectStore::of(&view.client, &release.namespace);
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
            let why = format!("Secret {name} is no copy of a pending record of it. Somebody else made that");
            return Err(failed(&format!("restore revision {revision} of release {release}"), why));
        }
        let mut parts = Vec::new();
        for part in part_names(&copy) {
            let copy = store.get("Secret", &part).await?;
            let copy = copy.ok_or_else(|| failed("restore the record", format!("{part}, a part of it, is gone")))?;
            parts.push((part, original_of(&copy).map_err(|why| failed("read the copy of a part", why))?));
        }
        let history = view.history(release, storage).await;
        let history = history.map_err(|error| failed("restore the record", error.to_string()))?;
        if history.newest().is_none() {
            return Err(UnstickError::Overtaken(format!(
                "Cannot restore revision {revision} of release {release}: none of its records is left, it was uninstalled since"
            )));
        }
        let mut there = None;
        if let Some(newest) = history.newest().filter(|newest| newest.revision >= revision) {
            there = store.get(storage.kind(), text(&original, "/metadata/name")).await?;
            there = there.filter(|there| newest.revision == revision && there["data"] == original["data"]);
            if there.is_none() {
                return Err(UnstickError::Overtaken(format!(
                    "Cannot restore revision {revision} of release {release}: revision {} is {} by now, and Helm goes by \
                     the newest. The copy stays until somebody deletes it: kubectl delete secret {name} -n {}",
                    newest.revision, newest.status, release.namespace
                )));
            }
        }
        let duplicates = duplicates(&all, &copy);
        Ok(Some(Self { release: release.clone(), storage, revision, name, original, parts, duplicates, there }))
    }

    /// The object that the record is to become again.
    #[must_use]
    pub fn record(&self) -> &str {
        text(&self.original, "/metadata/name")
    }

    /// Creates the record under its name, and then takes the copy away. Once more is no harm: a record that is back already
    /// is left as it is.
    ///
    /// # Errors
    /// When an admission webhook refuses it, or the API server does not answer.
    pub async fn restore(self, view: &View<'_>, dry_run: bool) -> Result<Restored, UnstickError> {
        let store = ObjectStore::of(&view.client, &self.release.namespace);
        let uid = self.there.as_ref().map(|there| text(there, "/metadata/uid").to_owned());
        for (_, part) in &self.parts {
            let name = text(part, "/metadata/name");
            let there = store.get("Secret", name).await?;
            if there.is_some_and(|there| uid.as_deref() != Some(text(&there, OWNER_UID))) {
                let why =
                    format!("{name}, a part of the deleted record, is still being collected. Try again in a minute");
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
            // The garbage collector takes what belongs to the record that was deleted.
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

/// Whether this is the pending record that a copy says it is of: whoever may create Secrets can make a copy.
fn is_copy_of(original: &Value, release: &ReleaseRef, storage: Storage, revision: Revision) -> bool {
    let label = |key: &str| original["metadata"]["labels"][key].as_str().unwrap_or_default();
    original["kind"] == storage.kind()
        && label("name") == release.name
        && label("version").parse() == Ok(revision)
        && label("status").parse().is_ok_and(Status::is_pending)
}

/// The copy of the highest revision of a release; of several of that the latest.
fn newest(all: &[Value], release: &str) -> Option<(String, Storage, Revision)> {
    let copies = all.iter().filter_map(|copy| {
        let annotation = |key: &str| copy["metadata"]["annotations"][key].as_str();
        if annotation(RELEASE) != Some(release) || annotation(PART_OF).is_some() {
            return None;
        }
        let storage = match annotation(STORAGE)? {
            "configmap" => Storage::ConfigMap,
            "olm" => Storage::OlmIndex,
            _ => Storage::Secret,
        };
        let revision: Revision = annotation(REVISION)?.parse().ok()?;
        let created = text(copy, "/metadata/creationTimestamp").parse::<Timestamp>().ok();
        Some((revision, created, text(copy, "/metadata/name"), storage))
    });
    let newest = copies.max_by_key(|(revision, created, ..)| (*revision, *created));
    newest.map(|(revision, _, name, storage)| (name.to_owned(), storage, revision))
}

/// The other copies of what a copy was made of, and those of its parts.
fn duplicates(all: &[Value], copy: &Value) -> Vec<String> {
    let original = |copy: &Value| copy["metadata"]["annotations"][ORIGINAL].clone();
    let is_twin = |it: &&Value| original(it) == original(copy) && it["metadata"]["name"] != copy["metadata"]["name"];
    let duplicates = all.iter().filter(is_twin);
    duplicates.flat_map(|twin| part_names(twin).into_iter().chain([text(twin, "/metadata/name").to_owned()])).collect()
}

/// The copies of the parts of a record.
fn part_names(copy: &Value) -> Vec<String> {
    let part_names = copy["metadata"]["annotations"][PARTS].as_str();
    part_names.and_then(|part_names| serde_json::from_str(part_names).ok()).unwrap_or_default()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
