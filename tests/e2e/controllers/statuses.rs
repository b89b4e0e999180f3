//! Who may write the statuses that rules believe, and what an idle cluster sends.

use serde_json::{Value, json};

use crate::harness::clients::Kubectl;
use crate::harness::controllers::{account, helm_controller, operator_controller};
use crate::harness::decisions::decisions;
use crate::harness::helm_releases::{helm_release, shared};
use crate::harness::kustomizations::{self, kustomize_controller};
use crate::harness::namespace::Namespace;
use crate::harness::{addon_controller, applications};

/// As many HelmReleases as a small platform has.
const HELM_RELEASES: usize = 100;

/// As many Applications, and as many Kustomizations.
const APPLYING: usize = 50;

/// The objects of each of these.
const OBJECTS: usize = 20;

const SERVER_SIDE: [&str; 3] = ["--server-side", "--force-conflicts", "--field-manager=kustomize-controller"];

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

/// Their controllers look at everything again and again, and write what they have found.
#[test]
fn an_idle_cluster_with_50_applications_and_50_kustomizations_sends_nothing() {
    let plane = kustomizations::shared();
    applications::define(plane);
    let namespace = Namespace::new(plane, "idle-applied");
    let argo = namespace.kubectl_as(&account(plane, "argocd", "argocd-application-controller"));
    let flux = namespace.kubectl_as(&kustomize_controller(plane));
    let of_all = |object: &dyn Fn(usize) -> Value| {
        let items: Vec<_> = (0..APPLYING).map(object).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    };
    let place = namespace.name();
    let application = |number: usize, reconcile: usize| {
        let of = |object| json!({"group": "", "kind": "ConfigMap", "namespace": place, "name": format!("of-{number}-{object}")});
        let resources: Vec<_> = (0..OBJECTS).map(of).collect();
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": format!("web-{number}")},
            "spec": {"project": "default", "destination": {"namespace": place}},
            "status": {"resources": resources, "reconciledAt": format!("2026-11-01T00:00:0{reconcile}Z")},
        })
    };
    let kustomization = |number: usize, reconcile: usize| {
        let id = |object| json!({"id": format!("{place}_of-{number}-{object}__ConfigMap"), "v": "v1"});
        let entries: Vec<_> = (0..OBJECTS).map(id).collect();
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": format!("web-{number}")},
            "spec": {"interval": "10m", "path": "./", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "web"}},
            "status": {"inventory": {"entries": entries}, "observedGeneration": reconcile},
        })
    };
    let config = |object: usize| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "declared"},
            "metadata": {"name": format!("of-0-{object}"), "labels": {
                "kustomize.toolkit.fluxcd.io/name": "web-0", "kustomize.toolkit.fluxcd.io/namespace": place,
            }},
        })
    };
    let objects: Vec<_> = (0..OBJECTS).map(config).collect();
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let idle = || {
        for reconcile in 0..RECONCILES {
            let (synced, applied) =
                (of_all(&|it| application(it, reconcile)), of_all(&|it| kustomization(it, reconcile)));
            argo.with_file("apply", &synced, &SERVER_SIDE[..2]).expect_success();
            flux.with_file("apply", &applied, &SERVER_SIDE).expect_success();
            flux.with_file("apply", &applied, &[&SERVER_SIDE[..], &["--subresource=status"]].concat()).expect_success();
            flux.with_file("apply", &objects, &[&SERVER_SIDE[..], &["--dry-run=server"]].concat()).expect_success();
            flux.with_file("apply", &objects, &SERVER_SIDE).expect_success();
        }
    };
    idle();
    let created = decisions(&namespace).len();
    idle();
    assert_eq!(decisions(&namespace).len(), created);
    let bob = namespace.kubectl("bob");
    bob.fails(&["patch", "configmap/of-0-0", "--type=merge", "-p", r#"{"data":{"mode":"bob"}}"#], &["[manual-edit]"]);
    assert_eq!(decisions(&namespace).len(), created + 1);
}
