//! Detects the platform of a cluster from its version and its nodes.

use kube::Client;
use serde_json::Value;

use super::diagnosis::{Checked, Diagnosis};
use super::fetch::{self, Fetched};
use super::snapshot::Snapshot;

/// A platform with a preset of the chart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Platform {
    name: &'static str,
    /// The values file for the platform.
    pub(super) preset: &'static str,
    /// What usually blocks the path from the API server to pods on this platform.
    obstacle: &'static str,
    /// A prefix of labels of its nodes.
    node_label: &'static str,
    /// A part of the version of its API server.
    version: Option<&'static str>,
}

const GKE: Platform = Platform {
    name: "GKE",
    preset: "manifests/chart/platforms/gke.yaml",
    obstacle: "the control plane of a private cluster reaches nodes on 443 and 10250 only: add a firewall rule for the \
               container port, or use 10250",
    node_label: "cloud.google.com/gke-",
    version: Some("-gke."),
};

pub(super) const EKS: Platform = Platform {
    name: "EKS",
    preset: "manifests/chart/platforms/eks.yaml",
    obstacle: "with an overlay network (Calico, Cilium) the control plane reaches no pod: use hostNetwork",
    node_label: "eks.amazonaws.com/",
    version: Some("-eks-"),
};

const AKS: Platform = Platform {
    name: "AKS",
    preset: "manifests/chart/platforms/aks.yaml",
    obstacle: "nothing is known to block the way; the admissions enforcer changes the entries of webhooks",
    node_label: "kubernetes.azure.com/",
    version: None,
};

const OPENSHIFT: Platform = Platform {
    name: "OpenShift",
    preset: "manifests/chart/platforms/openshift.yaml",
    obstacle: "nothing is known to block the way; restricted-v2 refuses fixed user ids",
    node_label: "node.openshift.io/",
    version: None,
};

/// OpenShift comes first, because it also runs on the machines of clouds.
const PLATFORMS: [Platform; 4] = [OPENSHIFT, GKE, EKS, AKS];

impl Platform {
    pub(super) fn of(snapshot: &Snapshot) -> Option<Self> {
        Self::shown_by(&snapshot.nodes, &snapshot.version)
    }

    fn shown_by(nodes: &Fetched, version: &Fetched) -> Option<Self> {
        let nodes = nodes.items().unwrap_or_default();
        let labels = nodes.iter().filter_map(|node| node["metadata"]["labels"].as_object()).flat_map(|it| it.keys());
        let labels: Vec<_> = labels.collect();
        let version = version.object().ok().flatten();
        let version = version.and_then(|it| it["gitVersion"].as_str()).unwrap_or_default();
        let by_label = PLATFORMS.into_iter().find(|it| labels.iter().any(|label| label.starts_with(it.node_label)));
        by_label.or_else(|| PLATFORMS.into_iter().find(|it| it.version.is_some_and(|part| version.contains(part))))
    }
}

/// The name of the platform of a cluster, and its values file; `None` if there is none, or if the cluster does not say.
pub(crate) async fn platform(client: &Client) -> Option<(&'static str, &'static str)> {
    let (nodes, version) =
        tokio::join!(fetch::metadata(client, "/api/v1/nodes?limit=2"), fetch::get(client, "/version".to_owned()));
    Platform::shown_by(&nodes, &version).map(|it| (it.name, it.preset))
}

/// Suggests the preset of the platform, and names what usually blocks the path from the API server.
pub(super) fn diagnose(snapshot: &Snapshot) -> Checked {
    if let Some(Platform { name, preset, obstacle, .. }) = Platform::of(snapshot) {
        let evidence = format!("this is {name}: use the chart with -f {preset}. The way to webhooks: {obstacle}");
        return Ok(Diagnosis::note(evidence));
    }
    snapshot.nodes.object()?;
    Ok(Diagnosis::ok("no platform with a preset was recognized"))
}

/// Whether pods of EKS are probably in an overlay network. Without the VPC CNI, the control plane cannot reach them.
pub(super) fn has_overlay_network(snapshot: &Snapshot) -> bool {
    Platform::of(snapshot) == Some(EKS)
        && snapshot.daemon_sets.items().is_ok_and(|all| !all.is_empty() && !all.iter().any(is_vpc_cni))
}

fn is_vpc_cni(daemon_set: &Value) -> bool {
    daemon_set["metadata"]["name"] == "aws-node" && daemon_set["metadata"]["namespace"] == "kube-system"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn node_labels_or_the_version_show_the_platform() {
        let of = |label: &str, version: &str| {
            let node = json!({"metadata": {"labels": {label: "x", "kubernetes.io/os": "linux"}}});
            Platform::of(&Snapshot {
                nodes: Fetched::Known(json!({"items": [node]})),
                version: Fetched::Known(json!({"gitVersion": version})),
                ..Snapshot::unread()
            })
        };
        assert_eq!(of("cloud.google.com/gke-nodepool", "v1.34.1"), Some(GKE));
        assert_eq!(of("none", "v1.34.1-gke.1829001"), Some(GKE));
        assert_eq!(of("none", "v1.34.1-eks-113cf36"), Some(EKS));
        assert_eq!(of("kubernetes.azure.com/cluster", "v1.34.1"), Some(AKS));
        assert_eq!(of("node.openshift.io/os_id", "v1.34.1"), Some(OPENSHIFT));
        assert_eq!(of("none", "v1.34.1+k3s1"), None);
        assert_eq!(diagnose(&Snapshot::unread()), Err("not asked".to_owned()));
    }

    #[test]
    fn eks_without_the_vpc_cni_has_an_overlay_network() {
        let with = |daemon_set: &str, version: &str| {
            let one = json!({"metadata": {"name": daemon_set, "namespace": "kube-system"}});
            has_overlay_network(&Snapshot {
                daemon_sets: Fetched::Known(json!({"items": [one]})),
                version: Fetched::Known(json!({"gitVersion": version})),
                ..Snapshot::unread()
            })
        };
        assert!(with("cilium", "v1.34.1-eks-113cf36"));
        assert!(!with("aws-node", "v1.34.1-eks-113cf36") && !with("cilium", "v1.34.1"));
    }
}
