//! Refusals to take a protected release away, each followed to the end that the person wanted.

use std::cell::RefCell;
use std::time::Duration;

use interlock_engine::release::stamps::PROTECTED_BY;
use serde_json::json;

use super::declarations::refused;
use super::owners::{deployed_by_flux, deployed_by_olm, extension_ended};
use super::scene::{Scene, kept, place};
use super::{Case, plane};
use crate::harness::addon_controller::{AddonController, install, managing};
use crate::harness::applications::{Application, Sync};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::kustomizations::{self, Kustomization};
use crate::harness::process::run;
use crate::harness::records::V1;

const WHILE: Duration = Duration::from_secs(60);

pub(super) const CASES: &[Case] = &[
    Case { rule: "protected-release", owner: "Helm", arrange: whole_namespace },
    Case { rule: "protected-release", owner: "Flux", arrange: helm_release },
    Case { rule: "protected-release", owner: "Flux", arrange: deleted_helm_release },
    Case { rule: "protected-release", owner: "OLM", arrange: extension },
    Case { rule: "protected-release", owner: "Kustomization", arrange: kustomization },
    Case { rule: "protected-release", owner: "Argo CD", arrange: application },
    Case { rule: "protected-release", owner: "Sveltos", arrange: chart_that_left_its_profile },
];

/// Of the policy: where these cases are.
pub(super) const POLICY: &str = "\nprotected: {namespaces: [way-protected-*]}\n";

fn whole_namespace() -> Scene {
    let (namespace, chart) = (place("way-protected-helm"), Chart::new("demo"));
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", chart.path()]);
    let delete = || namespace.kubectl("bob").run(&["delete", "namespace", namespace.name(), "--wait=false"]);
    Scene::new(namespace, chart, "bob", delete()).retry(move |_| delete())
}

fn helm_release() -> Scene {
    let (namespace, chart, _) = deployed_by_flux("way-protected-flux");
    let delete = || namespace.kubectl("bob").run(&["delete", "helmrelease/demo"]);
    Scene::new(namespace, chart, "bob", delete()).retry(move |_| delete())
}

/// The record still names the annotated HelmRelease.
fn deleted_helm_release() -> Scene {
    let (namespace, chart, _) = deployed_by_flux("way-stamped");
    let bob = namespace.kubectl("bob");
    bob.ok(&["annotate", "helmrelease/demo", "interlock.dev/protected=true"]);
    bob.ok(&["patch", "helmrelease/demo", "--type=merge", "-p", r#"{"spec":{"suspend":true}}"#]);
    eventually(WHILE, "the leader stamps the record", || {
        let record = bob.get(&["secret", V1]);
        let stamp = &record["metadata"]["annotations"][PROTECTED_BY];
        if stamp.is_string() { Ok(()) } else { Err(record["metadata"].to_string()) }
    });
    bob.ok(&["delete", "helmrelease/demo"]);
    let unstamp = || namespace.kubectl("bob").run(&["annotate", "secret", V1, &format!("{PROTECTED_BY}-")]);
    Scene::new(namespace, chart, "bob", unstamp()).retry(move |_| unstamp()).act("interlock unprotect", |scene| {
        let release = format!("{}/demo", scene.namespace.name());
        let asked = ["override", &release, "--rule", "protected-release", "--for", "5m", "--reason", "decommissioned"];
        run(plane().interlock(&scene.who, &asked), WHILE).expect_success();
        run(plane().interlock(&scene.who, &["unprotect", &release]), WHILE)
    })
}

fn extension() -> Scene {
    let (extension, chart) = deployed_by_olm("way-protected-olm");
    let name = extension.name.clone();
    let delete = move || extension.system.kubectl("bob").run(&["delete", "clusterextension", &name]);
    Scene::new(&extension.objects, chart, "bob", delete())
        .retry(move |_| delete())
        .end(move |_| extension_ended(extension))
}

fn kustomization() -> Scene {
    let namespace = place("way-protected-source");
    let shop = kept(Kustomization::new(namespace, json!({})));
    shop.apply(&kustomizations::deployment("one", 1)).expect_success();
    shop.list(&[("apps", "Deployment", "demo")]);
    let delete = || namespace.kubectl("bob").run(&["delete", "kustomization/shop"]);
    Scene::new(namespace, Chart::new("demo"), "bob", delete()).retry(move |_| delete()).end(|_| Ok(()))
}

/// Its objects go with it.
fn application() -> Scene {
    let namespace = place("way-protected-argo");
    let shop = kept(Application::new(namespace, json!({}), Sync::Client));
    shop.list(&[("apps", "Deployment", "demo")]);
    let cascade = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}});
    shop.patch(&namespace.kubectl("bob"), &cascade).expect_success();
    let delete = || namespace.kubectl("bob").run(&["delete", "applications.argoproj.io/shop", "--wait=false"]);
    Scene::new(namespace, Chart::new("demo"), "bob", delete()).retry(move |_| delete()).end(|_| Ok(()))
}

/// The first commit of a rollout has a chart that the profile no longer has at the second one.
fn chart_that_left_its_profile() -> Scene {
    let namespace = place("way-protected-sveltos");
    let mut shop = AddonController::new(namespace, kept(install(plane())), &["web"]);
    shop.report(&[managing("web")]);
    shop.stage("web", 1);
    // Its namespace is one of the managed cluster.
    let db = json!({
        "resources": ["kind: A\n"], "helmReleaseNamespace": namespace.name(), "helmReleaseName": "db",
        "helmReleaseUninstall": false, "isLastHelmReleaseBundle": true,
    });
    shop.stage_bundle("protected-db-charts-0", &db);
    shop.commit().expect_success();
    shop.discard();
    shop.stage("web", 1);
    let (output, rollout) = (shop.commit(), kept(RefCell::new(shop)));
    refused(namespace, rollout, output).act("put its chart back into", move |_| {
        rollout.borrow_mut().stage_bundle("protected-db-charts-0", &db);
        rollout.borrow().commit()
    })
}
