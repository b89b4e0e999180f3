//! Who may write the statuses that rules believe, and what an idle cluster sends.

use serde_json::{Value, json};

use crate::harness::addon_controller;
use crate::harness::clients::Kubectl;
use crate::harness::controllers::{helm_controller, operator_controller};
use crate::harness::decisions::decisions;
use crate::harness::helm_releases::{helm_release, shared};
use crate::harness::namespace::Namespace;

/// As many HelmReleases as a small platform has.
const HELM_RELEASES: usize = 100;

/// In 10 minutes Flux writes each status about this often, with an interval of 5 minutes.
const RECONCILES: usize = 4;

#[track_caller]
fn statuses<'a>(object: &'a str, status: &'a Value) -> impl Fn(&Kubectl) -> crate::harness::process::Output + 'a {
    move |kubectl| {
        let patch = json!({"status": status}).to_string();
        kubectl.run(&["patch", object, "--subresource=status", "--type=merge", "-p", &patch])
    }
}

#[test]
fn only_flux_writes_the_status_of_a_helm_release() {
    let namespace = Namespace::new(shared(), "forged");
    let flux = namespace.kubectl_as(&helm_controller(namespace.plane()));
    let bob = namespace.kubectl("bob");
    bob.with_file("create", &helm_release(namespace.name(), "web", json!({})), &[]).expect_success();
    let history = json!([{"name": "web", "namespace": namespace.name(), "version": 1, "status": "deployed"}]);
    let status = json!({"storageNamespace": namespace.name(), "history": history});
    let forge = statuses("helmrelease/web", &status);

    let robot = namespace.kubectl_as(&namespace.service_account("robot"));
    forge(&bob).expect_failure(&[
        "[forged-status]",
        "only its controller writes it, not bob",
        "Change the spec instead",
    ]);
    forge(&robot).expect_failure(&["[forged-status]", "must be listed under `managers`"]);
    forge(&flux).expect_success();
    // A write that changes nothing is not even sent, and neither is anything else of a person who only changes the spec.
    forge(&bob).expect_success();
    bob.ok(&["patch", "helmrelease/web", "--type=merge", "-p", r#"{"spec":{"interval":"7m"}}"#]);
}

#[test]
fn only_their_controllers_write_the_statuses_of_olm_and_sveltos() {
    let plane = shared();
    let addon_controller = addon_controller::shared();
    let namespace = Namespace::new(plane, "forged-more");
    let bob = namespace.kubectl("bob");
    let of_config = |kind: &str, name: &str, spec: Value| {
        let metadata = json!({"name": name, "namespace": namespace.name()});
        json!({"apiVersion": "config.projectsveltos.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec})
    };
    let summary =
        of_config("ClusterSummary", "summary", json!({"clusterName": "prod", "clusterNamespace": namespace.name()}));
    bob.with_file("create", &summary, &[]).expect_success();
    let mut configuration = of_config("ClusterConfiguration", "sveltos--prod", json!({}));
    configuration.as_object_mut().unwrap().remove("spec");
    bob.with_file("create", &configuration, &[]).expect_success();
    let summaries = json!({"helmReleaseSummaries": []});
    let delivered = json!({"clusterProfileResources": []});
    for (object, status) in [("clustersummary/summary", summaries), ("clusterconfiguration/sveltos--prod", delivered)] {
        let write = statuses(object, &status);
        write(&bob).expect_failure(&["[forged-status]", "what Sveltos did"]);
        write(&namespace.kubectl_as(&namespace.service_account("dev"))).expect_failure(&["[forged-status]"]);
        // The agent of this cluster has an account of its name.
        write(&namespace.kubectl_as(&namespace.service_account("prod"))).expect_success();
        write(&namespace.kubectl_as(addon_controller)).expect_success();
    }

    let extension = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": namespace.name()},
        "spec": {
            "namespace": namespace.name(), "serviceAccount": {"name": "installer"},
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "web"}},
        },
    });
    bob.with_file("create", &extension, &[]).expect_success();
    let object = format!("clusterextension/{}", namespace.name());
    let migrated = json!({"activeRevisions": [{"name": "web-1"}]});
    let write = statuses(&object, &migrated);
    write(&bob).expect_failure(&["[forged-status]", "what OLM did"]);
    write(&namespace.kubectl_as(&operator_controller(plane))).expect_success();
    bob.ok(&["delete", &object]);
}

/// Where nobody works on a release, nothing is sent.
#[test]
fn an_idle_cluster_with_100_helm_releases_sends_nothing() {
    let namespace = Namespace::new(shared(), "idle");
    let flux = namespace.kubectl_as(&helm_controller(namespace.plane()));
    let mut all: Vec<_> = (0..HELM_RELEASES)
        .map(|number| helm_release(namespace.name(), &format!("web-{number}"), json!({"suspend": true})))
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
    flux.with_file("create", &list, &[]).expect_success();
    let created = decisions(&namespace).len();
    assert!(created >= HELM_RELEASES, "{created}");
    for reconcile in 0..RECONCILES {
        for object in &mut all {
            let ready = json!({"type": "Ready", "status": "True", "reason": "UpgradeSucceeded", "message": "", "lastTransitionTime": "2026-11-01T00:00:00Z"});
            object["status"] = json!({"observedGeneration": reconcile, "conditions": [ready]});
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
        flux.with_file("apply", &list, &["--server-side", "--subresource=status", "--force-conflicts"])
            .expect_success();
    }
    assert_eq!(decisions(&namespace).len(), created);
}
