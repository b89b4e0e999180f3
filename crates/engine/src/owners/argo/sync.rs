//! The sync that an Application carries, and how it ends cleanly.

use serde_json::{Value, json};

use super::holder::unheld;
use super::{APPLICATION, Application, CONTROLLER, GROUP, NAME, OperationState};
use crate::owners::carried::{CarriedOperation, Carrier, Stage};
use crate::text::command::command;

/// The end of an operation that Argo CD cleans up after, as a merge patch.
pub(super) const TERMINATE: &str = r#"{"status":{"operationState":{"phase":"Terminating"}}}"#;

/// Applications, whose operations are syncs.
pub(in crate::owners) const CARRIER: Carrier = Carrier {
    group: GROUP,
    kind: APPLICATION,
    plural: "applications",
    short: &["app", "apps"],
    program: NAME,
    controller: CONTROLLER,
    operation,
    start,
};

/// The command that syncs an Application.
pub(super) fn start(namespace: &str, name: &str) -> String {
    command(&["argocd", "app", "sync", &format!("{namespace}/{name}")])
}

fn operation(application: &str) -> serde_json::Result<Option<CarriedOperation>> {
    let application: Application<'_> = serde_json::from_str(application)?;
    let is_requested = application.operation.is_some();
    let holder = application.holder();
    let Some(state) = application.running() else {
        return Ok(is_requested.then_some(CarriedOperation { started: None, holder, stage: Stage::Requested }));
    };
    let stage = match (is_requested, &*state.phase) {
        (false, _) => Stage::Interrupted { again: again(state)? },
        (true, "Terminating") => Stage::Ending,
        (true, _) => Stage::Running { end: serde_json::from_str(TERMINATE)? },
    };
    Ok(Some(CarriedOperation { started: state.started_at, holder, stage }))
}

/// Starts the operation of an interrupted sync. Over the state of the old one, the controller would resume that. Who started the old one
/// does not start this one.
fn again(state: &OperationState<'_>) -> serde_json::Result<Value> {
    let mut operation = match state.operation {
        Some(operation) => unheld(operation)?,
        None => json!({"sync": {}}),
    };
    if let Value::Object(fields) = &mut operation {
        fields.remove("initiatedBy");
    }
    Ok(json!({"operation": operation, "status": {"operationState": null}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(application: &Value) -> Option<CarriedOperation> {
        CARRIER.operation(&application.to_string()).unwrap()
    }

    #[test]
    fn a_running_sync_ends_by_its_phase_and_an_interrupted_one_starts_again() {
        let operation = json!({"sync": {"revision": "main"}, "initiatedBy": {"username": "bob"}});
        let state = json!({"phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "operation": operation});
        let running = read(&json!({"operation": operation, "status": {"operationState": state}})).unwrap();
        assert_eq!(running.started, Some("2026-01-01T00:00:00Z".parse().unwrap()));
        assert_eq!(running.stage, Stage::Running { end: serde_json::from_str(TERMINATE).unwrap() });

        let interrupted = read(&json!({"status": {"operationState": state}})).unwrap();
        let again = json!({"operation": {"sync": {"revision": "main"}}, "status": {"operationState": null}});
        assert_eq!(interrupted.stage, Stage::Interrupted { again });
        let unknown = read(&json!({"status": {"operationState": {"phase": "Running"}}})).unwrap();
        let again = json!({"operation": {"sync": {}}, "status": {"operationState": null}});
        assert_eq!(unknown.stage, Stage::Interrupted { again });
    }

    #[test]
    fn the_controller_alone_begins_a_sync_and_finishes_its_end() {
        let requested = read(&json!({"operation": {"sync": {}}})).unwrap();
        assert_eq!(requested.stage, Stage::Requested);
        let state = json!({"phase": "Terminating"});
        let ending = read(&json!({"operation": {}, "status": {"operationState": state}})).unwrap();
        assert_eq!(ending.stage, Stage::Ending);
    }

    #[test]
    fn a_finished_sync_is_none() {
        for status in [json!({}), json!({"operationState": null}), json!({"operationState": {"phase": "Failed"}})] {
            assert_eq!(read(&json!({"status": status})), None, "{status}");
        }
    }

    #[test]
    fn applications_have_the_names_of_kubectl() {
        for word in ["app", "apps", "application", "Application", "applications", "applications.argoproj.io"] {
            assert!(CARRIER.is_named(word), "{word}");
        }
        for word in ["", "shop", "argoproj.io", ".argoproj.io", "applications.example.com"] {
            assert!(!CARRIER.is_named(word), "{word}");
        }
    }
}
