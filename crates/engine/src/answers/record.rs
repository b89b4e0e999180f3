//! What a record contains: its body, and the documents of its manifest. Every world reads records with this code. The worlds
//! differ in where the objects are, and in how a review waits for the work.

use std::sync::Arc;

use super::document::read_document;
use super::payload::{self, OpenedPayload};
use super::version::ObjectVersion;
use crate::effort::Effort;
use crate::evidence::{ReadDocument, RecordRef, StoredBody, question};
use crate::release::manifest::DocumentKey;
use crate::release::record::{DecodeError, Payload};
use crate::release::{Record, Storage};

/// Where the objects of records are. An error says why an object cannot be read at the moment.
pub trait RecordStore {
    /// The JSON text of a record's object; `None` if the object does not exist.
    fn text(
        &self,
        storage: Storage,
        namespace: &str,
        object: &str,
    ) -> impl Future<Output = Result<Option<String>, String>>;
}

/// The work on records that one review pays for. An error says why the review gets no turn, or has no steps left.
pub trait RecordWork {
    /// Inflates a payload, and reads its body. The inner error is about the record.
    fn inflated<T>(
        &self,
        payload: Payload,
        read: impl FnOnce(Vec<u8>, &Effort) -> Result<T, DecodeError>,
    ) -> impl Future<Output = Result<Result<T, DecodeError>, String>>;

    /// Searches a manifest for the document of an object.
    fn found(&self, manifest: &str, object: &DocumentKey) -> impl Future<Output = Result<ReadDocument, String>>;
}

/// Work at once, without a turn.
impl RecordWork for Effort {
    async fn inflated<T>(
        &self,
        payload: Payload,
        read: impl FnOnce(Vec<u8>, &Effort) -> Result<T, DecodeError>,
    ) -> Result<Result<T, DecodeError>, String> {
        Ok(payload.inflate(self).and_then(|body| read(body, self)))
    }

    async fn found(&self, manifest: &str, object: &DocumentKey) -> Result<ReadDocument, String> {
        read_document(manifest, object, self)
    }
}

/// The body of a record; `None` if its object does not exist.
///
/// # Errors
/// The record cannot be read.
pub async fn body(
    store: &impl RecordStore,
    work: &impl RecordWork,
    question::Body { storage, namespace, object }: &question::Body,
) -> Result<Option<StoredBody>, String> {
    let Some(text) = store.text(*storage, namespace, object).await? else { return Ok(None) };
    let payload = payload(store, *storage, namespace, &text).await?;
    drop(text);
    let body = match payload {
        Ok(payload) => work.inflated(payload, |body, _| Ok(body)).await?,
        Err(error) => Err(error),
    };
    match body {
        Ok(json) => Ok(Some(StoredBody::Json(json))),
        Err(error @ DecodeError::OverBudget(_)) => Err(payload::undecodable(namespace, object, &error)),
        Err(error) => Ok(Some(StoredBody::Broken(error))),
    }
}

/// The document of an object in the manifest of one version of a record, or of the current version if the version is
/// unknown; `None` if the record's object does not exist.
///
/// # Errors
/// The record cannot be read, or has changed.
pub async fn document(
    store: &impl RecordStore,
    work: &impl RecordWork,
    question::Document { record, object }: &question::Document,
) -> Result<Option<ReadDocument>, String> {
    let version = ObjectVersion::new(&record.uid, &record.resource_version);
    let Some(manifest) = manifest(store, work, record, version.as_ref()).await? else { return Ok(None) };
    work.found(&manifest, object).await.map(Some)
}

/// The manifest of a version of a record, or of the current version; `None` if the record's object does not exist.
///
/// # Errors
/// The record cannot be read, or has changed.
pub async fn manifest(
    store: &impl RecordStore,
    work: &impl RecordWork,
    RecordRef { storage, namespace, name, .. }: &RecordRef,
    version: Option<&ObjectVersion>,
) -> Result<Option<Arc<str>>, String> {
    let Some(text) = store.text(*storage, namespace, name).await? else { return Ok(None) };
    if version.is_some_and(|version| !version.matches(&text)) {
        return Err(format!("the record {namespace}/{name} changed during the review"));
    }
    let payload = payload(store, *storage, namespace, &text).await?;
    drop(text);
    let manifest = inflated(work, namespace, name, payload, |body, effort| {
        Record::read(&body, effort).map(|record| record.manifest().into())
    });
    manifest.await.map(Some)
}

/// Inflates the payload of a record, if there is one, and reads its body.
async fn inflated<T>(
    work: &impl RecordWork,
    namespace: &str,
    object: &str,
    payload: Result<Payload, DecodeError>,
    read: impl FnOnce(Vec<u8>, &Effort) -> Result<T, DecodeError>,
) -> Result<T, String> {
    let read = match payload {
        Ok(payload) => work.inflated(payload, read).await?,
        Err(error) => Err(error),
    };
    read.map_err(|error| payload::undecodable(namespace, object, &error))
}

/// The payload in the JSON text of a record's object, with the further chunks that OLM may have split it into. The inner
/// error is about the payload.
///
/// # Errors
/// A further chunk cannot be read at the moment.
pub async fn payload(
    store: &impl RecordStore,
    storage: Storage,
    namespace: &str,
    text: &str,
) -> Result<Result<Payload, DecodeError>, String> {
    let (first, others) = match payload::open(storage, text) {
        Ok(OpenedPayload::Whole(payload)) => return Ok(Ok(payload)),
        Ok(OpenedPayload::Chunked { first, others }) => (first, others),
        Err(error) => return Ok(Err(error)),
    };
    let mut parts = Vec::new();
    for other in others {
        let text = store.text(storage, namespace, &other).await?;
        parts.push((other, text));
    }
    Ok(payload::join(first, parts))
}
