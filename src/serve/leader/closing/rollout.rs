//! Checks whether pods of a former template still exist. If such a pod answers a probe, this proves nothing about the new pods.

use http::Request;
use kube::{Client, Error};
use serde_json::Value;

use crate::world::kubernetes::api_error::reason;

/// The state of the replicas' Deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rollout {
    /// The template has never changed, or there is no Deployment of this name.
    Never,
    /// Every pod is of the newest template.
    Complete,
    Running,
    /// The reason.
    Unknown(String),
}

impl Rollout {
    pub(super) async fn read(client: &Client, namespace: &str) -> Self {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/interlock");
        let request = match Request::get(path).body(Vec::new()) {
            Ok(request) => request,
            Err(error) => return Self::Unknown(error.to_string()),
        };
        match client.request::<Value>(request).await {
            Ok(deployment) => Self::of(&deployment),
            // Interlock runs by other means than a Deployment.
            Err(Error::Api(status)) if status.code == 404 => Self::Never,
            Err(error) => Self::Unknown(reason(&error)),
        }
    }

    fn of(deployment: &Value) -> Self {
        let status = &deployment["status"];
        let generation = number(&deployment["metadata"]["generation"]);
        if generation == 1 {
            return Self::Never;
        }
        let is_observed = number(&status["observedGeneration"]) >= generation;
        // New pods need not be ready: pods that cannot be scheduled are no reason to wait.
        let are_new = number(&status["updatedReplicas"]) == number(&status["replicas"]);
        if is_observed && are_new { Self::Complete } else { Self::Running }
    }
}

/// Zero if the field is absent, as Kubernetes omits zeros.
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rollout_runs_until_the_last_old_pod_is_gone() {
        let rollout = |generation: u64, observed: u64, replicas: u64, updated: u64| {
            Rollout::of(&json!({
                "metadata": {"generation": generation}, "spec": {"replicas": 3},
                "status": {"observedGeneration": observed, "replicas": replicas, "updatedReplicas": updated},
            }))
        };
        assert_eq!(rollout(2, 2, 3, 3), Rollout::Complete);
        assert_eq!(rollout(2, 1, 3, 3), Rollout::Running, "its controller has not seen the change");
        assert_eq!(rollout(2, 2, 4, 1), Rollout::Running);
        assert_eq!(rollout(2, 2, 1, 1), Rollout::Complete, "two pods wait for quota");
        assert_eq!(rollout(1, 0, 0, 0), Rollout::Never);
    }
}
