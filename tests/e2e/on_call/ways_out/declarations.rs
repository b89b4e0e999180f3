//! Refusals about what declares releases: of Sveltos, Flux and OLM.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::{Value, json};

use super::owners::{deployed_by_flux, deployed_by_olm, ends, extension_ended, upgrade_in_hook};
use super::scene::{Scene, kept, place};
use super::{Case, plane};
use crate::harness::addon_controller::{AddonController, chart_of, failed, install, managing};
use crate::harness::chart::Chart;
use crate::harness::clients::Kubectl;
use crate::harness::eventually::eventually;
use crate::harness::helm_releases::helm_release;
use crate::harness::namespace::Namespace;
use crate::harness::process::Output;

const WHILE: Duration = Duration::from_secs(60);

pub(super) const CASES: &[Case] = &[
    Case { rule: "dropped-bundles", owner: "Sveltos", arrange: failed_chart },
    Case { rule: "dropped-bundles", owner: "Sveltos", arrange: silent_chart },
    Case { rule: "dropped-bundles", owner: "Sveltos", arrange: renamed_chart },
    Case { rule: "dropped-bundles", owner: "Sveltos", arrange: missing_source },
    Case { rule: "dangling-bundle", owner: "Sveltos", arrange: missing_bundle },
    Case { rule: "remove-while-live", owner: "Sveltos", arrange: removal },
    Case { rule: "duplicate-release", owner: "Flux", arrange: second_helm_release },
    Case { rule: "retarget", owner: "Flux", arrange: renamed_release },
    Case { rule: "retry-strategy", owner: "Flux", arrange: forced_upgrades },
    Case { rule: "extension-change-while-pending", owner: "OLM", arrange: next_version },
    Case { rule: "extension-safety", owner: "OLM", arrange: self_certified },
    Case { rule: "forged-status", owner: "Flux", arrange: status_of_a_helm_release },
    Case { rule: "forged-status", owner: "OLM", arrange: status_of_an_extension },
    Case { rule: "forged-status", owner: "Sveltos", arrange: status_of_a_profile },
];

/// The rollout of a profile that has delivered the releases `web` and `cache`.
fn delivered(test: &str) -> (&'static Namespace<'static>, AddonController<'static>) {
    let namespace = place(test);
    let mut shop = AddonController::new(namespace, kept(install(plane())), &["web", "cache"]);
    stage_all(&mut shop);
    shop.report(&[managing("web"), managing("cache")]);
    shop.commit().expect_success();
    shop.terminate();
    (namespace, shop)
}

fn stage_all(shop: &mut AddonController<'_>) {
    shop.discard();
    shop.stage("web", 1);
    shop.stage("cache", 2);
}

/// What a rollout does once nothing is in its way.
fn commit_all(shop: &mut AddonController<'_>) -> Output {
    stage_all(shop);
    shop.report(&[managing("web"), managing("cache")]);
    shop.commit()
}

pub(super) type Rollout = &'static RefCell<AddonController<'static>>;

/// A refused commit of Sveltos. It ends well with a commit, or without any group.
pub(super) fn refused(namespace: &'static Namespace<'static>, rollout: Rollout, refused: Output) -> Scene {
    let committed = move || match rollout.borrow().group() {
        Some(group) if group["spec"]["updatePhase"] != "Ready" => Err(group.to_string()),
        _ => Ok(()),
    };
    Scene::new(namespace, Chart::new("demo"), "bob", refused)
        .retry(move |_| rollout.borrow().commit())
        .end(move |_| committed())
}

fn failed_chart() -> Scene {
    let (namespace, mut shop) = delivered("way-failed");
    shop.discard();
    shop.stage("web", 1);
    shop.report(&[managing("web"), failed("cache", "values are wrong")]);
    let (output, rollout) = (shop.commit(), kept(RefCell::new(shop)));
    refused(namespace, rollout, output)
        .act("the commit is admitted once every chart renders", |_| commit_all(&mut rollout.borrow_mut()))
}

/// A chart that renders to nothing cannot be told from one whose failure is only in a log.
fn silent_chart() -> Scene {
    let (namespace, mut shop) = delivered("way-silent");
    shop.discard();
    shop.stage("web", 1);
    let (output, rollout) = (shop.commit(), kept(RefCell::new(shop)));
    refused(namespace, rollout, output).end(|_| rollout.borrow().commit().into_result().map(|_| ()))
}

