//! Reads and writes Secrets and ConfigMaps, including unknown fields.

use http::Request;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Client, Error};
use serde_json::Value;

use super::error::UnstickError;
use crate::inspect::annotation::FIELD_MANAGER;
use crate::inspect::runbook::plural;
use crate::world::kubernetes::api_error::reason;

/// The API server's message when a webhook with failurePolicy Fail does not answer.
const WEBHOOK_FAILED: &str = "failed calling webhook";

/// The Secrets and ConfigMaps of a namespace.
pub(super) struct StoredObjects<'c> {
    client: &'c Client,
    namespace: &'c str,
}

impl<'c> StoredObjects<'c> {
    pub(super) fn of(client: &'c Client, namespace: &'c str) -> Self {
        Self { client, namespace }
    }

    fn path(&self, kind: &str) -> String {
        format!("/api/v1/namespaces/{}/{}", self.namespace, plural(kind))
    }

    /// Reads an object; `None` if it does not exist.
    pub(super) async fn get(&self, kind: &str, name: &str) -> Result<Option<Value>, UnstickError> {
        let what = || format!("read {kind} {}/{name}", self.namespace);
        let request = Request::get(format!("{}/{name}", self.path(kind))).body(Vec::new());
        let request = request.map_err(|error| unstick_error(what(), name, Error::HttpError(error)))?;
        match self.client.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(unstick_error(what(), name, error)),
        }
    }

    /// Lists the metadata of a kind's objects with these labels.
    pub(super) async fn list_metadata(&self, kind: &str, labels: &str) -> Result<Vec<Value>, UnstickError> {
        let what = || format!("list the {}s of namespace {}", kind, self.namespace);
        let request = kube::core::Request::new(self.path(kind)).list_metadata(&ListParams::default().labels(labels));
        let request = request.map_err(|error| unstick_error(what(), "", Error::BuildRequest(error)))?;
        let list: Value = self.client.request(request).await.map_err(|error| unstick_error(what(), "", error))?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Creates an object and returns it as stored.
    pub(super) async fn create(&self, kind: &str, object: &Value, dry_run: bool) -> Result<Value, UnstickError> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let what = || format!("create {kind} {}/{name}", self.namespace);
        let parameters = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let request = kube::core::Request::new(self.path(kind)).create(&parameters, object.to_string().into_bytes());
        let request = request.map_err(|error| unstick_error(what(), name, Error::BuildRequest(error)))?;
        self.client.request(request).await.map_err(|error| unstick_error(what(), name, error))
    }

    /// Deletes an object, optionally with a precondition on its uid and resourceVersion. A missing object counts as
    /// deleted.
    pub(super) async fn delete(
        &self,
        kind: &str,
        name: &str,
        state: Option<(&str, &str)>,
        dry_run: bool,
    ) -> Result<(), UnstickError> {
        let what = || format!("delete {kind} {}/{name}", self.namespace);
        let preconditions = state.map(|(uid, version)| Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
        });
        let parameters = DeleteParams { dry_run, preconditions, ..DeleteParams::background() };
        let request = kube::core::Request::new(self.path(kind)).delete(name, &parameters);
        let request = request.map_err(|error| unstick_error(what(), name, Error::BuildRequest(error)))?;
        match self.client.request::<Value>(request).await {
            Ok(_) => Ok(()),
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(unstick_error(what(), name, error)),
        }
    }
}

/// The meaning of an API error for the person on call.
pub(super) fn unstick_error(what: String, name: &str, error: Error) -> UnstickError {
    match &error {
        Error::Api(status) if status.reason == "AlreadyExists" => UnstickError::Exists(name.to_owned()),
        Error::Api(status) if status.code == 409 => UnstickError::Changed(name.to_owned()),
        Error::Api(status) if status.message.contains("denied the request") => {
            UnstickError::Refused(status.message.clone())
        }
        Error::Api(status) if status.message.contains(WEBHOOK_FAILED) && status.message.contains(".interlock.dev") => {
            let why =
                format!("{}. No replica of Interlock answers. Find the cause with `interlock doctor`", status.message);
            UnstickError::Failed { what, why }
        }
        _ => UnstickError::Failed { what, why: reason(&error) },
    }
}
