//! A pod's status, as the node reports it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// The state of a pod's container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// It cannot be started for this reason.
    Waiting(String),
    Running(Timestamp),
    /// It ended with this code and will not be started again.
    Ended(i32, Timestamp),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) state: State,
    pub(super) started: bool,
    pub(super) ready: bool,
    pub(super) restarts: u32,
    /// Why it is not ready.
    pub(super) message: String,
    pub(super) address: String,
    pub(super) since: Timestamp,
}

impl Report {
    pub(super) fn status(&self, pod: &Pod) -> Value {
        let Self { state, started, ready, restarts, message, address, since } = self;
        let (phase, state) = match state {
            State::Waiting(why) => {
                ("Pending", json!({"waiting": {"reason": "CreateContainerConfigError", "message": why}}))
            }
            State::Running(since) => ("Running", json!({"running": {"startedAt": since}})),
            State::Ended(code, at) => (
                if *code == 0 { "Succeeded" } else { "Failed" },
                json!({"terminated": {
                    "exitCode": code,
                    "startedAt": since,
                    "finishedAt": at,
                    "reason": if *code == 0 { "Completed" } else { "Error" },
                }}),
            ),
        };
        let condition = |kind: &str, is: bool| {
            let status = if is { "True" } else { "False" };
            let message = if is { "" } else { message };
            json!({"type": kind, "status": status, "message": message, "lastTransitionTime": Timestamp::now()})
        };
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let containers: Vec<_> = containers
            .map(|container| {
                json!({
                    "name": container.name,
                    "image": container.image,
                    "imageID": "",
                    "ready": ready,
                    "started": started,
                    "restartCount": restarts,
                    "state": state,
                })
            })
            .collect();
        json!({
            "phase": phase,
            "startTime": since,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [
                condition("PodScheduled", true),
                condition("Initialized", true),
                condition("ContainersReady", *ready),
                condition("Ready", *ready),
            ],
            "containerStatuses": containers,
        })
    }
}