/// The profile has another release instead of those in the group in flight, and its chart does not render.
fn renamed_chart() -> Scene {
    let (namespace, mut shop) = delivered("way-renamed");
    commit_all(&mut shop).expect_success();
    shop.want(&json!({"helmCharts": [chart_of("site")]}));
    let mut new = failed("site", "no such chart");
    new["valuesHash"] = json!(null);
    shop.report(&[new]);
    shop.discard();
    let (output, rollout) = (shop.commit(), kept(RefCell::new(shop)));
    refused(namespace, rollout, output)
        .act("the commit is admitted once every chart renders", |_| {
            let mut shop = rollout.borrow_mut();
            shop.stage("site", 1);
            shop.report(&[managing("site")]);
            shop.commit()
        })
        .end(|_| rollout.borrow().commit().into_result().map(|_| ()))
}

fn missing_source() -> Scene {
    fn want(shop: &AddonController<'_>, sources: &[Value]) {
        shop.want(&json!({"helmCharts": [], "policyRefs": sources}));
    }
    fn stage(shop: &mut AddonController<'_>) {
        let from = json!({
            "resources": ["kind: A\n"], "referencedObjectKind": "GitRepository", "referencedObjectNamespace": "flux",
            "referencedObjectName": "tenants",
        });
        shop.stage_bundle("GitRepository-flux-tenants", &from);
    }
    let (namespace, shop) = delivered("way-source");
    let source = json!({"kind": "GitRepository", "namespace": "flux", "name": "tenants"});
    want(&shop, std::slice::from_ref(&source));
    let mut resources = shop.of_feature("Resources");
    stage(&mut resources);
    resources.commit().expect_success();
    resources.discard();
    let (output, rollout) = (resources.commit(), kept(RefCell::new(resources)));
    refused(namespace, rollout, output)
        .act("restore the source", |_| {
            stage(&mut rollout.borrow_mut());
            rollout.borrow().commit()
        })
        .act("remove the reference from the profile", |_| {
            want(&rollout.borrow(), &[]);
            rollout.borrow().commit()
        })
        .act("set optional: true on the reference", move |_| {
            let mut optional = source.clone();
            optional["optional"] = true.into();
            want(&rollout.borrow(), &[optional]);
            rollout.borrow().commit()
        })
}

fn missing_bundle() -> Scene {
    let (namespace, mut shop) = delivered("way-dangling");
    stage_all(&mut shop);
    shop.commit().expect_success();
    let whole = shop.listed();
    let output = shop.write_group(&[&whole[..], &["config-missing".to_owned()]].concat(), &json!({}));
    let rollout = kept(RefCell::new(shop));
    refused(namespace, rollout, output).act("write the bundles first", |_| commit_all(&mut rollout.borrow_mut()))
}

fn removal() -> Scene {
    const REMOVE: &str = r#"{"sourceStatus":"Deleted","action":"Remove"}"#;
    let (namespace, shop) = delivered("way-removal");
    let removes = |shop: &AddonController<'_>| shop.write_group(&[], &serde_json::from_str(REMOVE).unwrap());
    let (output, rollout) = (removes(&shop), kept(RefCell::new(shop)));
    // Sveltos deletes the ClusterSummary in both cases, and its finalizer keeps it until everything is removed.
    let gone = move |scene: &Scene| {
        let admin = scene.namespace.kubectl("admin");
        let finalizer = r#"{"metadata":{"finalizers":["clustersummaryfinalizer.projectsveltos.io/kept"]}}"#;
        admin.ok(&["patch", "clustersummary/summary", "--type=merge", "-p", finalizer]);
        admin.ok(&["delete", "clustersummary/summary", "--wait=false"])
    };
    refused(namespace, rollout, output)
        .act("delete the profile", gone)
        .act("change its selector so that it no longer selects the cluster", gone)
        .end(move |_| {
            removes(&rollout.borrow()).into_result()?;
            rollout.borrow_mut().terminate();
            Ok(())
        })
}

/// A HelmRelease of the release `demo`, as bob writes it.
fn create(namespace: &Namespace<'_>, name: &str, mut spec: Value) -> Output {
    spec["timeout"] = "10s".into();
    namespace.kubectl("bob").with_file("create", &helm_release(namespace.name(), name, spec), &[])
}

fn patch(namespace: &Namespace<'_>, name: &str, patch: &Value) -> Output {
    let object = format!("helmrelease/{name}");
    namespace.kubectl("bob").run(&["patch", &object, "--type=merge", "-p", &patch.to_string()])
}

fn second_helm_release() -> Scene {
    let (namespace, chart, _) = deployed_by_flux("way-duplicate");
    let second = || create(namespace, "second", json!({"releaseName": "demo"}));
    let refused = eventually(WHILE, "the webhook knows the first HelmRelease", || {
        let refused = create(namespace, "probe", json!({"releaseName": "demo", "suspend": true}));
        if refused.success() { Ok(second()) } else { Err(refused.to_string()) }
    });
    Scene::new(namespace, chart, "bob", refused)
        .retry(move |_| second())
        .act("set another releaseName", |_| create(namespace, "third", json!({"releaseName": "third"})))
        .act("set another storageNamespace", |_| {
            create(namespace, "third", json!({"releaseName": "demo", "storageNamespace": "elsewhere"}))
        })
}

