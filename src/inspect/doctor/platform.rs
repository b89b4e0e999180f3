//! Detects the platform of a cluster from its version and its nodes.

use serde_json::Value;

use super::diagnosis::Diagnosis;
use super::fetch::Fetched;
use super::snapshot::Snapshot;

const TOPIC: &str = "platform";

/// A platform with a preset of the chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platform {
    Gke,
    Eks,
    Aks,
    OpenShift,
}

/// Prefixes of node labels. OpenShift comes first, because it also runs on the machines of clouds.
const NODE_LABELS: [(&str, Platform); 4] = [
    ("node.openshift.io/", Platform::OpenShift),
    ("cloud.google.com/gke-", Platform::Gke),
    ("eks.amazonaws.com/", Platform::Eks),
    ("kubernetes.azure.com/", Platform::Aks),
];

/// Parts of the version of the API server.
const VERSIONS: [(&str, Platform); 2] = [("-gke.", Platform::Gke), ("-eks-", Platform::Eks)];

impl Platform {
    pub(super) fn of(snapshot: &Snapshot) -> Option<Self> {
        let nodes = snapshot.nodes.items().unwrap_or_default();
        let labels = nodes.iter().filter_map(|node| node["metadata"]["labels"].as_object()).flat_map(|it| it.keys());
        let labels: Vec<_> = labels.collect();
        let by_label = NODE_LABELS.into_iter().find(|(prefix, _)| labels.iter().any(|label| label.starts_with(prefix)));
        let version = match &snapshot.version {
            Fetched::Known(version) => version["gitVersion"].as_str().unwrap_or_default(),
            Fetched::Absent | Fetched::Unknown(_) => "",
        };
        let by_version = VERSIONS.into_iter().find(|(part, _)| version.contains(part));
        by_label.or(by_version).map(|(_, platform)| platform)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gke => "GKE",
            Self::Eks => "EKS",
            Self::Aks => "AKS",
            Self::OpenShift => "OpenShift",
        }
    }

    /// The values file for the platform.
    pub(super) fn preset(self) -> &'static str {
        match self {
            Self::Gke => "manifests/chart/platforms/gke.yaml",
            Self::Eks => "manifests/chart/platforms/eks.yaml",
            Self::Aks => "manifests/chart/platforms/aks.yaml",
            Self::OpenShift => "manifests/chart/platforms/openshift.yaml",
        }
    }

    /// What usually blocks the path from the API server to pods on this platform.
    fn obstacle(self) -> &'static str {
        match self {
            Self::Gke => {
                "the control plane of a private cluster reaches nodes on 443 and 10250 only: add a firewall rule for the \
                 container port, or use 10250"
            }
            Self::Eks => "with an overlay network (Calico, Cilium) the control plane reaches no pod: use hostNetwork",
            Self::Aks => "nothing is known to block the way; the admissions enforcer changes the entries of webhooks",
            Self::OpenShift => "nothing is known to block the way; restricted-v2 refuses fixed user ids",
        }
    }
}

/// Suggests the preset of the platform, and names what usually blocks the path from the API server.
pub(super) fn diagnose(snapshot: &Snapshot) -> Diagnosis {
    match (Platform::of(snapshot), &snapshot.nodes) {
        (Some(platform), _) => {
            let (name, preset, obstacle) = (platform.name(), platform.preset(), platform.obstacle());
            Diagnosis::note(
                TOPIC,
                format!("this is {name}: use the chart with -f {preset}. The way to webhooks: {obstacle}"),
            )
        }
        (None, Fetched::Unknown(why)) => Diagnosis::skipped(TOPIC, why),
        (None, _) => Diagnosis::ok(TOPIC, "no platform with a preset was recognized"),
    }
}

/// Whether pods of EKS are probably in an overlay network. Without the VPC CNI, the control plane cannot reach them.
pub(super) fn has_overlay_network(snapshot: &Snapshot) -> bool {
    Platform::of(snapshot) == Some(Platform::Eks)
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
        assert_eq!(of("cloud.google.com/gke-nodepool", "v1.34.1"), Some(Platform::Gke));
        assert_eq!(of("none", "v1.34.1-gke.1829001"), Some(Platform::Gke));
        assert_eq!(of("none", "v1.34.1-eks-113cf36"), Some(Platform::Eks));
        assert_eq!(of("kubernetes.azure.com/cluster", "v1.34.1"), Some(Platform::Aks));
        assert_eq!(of("node.openshift.io/os_id", "v1.34.1"), Some(Platform::OpenShift));
        assert_eq!(of("none", "v1.34.1+k3s1"), None);
        assert_eq!(diagnose(&Snapshot::unread()).state.as_str(), "skipped");
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
