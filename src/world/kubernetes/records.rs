//! Reads the records of releases: their objects, their bodies, in granted memory, and cached documents of their manifests.

use std::collections::BTreeMap;

use interlock_engine::answers::ObjectVersion;
use interlock_engine::answers::record::{self, RecordStore, RecordWork};
use interlock_engine::effort::Effort;
use interlock_engine::evidence::{ReadDocument, question};
use interlock_engine::json::redacted;
use interlock_engine::release::record::{DecodeError, chart_at_start, extra_chunks, truncated};
use interlock_engine::release::{Record, Storage, Stored};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject};
use serde::Deserialize;

use super::Cluster;
use super::api_error::{if_found, reason};
use super::reader::{Unavailable, valid_name};
use crate::budget::Flow;
use crate::world::QueryBudget;
use crate::world::metadata_only::resource_of;

/// The maximum number of reads of a changing index.
const READS_OF_AN_INDEX: usize = 3;

/// The details of a record that its labels lack.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RecordSummary {
    /// `name-version` of the chart.
    pub(crate) chart: Option<String>,
    /// The field manager that wrote the record last, Interlock excluded. A client chooses this name freely.
    pub(crate) manager: Option<String>,
}

impl Cluster {
    /// The document of an object in the manifest of a version of a record. Versions are cached: they never change.
    pub(super) async fn document(
        &self,
        question::Document { record, object }: &question::Document,
        budget: QueryBudget<'_>,
    ) -> Result<Option<ReadDocument>, Unavailable> {
        let state = ObjectVersion::new(&record.uid, &record.resource_version);
        if let Some(found) = state.as_ref().and_then(|state| self.documents.get(state, object)) {
            return Ok(Some(Ok(found)));
        }
        let work = self.turns.of(budget);
        let load = record::manifest(self, &work, record, state.as_ref());
        let manifest = match &state {
            Some(state) => self.manifests.get_or_load(state, load).await?,
            None => load.await?,
        };
        let Some(manifest) = manifest else { return Ok(None) };
        let found = work.found(&manifest, object).await?;
        if let (Some(state), Ok(found)) = (state, &found) {
            self.documents.insert(state, object, found.clone());
        }
        Ok(Some(found))
    }

    /// The current object of a record together with its body, so that labels and body are from the same moment. `None` if the
    /// object does not exist.
    ///
    /// # Errors
    /// When the API server does not answer, or the object is not a Secret or ConfigMap.
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
        let stored: Stored<'_> = serde_json::from_str(&text)
            .map_err(|error| format!("{namespace}/{object} cannot be parsed: {}", redacted(&error)))?;
        Ok(Some(match record::payload(self, storage, namespace, &text).await? {
            Ok(payload) => {
                let _granted = self.turns.budget().grant(Flow::own(), payload.memory()).await;
                let body = payload.inflate(&Effort::of_review());
                look(&stored, body.as_deref().map_err(Clone::clone))
            }
            Err(error) => look(&stored, Err(error)),
        }))
    }

    /// The details of a record that its labels lack. Only the necessary part is parsed. `None` if the object does not exist.
    ///
    /// # Errors
    /// When the API server does not answer, or the object is not a Secret or ConfigMap.
    pub(crate) async fn head(
        &self,
        storage: Storage,
        namespace: &str,
        object: &str,
    ) -> Result<Option<RecordSummary>, String> {
        let Some(text) = self.text(storage, namespace, object).await? else {
            return Ok(None);
        };
        let stored: Stored<'_> =
            serde_json::from_str(&text).map_err(|error| format!("{namespace}/{object} cannot be parsed: {error}"))?;
        let mut chart = chart_at_start(storage, &stored.data);
        // In a record that OLM renders from a bundle, the name is at the end.
        if chart.is_none()
            && let Ok(payload) = record::payload(self, storage, namespace, &text).await?
        {
            let _granted = self.turns.budget().grant(Flow::own(), payload.memory()).await;
            let effort = Effort::of_review();
            chart = payload.inflate(&effort).ok().and_then(|body| Record::read(&body, &effort).ok()?.chart());
        }
        Ok(Some(RecordSummary { chart, manager: last_manager(&stored) }))
    }

    /// The missing parts of each of these records of OLM, by the name of the index. An index names its parts, so no body is read:
    /// only the metadata of the parts is.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(crate) async fn missing_parts<'n>(
        &self,
        namespace: &str,
        indexes: impl Iterator<Item = &'n str>,
    ) -> Result<BTreeMap<String, Vec<String>>, Unavailable> {
        let mut missing = BTreeMap::new();
        for index in indexes {
            let lacking = self.missing_parts_of(namespace, index).await?;
            if !lacking.is_empty() {
                missing.insert(index.to_owned(), lacking);
            }
        }
        Ok(missing)
    }

    /// OLM first deletes the old parts of a record, then writes the index with the names of the new parts, and then writes the new
    /// parts. A changed index is read again. An index that keeps changing is being written.
    async fn missing_parts_of(&self, namespace: &str, index: &str) -> Result<Vec<String>, Unavailable> {
        let (client, secrets) = (self.api.client().clone(), resource_of::<Secret>());
        let api: Api<DynamicObject> = Api::namespaced_with(client, self.api.in_reach(namespace)?, &secrets);
        let mut listed = self.parts(namespace, index).await?;
        for _ in 0..READS_OF_AN_INDEX {
            let mut missing = Vec::new();
            for part in &listed {
                let found = api.get_metadata_opt(valid_name(part)?).await.map_err(|error| reason(&error))?;
                missing.extend(found.is_none().then(|| part.clone()));
            }
            let before = listed;
            listed = if missing.is_empty() { before.clone() } else { self.parts(namespace, index).await? };
            if listed == before {
                return Ok(missing);
            }
        }
        Ok(Vec::new())
    }

    /// The further parts of a record, from its index. There are none if the index does not exist.
    async fn parts(&self, namespace: &str, index: &str) -> Result<Vec<String>, Unavailable> {
        let Some(text) = self.text(Storage::Index, namespace, index).await? else {
            return Ok(Vec::new());
        };
        let unread = |error: String| format!("{namespace}/{index} cannot be parsed: {error}");
        let stored: Stored<'_> = serde_json::from_str(&text).map_err(|error| unread(redacted(&error)))?;
        extra_chunks(&stored.data).map_err(|error| unread(error.to_string()))
    }
}

impl RecordStore for Cluster {
    async fn text(&self, storage: Storage, namespace: &str, object: &str) -> Result<Option<String>, Unavailable> {
        let resource = match storage {
            Storage::Secret | Storage::Index => "secrets",
            Storage::ConfigMap => "configmaps",
        };
        let path = format!("/api/v1/namespaces/{}/{resource}/{}", self.api.in_reach(namespace)?, valid_name(object)?);
        if_found(self.api.text(path).await)
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
