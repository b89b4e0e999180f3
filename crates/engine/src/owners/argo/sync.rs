//! The sync that an Application carries, and how it ends cleanly.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::holder::{holder_of, unheld};
use super::{APPLICATION, Application, CONTROLLER, GROUP, NAME, OperationState};
use crate::owners::carried::{CarriedOperation, Carrier, OperationEnd, OperationRun, OperationTrace, Stage};
use crate::text::command::command;
use crate::text::printable_name;

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
    trace,
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

fn trace(application: &str) -> serde_json::Result<OperationTrace> {
    serde_json::from_str::<Application<'_>>(application).map(|application| application.trace())
}

impl Application<'_> {
    /// Its last syncs.
    pub(in crate::owners) fn trace(&self) -> OperationTrace {
        let is_running = self.running().is_some();
        let run = self.status.operation_state.as_ref().map(|state| OperationRun {
            started: state.started_at,
            holder: state.operation.and_then(shown_holder),
            end: (!is_running)
                .then(|| OperationEnd { time: state.finished_at, has_succeeded: state.phase == "Succeeded" }),
        });
        OperationTrace { is_requested: self.operation.is_some(), holder: self.operation.and_then(shown_holder), run }
    }
}

fn shown_holder(operation: &RawValue) -> Option<String> {
    holder_of(operation).as_deref().map(printable_name)
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
    fn the_state_keeps_how_the_last_sync_ended_and_who_started_it() {
        let held = json!({"sync": {}, "info": [{"name": "interlock.dev/holder", "value": "bob"}]});
        let trace = |phase: &str| {
            let state = json!({"phase": phase, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:07Z",
                "operation": held});
            // The next one has not begun.
            let application = json!({"operation": {"sync": {}}, "status": {"operationState": state}});
            CARRIER.trace(&application.to_string()).unwrap()
        };
        let run = |has_succeeded: Option<bool>| OperationRun {
            started: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            holder: Some("bob".to_owned()),
            end: has_succeeded.map(|has_succeeded| OperationEnd {
                time: Some("2026-01-01T00:00:07Z".parse().unwrap()),
                has_succeeded,
            }),
        };
        for (phase, has_succeeded) in
            [("Succeeded", Some(true)), ("Failed", Some(false)), ("Error", Some(false)), ("Running", None)]
        {
            let wanted = OperationTrace { is_requested: true, holder: None, run: Some(run(has_succeeded)) };
            assert_eq!(trace(phase), wanted, "{phase}");
        }
        assert_eq!(CARRIER.trace("{}").unwrap(), OperationTrace::default());
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
