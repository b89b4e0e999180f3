//! Who may write the statuses that other rules believe.

use serde_json::{Value, json};

use super::scenario::{Cluster, Verdict};

const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
const ROBOT: &str = "system:serviceaccount:evil:robot";

fn refused() -> Verdict {
    Err(vec!["forged-status"])
}

fn helm_release(history: Value) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": {"releaseName": "web"},
        "status": {"storageNamespace": "shop", "history": history},
    })
}

fn account(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
}

fn forge(cluster: &mut Cluster, user: &str) -> Verdict {
    let forged = helm_release(json!([{"name": "web", "namespace": "shop", "status": "deployed"}]));
    cluster.update_through("status", user, helm_release(json!([])), forged)
}

#[test]
fn people_write_no_status_of_a_helm_release() {
    let mut cluster = Cluster::new();
    assert_eq!(forge(&mut cluster, "alice"), refused());
    let same = cluster.update_through("status", "alice", helm_release(json!([])), helm_release(json!([])));
    assert_eq!(same, Ok(()), "a write that changes nothing");
    for user in [FLUX, "system:serviceaccount:velero:velero", "system:controller:glbc"] {
        assert_eq!(forge(&mut cluster, user), Ok(()), "{user}");
    }
}

#[test]
fn an_unlisted_account_writes_only_where_no_listed_controller_exists() {
    let mut cluster = Cluster::new();
    assert_eq!(forge(&mut cluster, ROBOT), Ok(()), "it may be Flux under another name");
    cluster.given(account("olmv1-system", "operator-controller-controller-manager"));
    assert_eq!(forge(&mut cluster, ROBOT), Ok(()), "that is OLM");
    cluster.given(account("flux-system", "helm-controller"));
    assert_eq!(forge(&mut cluster, ROBOT), refused());
    assert_eq!(forge(&mut cluster, FLUX), Ok(()));
}

#[test]
fn a_controller_listed_under_another_namespace_counts() {
    let mut cluster = Cluster::with_policy("managers: ['system:serviceaccount:gitops:helm-controller']");
    cluster.given(account("gitops", "helm-controller"));
    assert_eq!(forge(&mut cluster, "system:serviceaccount:gitops:helm-controller"), Ok(()));
    assert_eq!(forge(&mut cluster, ROBOT), refused());
}

#[test]
fn the_agent_writes_about_its_own_cluster() {
    let summary = |status: &str, cluster: &str| {
        json!({
            "apiVersion": "config.projectsveltos.io/v1beta1", "kind": "ClusterSummary",
            "metadata": {"name": "shop-sveltos-prod", "namespace": "civ"}, "spec": {"clusterName": cluster},
            "status": {"featureSummaries": [{"featureID": status}]},
        })
    };
    let configuration = |status: &str| {
        json!({
            "apiVersion": "config.projectsveltos.io/v1beta1", "kind": "ClusterConfiguration",
            "metadata": {"name": "sveltos--prod", "namespace": "civ"},
            "status": {"clusterProfileResources": [{"clusterProfileName": status}]},
        })
    };
    let mut cluster = Cluster::new();
    cluster.given(account("projectsveltos", "addon-controller"));
    for (user, wanted) in [
        ("system:serviceaccount:civ:prod", Ok(())),
        ("system:serviceaccount:projectsveltos:addon-controller", Ok(())),
        ("system:serviceaccount:civ:dev", refused()),
        ("system:serviceaccount:evil:prod", refused()),
        ("alice", refused()),
    ] {
        let write = cluster.update_through("status", user, configuration(""), configuration(user));
        assert_eq!(write, wanted, "ClusterConfiguration by {user}");
        // The author of a status chooses the rest of the object that is sent.
        let write = cluster.update_through("status", user, summary("", "prod"), summary(user, "dev"));
        assert_eq!(write, wanted, "ClusterSummary by {user}");
    }
}
