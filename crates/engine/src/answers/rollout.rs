//! How many pods of a workload are replaced.
//!
//! One type for all kinds, with only the necessary fields: the pod templates of the complete types would add a megabyte of code.

use serde::Deserialize;

use crate::evidence::Workload;
use crate::json::null_is_default;
use crate::release::manifest::WorkloadKind;

/// The desired number of pods, and how they are replaced.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpec {
    replicas: Option<i64>,
    #[serde(deserialize_with = "null_is_default")]
    paused: bool,
    progress_deadline_seconds: Option<i64>,
    #[serde(deserialize_with = "null_is_default")]
    update_strategy: UpdateStrategy,
}

/// How a StatefulSet or DaemonSet replaces pods.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UpdateStrategy {
    #[serde(rename = "type", deserialize_with = "null_is_default")]
    kind: String,
    #[serde(deserialize_with = "null_is_default")]
    rolling_update: RollingUpdate,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct RollingUpdate {
    partition: Option<i64>,
}

/// The deadline that stands for none: the controller then reports no progress.
const NO_DEADLINE: i64 = i32::MAX as i64;

impl WorkloadSpec {
    /// Whether pods of an older revision may stay for good.
    fn keeps_old_pods(&self) -> bool {
        let UpdateStrategy { kind, rolling_update } = &self.update_strategy;
        self.paused || kind == "OnDelete" || rolling_update.partition.is_some_and(|partition| partition > 0)
    }

    /// The conditions of a Deployment that its controller keeps up to date.
    fn conditions(&self) -> &'static [&'static str] {
        let makes_progress = !self.paused && self.progress_deadline_seconds != Some(NO_DEADLINE);
        match self.replicas {
            Some(0) => &[],
            _ if makes_progress => &["Available", "Progressing"],
            _ => &["Available"],
        }
    }
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

impl WorkloadStatus {
    /// Whether the controller has written that a condition holds.
    fn holds(&self, name: &str) -> bool {
        self.conditions.iter().any(|condition| condition.kind == name && condition.status == "True")
    }
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
    // A condition that the controller has not written yet counts as false.
    let conditions = spec.conditions().iter().map(|name| ((*name).to_owned(), status.holds(name)));
    Workload {
        desired,
        updated: if spec.keeps_old_pods() { desired } else { updated.unwrap_or_default() },
        available: available.unwrap_or_default(),
        observed: status.observed_generation.unwrap_or_default() >= generation.unwrap_or_default(),
        conditions: match kind {
            WorkloadKind::Deployment => conditions.collect(),
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

    /// What the controller never does counts neither.
    #[test]
    fn a_workload_that_does_not_roll_out_is_judged_by_its_availability() {
        let status = json!({
            "observedGeneration": 2, "updatedReplicas": 0, "availableReplicas": 2, "readyReplicas": 2,
            "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "Unknown"}],
        });
        let conditions = |kind: WorkloadKind, spec: Value| {
            let spec = serde_json::from_value(spec).unwrap();
            let workload = rollout(kind, Some(2), spec, Some(serde_json::from_value(status.clone()).unwrap()));
            (workload.updated, workload.conditions.keys().cloned().collect::<Vec<_>>().join(" "))
        };
        let on_delete = json!({"replicas": 2, "updateStrategy": {"type": "OnDelete"}});
        let partition = json!({"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 2}}});
        for (kind, spec, updated, wanted) in [
            (WorkloadKind::Deployment, json!({"replicas": 2, "paused": true}), 2, "Available"),
            (
                WorkloadKind::Deployment,
                json!({"replicas": 2, "progressDeadlineSeconds": 2_147_483_647}),
                0,
                "Available",
            ),
            (
                WorkloadKind::Deployment,
                json!({"replicas": 2, "progressDeadlineSeconds": 600}),
                0,
                "Available Progressing",
            ),
            (WorkloadKind::Deployment, json!({"replicas": 0}), 0, ""),
            (WorkloadKind::StatefulSet, on_delete, 2, ""),
            (WorkloadKind::StatefulSet, partition, 2, ""),
        ] {
            assert_eq!(conditions(kind, spec.clone()), (updated, wanted.to_owned()), "{spec}");
        }
    }
}