fn renamed_release() -> Scene {
    let (namespace, chart, _) = deployed_by_flux("way-retarget");
    let rename = || patch(namespace, "demo", &json!({"spec": {"releaseName": "other"}}));
    Scene::new(namespace, chart, "bob", rename())
        .retry(move |_| rename())
        .act("create another HelmRelease for the new release", |_| {
            create(namespace, "other", json!({"releaseName": "other"}))
        })
}

/// Advice: the write is admitted with a warning, and without the field there is none.
fn forced_upgrades() -> Scene {
    let (namespace, chart, _) = deployed_by_flux("way-strategy");
    let advised = patch(namespace, "demo", &json!({"spec": {"upgrade": {"force": true}}})).expect_success();
    Scene::advised(namespace, chart, &advised).act("Remove force", |_| {
        let repaired = patch(namespace, "demo", &json!({"spec": {"upgrade": null}})).expect_success();
        assert!(!repaired.stderr.contains("interlock"), "{repaired}");
        repaired
    })
}

fn next_version() -> Scene {
    let (extension, chart) = deployed_by_olm("way-version");
    let bob = extension.system.kubectl("bob");
    extension.ask_for(&bob, "2.0.0").expect_success();
    chart.set_version("2.0.0");
    let client = kept(RefCell::new(Some(upgrade_in_hook(extension, &chart, &json!({"note": "two"})))));
    let refused = extension.ask_for(&bob, "3.0.0");
    Scene::new(&extension.objects, chart, "bob", refused)
        .wait(ends(&extension.objects, client))
        .heal(|scene| {
            // It is stuck because its client died.
            drop(client.take());
            scene.namespace.ready_pods();
            scene.namespace.await_available(&extension.name);
        })
        .next(|scene| extension.olm.reconcile(&scene.chart, &json!({"note": "two"})))
        .end(|_| extension_ended(extension))
}

fn self_certified() -> Scene {
    let (extension, chart) = deployed_by_olm("way-safety");
    let bob = kept(extension.system.kubectl("bob"));
    let set = |policy: &str| {
        let patch = json!({"spec": {"source": {"catalog": {"upgradeConstraintPolicy": policy}}}}).to_string();
        bob.run(&["patch", "clusterextension", &extension.name, "--type=merge", "-p", &patch])
    };
    let refused = set("SelfCertified");
    Scene::new(&extension.objects, chart, "bob", refused)
        .retry(move |_| set("SelfCertified"))
        .act("Use CatalogProvided, and SelfCertified only for the one step that needs it", move |_| {
            set("CatalogProvided")
        })
        .end(|_| extension_ended(extension))
}

pub(super) const SPEC: &str = "change the spec instead: the controller then writes the status";

/// Bob's write of a status.
fn forge(kubectl: &Kubectl, object: &str, status: &Value) -> Output {
    let patch = json!({"status": status}).to_string();
    kubectl.run(&["patch", object, "--subresource=status", "--type=merge", "-p", &patch])
}

fn status_of_a_helm_release() -> Scene {
    let (namespace, chart, _) = deployed_by_flux("way-status");
    let refused = forge(&namespace.kubectl("bob"), "helmrelease/demo", &json!({"storageNamespace": "elsewhere"}));
    Scene::new(namespace, chart, "bob", refused)
        .act(SPEC, |_| patch(namespace, "demo", &json!({"spec": {"interval": "3m"}})))
}

fn status_of_an_extension() -> Scene {
    let (extension, chart) = deployed_by_olm("way-status-of-olm");
    let bob = kept(extension.system.kubectl("bob"));
    let refused =
        forge(bob, &format!("clusterextension/{}", extension.name), &json!({"activeRevisions": [{"name": "x"}]}));
    Scene::new(&extension.objects, chart, "bob", refused)
        .act(SPEC, move |_| extension.ask_for(bob, "1.0.0"))
        .end(|_| extension_ended(extension))
}

fn status_of_a_profile() -> Scene {
    let (namespace, shop) = delivered("way-status-of-sveltos");
    let refuse = forge(&namespace.kubectl("bob"), "clustersummary/summary", &json!({"helmReleaseSummaries": []}));
    let rollout = kept(RefCell::new(shop));
    refused(namespace, rollout, refuse).act(SPEC, |_| commit_all(&mut rollout.borrow_mut()))
}
