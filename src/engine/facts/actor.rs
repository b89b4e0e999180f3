//! The user behind a request, from `userInfo` alone: clients choose field manager and user agent themselves.

use std::borrow::Cow;

use crate::engine::object::SERVICE_ACCOUNT_PREFIX;
use crate::engine::review::UserInfo;

/// The controllers of kube-controller-manager that write or delete the objects of others, by their service accounts.
/// The manager uses these accounts if it runs with one credential for each controller.
const CONTROL_PLANE_CONTROLLERS: &[&str] = &[
    "certificate-controller",
    "cronjob-controller",
    "daemon-set-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoint-controller",
    "endpointslice-controller",
    "ephemeral-volume-controller",
    "expand-controller",
    "generic-garbage-collector",
    "horizontal-pod-autoscaler",
    "job-controller",
    "namespace-controller",
    "node-controller",
    "persistent-volume-binder",
    "pod-garbage-collector",
    "pv-protection-controller",
    "pvc-protection-controller",
    "replicaset-controller",
    "replication-controller",
    "resourcequota-controller",
    "root-ca-cert-publisher",
    "service-account-controller",
    "service-controller",
    "statefulset-controller",
    "storage-version-migrator-controller",
    "ttl-after-finished-controller",
    "ttl-controller",
];

/// The user behind a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Actor<'r> {
    pub name: &'r str,
    pub kind: ActorKind,
    pub groups: &'r [Cow<'r, str>],
}

/// The kinds of actors that rules distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActorKind {
    /// `system:serviceaccount:NS:NAME`.
    ServiceAccount,
    /// The control plane's own controllers, the API server and the scheduler.
    ControlPlane,
    /// `system:node:NAME`.
    Node,
    /// Interlock itself, by its account at the API server.
    Interlock,
    /// Any other user, including `system:masters`: break-glass needs an override, not a group.
    Person,
}

impl<'r> Actor<'r> {
    /// `NAMESPACE:NAME` of a service account.
    #[must_use]
    pub fn service_account(&self) -> Option<&'r str> {
        self.name.strip_prefix(SERVICE_ACCOUNT_PREFIX)
    }

    /// Reads the actor from `userInfo`.
    #[must_use]
    pub fn of(user: &'r UserInfo<'r>) -> Self {
        let name = user.username.as_ref();
        Self { name, kind: ActorKind::of(name), groups: &user.groups }
    }

    /// The same actor, or Interlock if its account has this name.
    #[must_use]
    pub fn or_interlock(self, ourselves: Option<&str>) -> Self {
        if ourselves == Some(self.name) { Self { kind: ActorKind::Interlock, ..self } } else { self }
    }
}

impl ActorKind {
    fn of(name: &str) -> Self {
        match name {
            "system:kube-controller-manager" | "system:apiserver" | "system:kube-scheduler" => {
                return Self::ControlPlane;
            }
            _ => {}
        }
        if let Some(account) = name.strip_prefix(SERVICE_ACCOUNT_PREFIX) {
            let controller =
                account.strip_prefix("kube-system:").is_some_and(|name| CONTROL_PLANE_CONTROLLERS.contains(&name));
            return if controller { Self::ControlPlane } else { Self::ServiceAccount };
        }
        if name.starts_with("system:node:") { Self::Node } else { Self::Person }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_actor_follows_from_its_name() {
        for (name, kind) in [
            ("system:serviceaccount:kube-system:generic-garbage-collector", ActorKind::ControlPlane),
            ("system:serviceaccount:kube-system:namespace-controller", ActorKind::ControlPlane),
            ("system:kube-controller-manager", ActorKind::ControlPlane),
            ("system:serviceaccount:kube-system:tiller", ActorKind::ServiceAccount),
            ("system:serviceaccount:shop:namespace-controller", ActorKind::ServiceAccount),
            ("system:serviceaccount:flux-system:helm-controller", ActorKind::ServiceAccount),
            ("system:node:worker-1", ActorKind::Node),
            ("alice", ActorKind::Person),
            ("system:admin", ActorKind::Person),
            ("", ActorKind::Person),
        ] {
            assert_eq!(ActorKind::of(name), kind, "{name}");
        }
    }
}
