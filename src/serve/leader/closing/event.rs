//! Events on the Deployment about the proof, for `kubectl describe deployment interlock`.

use std::hash::{BuildHasher, RandomState};

use http::Request;
use interlock_engine::text::printable;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::Value;

use crate::inspect::arrival::Half;
use crate::serve::ownership::FIELD_MANAGER;
use crate::serve::report::events::CONTROLLER;

/// The longest note that the API server accepts, in bytes.
const MAX_NOTE_BYTES: usize = 1024;

/// The longest name of a reporting instance, in bytes.
const MAX_INSTANCE_BYTES: usize = 128;

/// The Deployment of the replicas.
const DEPLOYMENT: &str = "interlock";

/// Writes Events about the registration.
pub(super) struct EventWriter<'l> {
    client: &'l Client,
    namespace: &'l str,
    identity: &'l str,
    names: RandomState,
}

impl<'l> EventWriter<'l> {
    pub(super) fn new(client: &'l Client, namespace: &'l str, identity: &'l str) -> Self {
        Self { client, namespace, identity, names: RandomState::new() }
    }

    pub(super) async fn proved(&self, half: Half, note: &str) {
        self.write(half, "Normal", "RegistrationProved", note).await;
    }

    pub(super) async fn not_proved(&self, half: Half, note: &str) {
        self.write(half, "Warning", "RegistrationNotProved", note).await;
    }

    async fn write(&self, half: Half, kind: &str, why: &str, note: &str) {
        let event = self.event(half, kind, why, note, self.uid().await, Timestamp::now());
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let events: Api<Event> = Api::namespaced(self.client.clone(), self.namespace);
        if let Err(error) = events.create(&params, &event).await {
            tracing::debug!(%error, "an Event about the registration cannot be written");
        }
    }

    fn event(&self, half: Half, kind: &str, why: &str, note: &str, uid: Option<String>, now: Timestamp) -> Event {
        // Without the label of Interlock's Events about releases: the leader reads labelled Events for its reports.
        let name = format!("registration-{}.{:016x}", half.as_str(), self.names.hash_one((why, now)));
        let metadata =
            ObjectMeta { name: Some(name), namespace: Some(self.namespace.to_owned()), ..ObjectMeta::default() };
        let regarding = ObjectReference {
            api_version: Some("apps/v1".to_owned()),
            kind: Some("Deployment".to_owned()),
            namespace: Some(self.namespace.to_owned()),
            name: Some(DEPLOYMENT.to_owned()),
            uid,
            ..ObjectReference::default()
        };
        let by = self.identity;
        Event {
            metadata,
            action: Some("Probed".to_owned()),
            reason: Some(why.to_owned()),
            type_: Some(kind.to_owned()),
            note: Some(printable(note, MAX_NOTE_BYTES).into_owned()),
            event_time: Some(MicroTime(now)),
            regarding: Some(regarding),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(by[..by.floor_char_boundary(MAX_INSTANCE_BYTES)].to_owned()),
            ..Event::default()
        }
    }

    /// The uid of the Deployment. `kubectl describe` shows an Event only with its uid.
    async fn uid(&self) -> Option<String> {
        let path = format!("/apis/apps/v1/namespaces/{}/deployments/{DEPLOYMENT}", self.namespace);
        let deployment: Value = self.client.request(Request::get(path).body(Vec::new()).ok()?).await.ok()?;
        deployment["metadata"]["uid"].as_str().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::kubernetes::fake;

    #[tokio::test]
    async fn an_event_fits_the_limits_of_the_api_server() {
        let client = fake::client(|_, _| (404, Value::Null));
        let writer = EventWriter::new(&client, "guard", "interlock-0");
        let long = "ä".repeat(2_000);
        let event =
            writer.event(Half::Validating, "Warning", "RegistrationNotProved", &long, None, Timestamp::UNIX_EPOCH);
        assert!(event.note.unwrap().len() <= MAX_NOTE_BYTES);
        assert_eq!(event.metadata.namespace, event.regarding.unwrap().namespace);
    }
}
