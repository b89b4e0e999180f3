//! Events on the Deployment about the proof, for `kubectl describe deployment interlock`.

use http::Request;
use interlock_engine::text::printable;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use serde_json::Value;

use crate::serve::report::events::{CONTROLLER, MAX_NOTE_BYTES, instance};

/// The Deployment of the replicas.
const DEPLOYMENT: &str = "interlock";

/// Writes Events about the registration. They lack the label of Interlock's Events about releases, which the leader reads for its reports.
pub(super) struct EventWriter<'l> {
    client: &'l Client,
    namespace: &'l str,
    reporter: Reporter,
}

impl<'l> EventWriter<'l> {
    pub(super) fn new(client: &'l Client, namespace: &'l str, identity: &str) -> Self {
        let reporter = Reporter { controller: CONTROLLER.to_owned(), instance: Some(instance(identity)) };
        Self { client, namespace, reporter }
    }

    pub(super) async fn proved(&self, note: &str) {
        self.write(EventType::Normal, "RegistrationProved", note).await;
    }

    pub(super) async fn not_proved(&self, note: &str) {
        self.write(EventType::Warning, "RegistrationNotProved", note).await;
    }

    async fn write(&self, type_: EventType, reason: &str, note: &str) {
        // A recorder keeps the note of the first Event of a series, and each of these notes is different.
        let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(printable(note, MAX_NOTE_BYTES).into_owned()),
            action: "Probed".to_owned(),
            secondary: None,
        };
        if let Err(error) = recorder.publish(&event, &self.deployment().await).await {
            tracing::debug!(%error, "an Event about the registration cannot be written");
        }
    }

    async fn deployment(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("apps/v1".to_owned()),
            kind: Some("Deployment".to_owned()),
            namespace: Some(self.namespace.to_owned()),
            name: Some(DEPLOYMENT.to_owned()),
            uid: self.uid().await,
            ..ObjectReference::default()
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
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::world::kubernetes::fake;

    #[tokio::test]
    async fn an_event_fits_the_limits_of_the_api_server() {
        let written = Arc::new(Mutex::new(Value::Null));
        let seen = Arc::clone(&written);
        let client = fake::client_with_warnings(move |_, body| {
            *seen.lock().unwrap() = body.clone();
            (201, String::new(), body.clone())
        });
        EventWriter::new(&client, "guard", "interlock-0").not_proved(&"ä".repeat(2_000)).await;
        let event = written.lock().unwrap().clone();
        assert!(event["note"].as_str().is_some_and(|note| note.len() <= MAX_NOTE_BYTES), "{event}");
        assert_eq!(
            (&event["metadata"]["namespace"], &event["regarding"]["namespace"]),
            (&"guard".into(), &"guard".into())
        );
    }
}
