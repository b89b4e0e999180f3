//! How many pods of a workload are replaced.
//!
//! One type for all kinds, with only the necessary fields: the pod templates of the complete types would add a megabyte of code.

use serde::Deserialize;

use crate::evidence::Workload;
use crate::json::null_is_default;
use crate::release::manifest::WorkloadKind;

/// The desired number of pods.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct WorkloadSpec {
    replicas: Option<i64>,
}

/// The reported status. A field is absent until the controller reports it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadStatus {
    observed_generation: Option<i64>,
    updated_replicas: Option<i64>,
    available_replicas: Option<i64>,
    ready_replicas: Option<i64>,
    desired_number_scheduled: Option<i64>,
    updated_number_scheduled: Option<i64>,
    number_available: Option<i64>,
    #[serde(deserialize_with = "null_is_default")]
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// The rollout of a workload; `generation` is that of its metadata.
pub fn rollout(
    kind: WorkloadKind,
    generation: Option<i64>,
    spec: WorkloadSpec,
    status: Option<WorkloadStatus>,
) -> Workload {
    let status = status.unwrap_or_default();
    // The API server's default is 1.
    let replicas = spec.replicas.unwrap_or(1);
    let (desired, updated, available) = match kind {
        WorkloadKind::Deployment => (replicas, status.updated_replicas, status.available_replicas),
        WorkloadKind::StatefulSet => (replicas, status.updated_replicas, status.ready_replicas),
        WorkloadKind::DaemonSet => (
            status.desired_number_scheduled.unwrap_or_default(),
            status.updated_number_scheduled,
            status.number_available,
        ),
    };
    let conditions = status.conditions.into_iter().map(|condition| (condition.kind, condition.status == "True"));
    // A condition that the controller has not written yet counts as false.
    let unknown = ["Available", "Progressing"].map(|condition| (condition.to_owned(), false));
    Workload {
        desired,
        updated: updated.unwrap_or_default(),
        available: available.unwrap_or_default(),
        observed: status.observed_generation.unwrap_or_default() >= generation.unwrap_or_default(),
        conditions: match kind {
            WorkloadKind::Deployment => unknown.into_iter().chain(conditions).collect(),
            WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => [].into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Desired, updated and available pods, and whether the controller has seen the last change.
    fn counts(kind: WorkloadKind, spec: Value, status: Value) -> (i64, i64, i64, bool) {
        let (spec, status) = (serde_json::from_value(spec).unwrap(), serde_json::from_value(status).unwrap());
        let workload = rollout(kind, Some(2), spec, status);
        (workload.desired, workload.updated, workload.available, workload.observed)
    }

    #[test]
    fn each_workload_kind_counts_pods_in_its_own_fields() {
        let status = json!({
            "observedGeneration": 2, "replicas": 9, "updatedReplicas": 3, "availableReplicas": 2, "readyReplicas": 1,
            "desiredNumberScheduled": 8, "updatedNumberScheduled": 7, "numberAvailable": 6, "conditions": null,
        });
        let spec = json!({"replicas": 4, "template": {"spec": {"containers": []}}});
        for (kind, wanted) in [
            (WorkloadKind::Deployment, (4, 3, 2, true)),
            (WorkloadKind::StatefulSet, (4, 3, 1, true)),
            (WorkloadKind::DaemonSet, (8, 7, 6, true)),
        ] {
            assert_eq!(counts(kind, spec.clone(), status.clone()), wanted, "{kind:?}");
        }
        assert_eq!(counts(WorkloadKind::Deployment, json!({}), Value::Null), (1, 0, 0, false));
    }

    #[test]
    fn an_unwritten_condition_counts_as_false() {
        let written = json!({"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"});
        let status = serde_json::from_value(json!({"conditions": [written]})).unwrap();
        let workload = rollout(WorkloadKind::Deployment, None, WorkloadSpec::default(), Some(status));
        let conditions: Vec<_> = workload.conditions.iter().map(|(name, holds)| (name.as_str(), *holds)).collect();
        assert_eq!(conditions, [("Available", true), ("Progressing", false)]);
    }
}
