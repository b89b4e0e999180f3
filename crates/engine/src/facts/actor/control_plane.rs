//! The accounts of Kubernetes' own control plane.

/// Components with one credential each.
const COMPONENTS: [&str; 3] = ["system:kube-controller-manager", "system:apiserver", "system:kube-scheduler"];

/// The namespace of the accounts of kube-controller-manager.
const NAMESPACE_PREFIX: &str = "kube-system:";

/// The accounts of kube-controller-manager, if it runs with one credential per controller. They are the subjects of the
/// ClusterRoleBindings `system:controller:*` of every supported version. `tests/e2e/objects/platforms.rs` compares them with
/// those of a real API server.
const CONTROLLERS: &[&str] = &[
    "attachdetach-controller",
    "certificate-controller",
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemon-set-controller",
    "deployment-controller",
    "device-taint-eviction-controller",
    "disruption-controller",
    "endpoint-controller",
    "endpointslice-controller",
    "endpointslicemirroring-controller",
    "ephemeral-volume-controller",
    "expand-controller",
    "generic-garbage-collector",
    "horizontal-pod-autoscaler",
    "job-controller",
    "kube-apiserver-serving-clustertrustbundle-publisher",
    "legacy-service-account-token-cleaner",
    "namespace-controller",
    "node-controller",
    "persistent-volume-binder",
    "pod-garbage-collector",
    "podcertificaterequestcleaner",
    "podgroup-protection-controller",
    "pv-protection-controller",
    "pvc-protection-controller",
    "replicaset-controller",
    "replication-controller",
    "resource-claim-controller",
    "resourcepoolstatusrequest-controller",
    "resourcequota-controller",
    "root-ca-cert-publisher",
    "route-controller",
    "selinux-warning-controller",
    "service-account-controller",
    "service-cidrs-controller",
    "service-controller",
    "statefulset-controller",
    "storage-version-garbage-collector",
    "storage-version-migrator-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
    "ttl-controller",
    "validatingadmissionpolicy-status-controller",
    "volumeattributesclass-protection-controller",
];

/// Whether a user is a component of the control plane.
pub(super) fn is_component(user: &str) -> bool {
    COMPONENTS.contains(&user)
}

/// Whether a service account, `NAMESPACE:NAME`, is one of kube-controller-manager.
pub(super) fn is_controller(account: &str) -> bool {
    account.strip_prefix(NAMESPACE_PREFIX).is_some_and(|name| CONTROLLERS.binary_search(&name).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_is_found() {
        assert!(CONTROLLERS.is_sorted());
        assert!(CONTROLLERS.iter().all(|name| is_controller(&format!("kube-system:{name}"))));
        assert!(!is_controller("shop:namespace-controller") && !is_controller("kube-system:tiller"));
    }
}
