//! The workloads whose rollout rules query.
//!
//! All kinds share one type with only the necessary fields: the pod templates of the complete types would add a megabyte of code.

use interlock_engine::answers::{WorkloadSpec, WorkloadStatus, rollout};
use interlock_engine::evidence::Workload;
use interlock_engine::release::manifest::WorkloadKind;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use kube::api::{ApiResource, Object};

use super::metadata_only::resource_of;

/// A Deployment, StatefulSet or DaemonSet.
pub(super) type WorkloadObject = Object<WorkloadSpec, WorkloadStatus>;

/// The resource of a kind of workload.
pub(super) fn resource(kind: WorkloadKind) -> ApiResource {
    match kind {
        WorkloadKind::Deployment => resource_of::<Deployment>(),
        WorkloadKind::StatefulSet => resource_of::<StatefulSet>(),
        WorkloadKind::DaemonSet => resource_of::<DaemonSet>(),
    }
}

/// The rollout of a workload.
pub(super) fn rollout_of(kind: WorkloadKind, object: WorkloadObject) -> Workload {
    rollout(kind, object.metadata.generation, object.spec, object.status)
}
