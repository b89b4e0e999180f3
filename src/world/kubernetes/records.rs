//! The records of releases as the API server has them: their bodies, in memory that was granted, and their manifests.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{Cluster, Failed, checked, failed};
use crate::engine::evidence::RecordRef;
use crate::engine::json::redacted;
use crate::engine::release::manifest::DocumentKey;
use crate::engine::release::record::{DecodeError, Payload, chart_at_start, truncated};
use crate::engine::release::{Record, Storage, Stored};
use crate::world::body::{self, Opened};
use crate::world::documents;
use crate::world::manifests::{self, Missing, State};

/// What a record tells beside its labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Head {
    /// `name-version` of what it brings in.
    pub(crate) chart: Option<String>,
    /// The field manager that wrote it last, ours apart: a client chooses its name itself.
    pub(crate) manager: Option<String>,
}

impl Cluster {
    /// The document of an object in the manifest of one state of a record, or, where the state is unknown, of the record
    /// as it is now.
    pub(super) async fn document(
        &self,
        record: &RecordRef,
        object: &DocumentKey,
    ) -> Result<Option<Arc<Value>>, Missing> {
        let state = State::new(&record.uid, &record.resource_version);
        if let Some(found) = state.as_ref().and_then(|state| self.documents.get(state, object)) {
            return Ok(found);
        }
        let load = self.load_manifest(record.storage, &record.namespace, &record.name, state.as_ref());
        let manifest = match &state {
            Some(state) => self.manifests.get_or_load(state, load).await?,
            None => load.await?,
        };
        let found = documents::read(&manifest, object).map_err(Missing::Failed)?;
        if let Some(state) = state {
            self.documents.keep(state, object, found.clone());
        }
        Ok(found)
    }

    async fn load_manifest(
        &self,
        storage: Storage,
        namespace: &str,
        object: &str,
        state: Option<&State>,
    ) -> Result<Arc<str>, Missing> {
        let text = self.text(storage, namespace, object).await.map_err(Missing::Failed)?.ok_or(Missing::Absent)?;
        if state.is_some_and(|state| !state.is_that_of(&text)) {
            return Err(Missing::Failed(manifests::changed(namespace, object)));
        }
        let manifest = self.decoded(storage, namespace, object, text, |body| manifests::manifest(&body)).await;
        manifest.map_err(Missing::Failed)
    }

    pub(super) async fn body(
        &self,
        storage: Storage,
        namespace: &str,
        object: &str,
    ) -> Result<Option<Vec<u8>>, Failed> {
        let Some(text) = self.text(storage, namespace, object).await? else {
            return Ok(None);
        };
        self.decoded(storage, namespace, object, text, Ok).await.map(Some)
    }

    /// What is read of the body in the JSON text of the object of a record, in memory that was granted.
    async fn decoded<T>(
        &self,
        storage: Storage,
        namespace: &str,
        object: &str,
        text: String,
        read: impl FnOnce(Vec<u8>) -> Result<T, DecodeError>,
    ) -> Result<T, Failed> {
        let payload = self.payload(storage, namespace, &text).await?;
        drop(text);
        let inflated = async {
            let payload = payload?;
            let _granted = self.decodes.grant(payload.inflated_size()).await;
            payload.inflate().and_then(read)
        };
        inflated.await.map_err(|error| body::broken(namespace, object, &error))
    }

    /// The object of a record as it is now, looked at together with its body: labels and body of one moment. `None` when
    /// there is no such object.
    ///
    /// # Errors
    /// When the API server does not answer, or the object is no Secret or ConfigMap.
    pub(crate) async fn record<T>(
        &self,
        storage: Storage,
        namespace: &str,
        object: &str,
        look: impl FnOnce(&Stored<'_>, Result<&[u8], DecodeError>) -> T,
    ) -> Result<Option<T>, String> {
        let Some(text) = self.text(storage, namespace, object).await? else {
            return Ok(None);
        };
        let unread = |error: serde_json::Error| format!("{namespace}/{object} does not read: {}", redacted(&error));
        let stored: Stored<'_> = serde_json::from_str(&text).map_err(unread)?;
        Ok(Some(match self.payload(storage, namespace, &text).await? {
            Ok(payload) => {
                let _granted = self.decodes.grant(payload.inflated_size()).await;
                let body = payload.inflate();
                look(&stored, body.as_deref().map_err(Clone::clone))
            }
            Err(error) => look(&stored, Err(error)),
        }))
    }

    /// What a record tells beside its labels, as little of it read as will do. `None` when there is no such object.
    ///
    /// # Errors
    /// When the API server does not answer, or the object is no Secret or ConfigMap.
    pub(crate) async fn head(&self, storage: Storage, namespace: &str, object: &str) -> Result<Option<Head>, String> {
        let Some(text) = self.text(storage, namespace, object).await? else {
            return Ok(None);
        };
        let unread = |error| format!("{namespace}/{object} does not read: {error}");
        let stored: Stored<'_> = serde_json::from_str(&text).map_err(unread)?;
        let mut chart = chart_at_start(storage, &stored.data);
        // What OLM made of a bundle has its name at the end.
        if chart.is_none()
            && let Ok(payload) = self.payload(storage, namespace, &text).await?
        {
            let _granted = self.decodes.grant(payload.inflated_size()).await;
            chart = payload.inflate().ok().and_then(|body| Record::read(&body).ok()?.chart());
        }
        Ok(Some(Head { chart, manager: last_manager(&stored) }))
    }

    /// The payload in the JSON text of the object of a record, with the further parts that OLM may have cut it into.
    /// The inner error is that of the payload.
    async fn payload(
        &self,
        storage: Storage,
        namespace: &str,
        text: &str,
    ) -> Result<Result<Payload, DecodeError>, Failed> {
        let (first, others) = match body::open(storage, text) {
            Ok(Opened::Whole(payload)) => return Ok(Ok(payload)),
            Ok(Opened::Parts { first, others }) => (first, others),
            Err(error) => return Ok(Err(error)),
        };
        let mut parts = vec![first];
        for other in others {
            let text = self.text(storage, namespace, &other).await?;
            match text.ok_or(DecodeError::Part(other)).and_then(|text| body::part(&text)) {
                Ok(part) => parts.push(part),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Payload::join(parts.iter().map(String::as_str)))
    }

    /// The JSON text of the object of a record; `None` when there is no such object.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(crate) async fn text(&self, storage: Storage, namespace: &str, object: &str) -> Result<Option<String>, Failed> {
        let resource = match storage {
            Storage::Secret | Storage::OlmIndex => "secrets",
            Storage::ConfigMap => "configmaps",
        };
        let path = format!("/api/v1/namespaces/{}/{resource}/{}", self.reached(namespace)?, checked(object)?);
        match self.read(path).await {
            Ok(text) => Ok(Some(text)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

/// The field manager that wrote an object last.
fn last_manager(stored: &Stored<'_>) -> Option<String> {
    #[derive(Deserialize)]
    struct Entry {
        #[serde(default)]
        manager: String,
        time: Option<Timestamp>,
    }
    let entries: Vec<Entry> = serde_json::from_str(stored.metadata.managed_fields?.get()).ok()?;
    let others = entries.into_iter().filter(|entry| !entry.manager.starts_with("interlock"));
    others.max_by_key(|entry| entry.time).map(|entry| truncated(&entry.manager))
}
