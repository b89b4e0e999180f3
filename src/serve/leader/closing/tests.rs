use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;
use interlock_engine::release_override::{NONCE, arrival};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::*;
use crate::inspect::arrival::OPEN_UNTIL_CALLED;
use crate::serve::openmetrics;
use crate::world::kubernetes::fake;

/// Whether the API server reaches the replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Port {
    Open,
    Closed,
}

struct State {
    validating: Value,
    port: Port,
    deployment: Option<Value>,
    /// The configuration changes while a probe is under way.
    is_edited_during_probe: bool,
    may_patch: bool,
    events: Vec<(String, String)>,
    probes: usize,
}

/// An API server with a validating configuration.
#[derive(Clone)]
struct Server(Arc<Mutex<State>>);

impl Server {
    fn new(waiting: &str, policy: &str) -> Self {
        let entry = |name: &str, policy: &str| json!({"name": name, "failurePolicy": policy, "clientConfig": {"caBundle": "ca"}});
        let metadata = json!({"generation": 1, "resourceVersion": "1", "annotations": {OPEN_UNTIL_CALLED: waiting}});
        let webhooks = json!([entry("a.interlock.dev", policy), entry("probes.interlock.dev", "Fail")]);
        Self(Arc::new(Mutex::new(State {
            validating: json!({"metadata": metadata, "webhooks": webhooks}),
            port: Port::Open,
            deployment: None,
            is_edited_during_probe: false,
            may_patch: true,
            events: Vec::new(),
            probes: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn policy(&self) -> String {
        self.state().validating["webhooks"][0]["failurePolicy"].as_str().unwrap().to_owned()
    }

    fn client(&self) -> Client {
        let server = self.clone();
        fake::client_with_warnings(move |head, body| {
            let (code, answer) = server.state().answer(&head.method, head.uri.path(), body);
            let nonce = body["metadata"]["annotations"][NONCE].as_str().filter(|_| code == 201);
            (code, nonce.map(arrival).unwrap_or_default(), answer)
        })
    }

    /// Leads for some seconds of virtual time. Returns the metrics.
    async fn lead(&self, seconds: u64) -> String {
        let (client, metrics) = (self.client(), LeaderMetrics::default());
        let closing = Closing { client: &client, namespace: "guard", identity: "interlock-0", metrics: &metrics };
        assert!(timeout(Duration::from_secs(seconds), closing.run()).await.is_err());
        openmetrics::rendered(|registry| metrics.register(registry))
    }
}

impl State {
    fn edit(&mut self) {
        for field in ["generation", "resourceVersion"] {
            let value = &mut self.validating["metadata"][field];
            let next = value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap() + 1;
            *value = if value.is_u64() { next.into() } else { next.to_string().into() };
        }
    }

    fn answer(&mut self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        let failure = |code: u16, message: &str| {
            (code, json!({"kind": "Status", "status": "Failure", "message": message, "reason": "No", "code": code}))
        };
        if path.contains("/validatingwebhookconfigurations/") {
            if method == Method::GET {
                return (200, self.validating.clone());
            }
            if !self.may_patch {
                return failure(403, "cannot patch resource");
            }
            if self.validating["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
                return failure(409, "the object has been modified");
            }
            let names = body["metadata"]["annotations"].as_object().unwrap().clone();
            let annotations = self.validating["metadata"]["annotations"].as_object_mut().unwrap();
            annotations.extend(names);
            annotations.retain(|_, value| !value.is_null());
            self.validating["webhooks"] = body["webhooks"].clone();
            self.edit();
            return (200, self.validating.clone());
        }
        if path.contains("/releaseoverrides") {
            self.probes += 1;
            if std::mem::take(&mut self.is_edited_during_probe) {
                self.edit();
            }
            return match self.port {
                Port::Open => (201, body.clone()),
                Port::Closed => failure(
                    500,
                    "failed calling webhook \"probes.interlock.dev\": Post \"https://x\": dial: connection refused",
                ),
            };
        }
        match &self.deployment {
            Some(deployment) if path.contains("/deployments/") => return (200, deployment.clone()),
            _ => {}
        }
        if path.contains("/events") {
            let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
            self.events.push((text("reason"), text("note")));
            return (201, body.clone());
        }
        failure(404, "not found")
    }
}

const PROVEN: &str = "interlock_registration_proven{configuration=\"validating\"} 1\n";

#[tokio::test(start_paused = true)]
async fn an_entry_closes_after_a_probe_of_a_settled_registration() {
    let server = Server::new("a.interlock.dev", "Ignore");
    server.lead(2).await;
    assert_eq!(
        (server.policy().as_str(), server.state().probes),
        ("Ignore", 0),
        "every API server must have loaded it"
    );
    let metrics = server.lead(10).await;
    assert_eq!(server.policy(), "Fail");
    assert!(metrics.contains(PROVEN), "{metrics}");
    assert_eq!(server.state().validating["metadata"]["annotations"], json!({}), "the name is taken off");
    let events = server.state().events.clone();
    assert!(
        events.len() == 1 && events[0].0 == "RegistrationProved" && events[0].1.ends_with("a.interlock.dev"),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_port_keeps_entries_open_with_one_event() {
    let server = Server::new("a.interlock.dev", "Ignore");
    server.state().port = Port::Closed;
    let metrics = server.lead(600).await;
    assert_eq!(server.policy(), "Ignore");
    assert!(metrics.contains(&PROVEN.replace('1', "0")), "{metrics}");
    let events = server.state().events.clone();
    assert!(events.len() == 1 && events[0].0 == "RegistrationNotProved", "{events:?}");
    assert!(events[0].1.contains("connection refused") && events[0].1.contains("targetPort"), "{events:?}");
    server.state().port = Port::Open;
    server.lead(20).await;
    assert_eq!(server.policy(), "Fail");
}

#[tokio::test(start_paused = true)]
async fn a_proof_of_another_version_closes_nothing() {
    let server = Server::new("a.interlock.dev", "Ignore");
    server.state().is_edited_during_probe = true;
    server.lead(4).await;
    assert_eq!((server.policy().as_str(), server.state().probes), ("Ignore", 1));
    server.lead(20).await;
    assert_eq!(server.policy(), "Fail", "the next probe is of the version that is there");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_former_template_prove_nothing() {
    let server = Server::new("a.interlock.dev", "Ignore");
    let deployment = |updated: u64| {
        let status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": updated});
        json!({"metadata": {"generation": 2, "uid": "u"}, "status": status})
    };
    server.state().deployment = Some(deployment(1));
    server.lead(120).await;
    assert_eq!((server.policy().as_str(), server.state().probes), ("Ignore", 0));
    server.state().deployment = Some(deployment(3));
    server.lead(10).await;
    assert_eq!(server.policy(), "Ignore", "the last old pods may still answer");
    server.lead(30).await;
    assert_eq!(server.policy(), "Fail");
}

#[tokio::test(start_paused = true)]
async fn only_entries_in_the_annotation_are_closed() {
    let server = Server::new("b.interlock.dev", "Ignore");
    let metrics = server.lead(60).await;
    assert_eq!((server.policy().as_str(), server.state().probes), ("Ignore", 1), "one probe, for the metric");
    assert!(metrics.contains(PROVEN), "{metrics}");
    let server = Server::new("a.interlock.dev", "Fail");
    server.state().port = Port::Closed;
    server.lead(60).await;
    assert_eq!(server.policy(), "Fail", "nothing opens what is closed");
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_reported_and_keeps_entries_open() {
    let server = Server::new("a.interlock.dev", "Ignore");
    server.state().may_patch = false;
    server.lead(60).await;
    assert_eq!(server.policy(), "Ignore");
    let events = server.state().events.clone();
    assert!(events.len() == 1 && events[0].1.contains("cannot patch resource"), "{events:?}");
}
