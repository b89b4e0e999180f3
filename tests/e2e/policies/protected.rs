//! Releases that the policy protects, taken away through every door by real clients: none goes without an override, and everything
//! else goes on.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::applications::{self, Application, Sync};
use crate::harness::chart::{Chart, EXTRA, HookKind, When};
use crate::harness::clients::{Driver, Helm, HelmVersion, Identity};
use crate::harness::controllers::{Flux, account, establish_kinds, helm_controller, operator_controller};
use crate::harness::eventually::eventually;
use crate::harness::helm_releases::{define, helm_release, installed, shared};
use crate::harness::kustomizations::{self, Kustomization, kustomize_controller};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::run;
use crate::harness::records;
use crate::harness::rendered::kustomize;

const DRIVER: Driver = Driver::Secret;
const RULE: &str = "[protected-release]";
const WHILE: Duration = Duration::from_secs(60);

/// A kind that no entry of the base names.
const WIDGETS: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
    "names":{"plural":"widgets","singular":"widget","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,
    "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#;

const WIDGET: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: demo}\nspec: {size: 1}\n";

/// The shipped policy with protected namespaces, behind the registration of the overlay.
fn plane() -> Plane {
    let shipped = include_str!("../../../policies/cluster.yaml");
    let stated = "rules: {protected-release: {honourPeerMarks: true}}\nprotected: {namespaces: [protected-*]}";
    let plane = Plane::start(&format!("{shipped}\n{stated}\n"));
    plane.define("manifests/base/releaseoverrides.yaml");
    define(&plane);
    let admin = plane.kubectl(&plane.admin());
    admin.apply(&serde_json::from_str(WIDGETS).unwrap(), &[]).expect_success();
    admin.ok(&["wait", "--for=condition=Established", "--timeout=60s", "crd/widgets.example.com"]);
    plane.webhook().register_by(&plane, &kustomize("overlays/protected-releases")).unwrap();
    plane
}

/// Everything that a person asks for by the text of a refusal.
fn override_protection(namespace: &Namespace<'_>) {
    let release = format!("{}/demo", namespace.name());
    let asked = ["override", &release, "--rule", "protected-release", "--for", "5m", "--reason", "decommissioned"];
    let plane = namespace.plane();
    run(plane.interlock(&plane.person("alice"), &asked), WHILE).expect_success();
}

struct Protected<'a> {
    namespace: Namespace<'a>,
    helm: Helm,
    chart: Chart,
}

impl<'a> Protected<'a> {
    fn install(plane: &'a Plane, name: &str, version: HelmVersion) -> Self {
        let chart = Chart::new("demo").template("widget", WIDGET).template("extra", EXTRA);
        let chart = chart.hook(When::PreDelete, HookKind::Job);
        let namespace = Namespace::new(plane, name);
        let helm = namespace.helm(version, DRIVER, "alice");
        helm.ok(&["install", "demo", chart.path(), "--set=extra=true"]);
        Self { namespace, helm, chart }
    }

    fn hook_ran(&self) -> bool {
        self.namespace.kubectl("admin").find(&["job/demo-pre-delete-0"]).is_some()
    }

    /// An uninstall fails, and everything is still there.
    #[track_caller]
    fn expect_kept(&self, who: &Identity) {
        let before = self.namespace.objects_of_demo();
        self.helm.by(who).fails(&["uninstall", "demo"], &["failed to delete release"]);
        assert_eq!(self.namespace.objects_of_demo(), before, "{}", who.user());
        let widget = self.namespace.kubectl("admin").get(&["widget/demo"]);
        assert!(widget["metadata"]["deletionTimestamp"].is_null(), "{}", who.user());
    }

    #[track_caller]
    fn expect_gone(&self) {
        assert_eq!(self.namespace.objects_of_demo(), Vec::<&str>::new());
        assert!(self.namespace.kubectl("admin").find(&["widget/demo"]).is_none());
        assert!(self.namespace.records(DRIVER, "demo").is_empty());
    }
}

/// Waits until the API server calls the entries of the overlay.
fn await_entries(namespace: &Namespace<'_>) {
    let alice = namespace.kubectl("alice");
    eventually(WHILE, "the deletion of a namespace is judged", || {
        let deletion = alice.run(&["delete", "namespace", namespace.name(), "--dry-run=server"]);
        if deletion.stderr.contains(RULE) { Ok(()) } else { Err(deletion.to_string()) }
    });
}

#[test]
fn nobody_takes_a_protected_release_away_without_an_override() {
    let plane = plane();
    let both = [HelmVersion::V3, HelmVersion::V4]
        .map(|version| Protected::install(&plane, &format!("protected-{version:?}").to_lowercase(), version));
    await_entries(&both[0].namespace);
    for it in &both {
        let namespace = &it.namespace;
        let ci = namespace.service_account("deployer");
        let addon = account(&plane, "projectsveltos", "addon-controller");
        for who in [plane.person("alice"), ci.clone(), helm_controller(&plane), addon] {
            it.expect_kept(&who);
        }
        // Hooks run before anything is deleted, and Helm does not stop for the record.
        assert!(it.hook_ran());
        assert_eq!(records::deployed(&namespace.records(DRIVER, "demo")), 1);
        let deletes = |what: &str| namespace.kubectl_as(&ci).run(&["delete", what]);
        deletes("widget/demo").expect_failure(&[
            RULE,
            "belongs to release",
            "who may create ReleaseOverrides in namespace",
        ]);
        namespace.kubectl("alice").fails(&["delete", "namespace", namespace.name()], &[RULE, "holds release"]);
        // Without its marks nobody would know whose it is.
        let strip = |mark: &str, verb: &str| namespace.kubectl_as(&ci).run(&[verb, "widget/demo", "--overwrite", mark]);
        strip("app.kubernetes.io/managed-by-", "label").expect_failure(&[RULE]);
        strip("meta.helm.sh/release-name=thief", "annotate").expect_failure(&[RULE]);
        strip("team=blue", "label").expect_success();
        // The garbage collector would delete what has an owner that does not exist.
        let adopt = |kind: &str, who: &Identity| {
            let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "none"});
            let patch = json!({"metadata": {"ownerReferences": [owner]}}).to_string();
            namespace.kubectl_as(who).run(&["patch", kind, "--dry-run=server", "--type=merge", "-p", &patch])
        };
        adopt("widget/demo", &plane.person("alice")).expect_failure(&[RULE, "the garbage collector may delete it"]);
        adopt("widget/demo", &ci).expect_success();
        // The status of a built-in kind takes its metadata along.
        let annotate = r#"{"metadata":{"annotations":{"meta.helm.sh/release-name":"thief"}}}"#;
        let through_status = ["patch", "deployment/demo", "--subresource=status", "--type=merge", "-p", annotate];
        namespace.kubectl_as(&ci).fails(&through_status, &[RULE]);

        // Upgrades, what they leave out, their rollback, and the pruning of the history pass.
        it.helm.ok(&["upgrade", "demo", it.chart.path(), "--set=note=two"]);
        assert!(namespace.kubectl("admin").find(&["configmap/extra"]).is_none());
        it.helm.ok(&["rollback", "demo", "1", "--history-max=2"]);
        it.helm.ok(&["upgrade", "demo", it.chart.path(), "--history-max=2"]);
        assert_eq!(namespace.records(DRIVER, "demo").len(), 2);

        override_protection(namespace);
        namespace.kubectl("alice").ok(&["delete", "namespace", namespace.name(), "--dry-run=server"]);
        it.helm.ok(&["uninstall", "demo"]);
        it.expect_gone();
    }
    // A first install that fails is nothing to protect.
    let namespace = Namespace::new(&plane, "protected-never");
    let (helm, chart) = (namespace.helm(HelmVersion::V4, DRIVER, "alice"), Chart::new("demo"));
    helm.fails(&["install", "demo", chart.path(), "--set=breakApply=true"], &[]);
    helm.ok(&["uninstall", "demo"]);
    assert_eq!(namespace.objects_of_demo(), Vec::<&str>::new());
}

#[test]
fn flux_and_its_pruning_keep_a_protected_release() {
    let plane = plane();
    let namespace = Namespace::new(&plane, "protected-flux");
    let chart = Chart::new("demo");
    let object = helm_release(namespace.name(), "demo", json!({"releaseName": "demo", "timeout": "10s"}));
    namespace.kubectl("bob").with_file("create", &object, &[]).expect_success();
    let flux = Flux::new(&helm_controller(&plane), &namespace, "demo").origin(&namespace, "demo");
    flux.reconcile(&chart, &json!({})).expect_success();
    installed(&namespace, "demo", &namespace);
    await_entries(&namespace);
    let pruner = namespace.kubectl_as(&account(&plane, "flux-system", "kustomize-controller"));
    let delete = ["delete", "helmrelease/demo"];
    pruner.fails(&delete, &[RULE, "Flux would uninstall release"]);
    let patch = |patch: &str| namespace.kubectl("bob").run(&["patch", "helmrelease/demo", "--type=merge", "-p", patch]);
    // The acknowledgement that opens `retarget` does not open this.
    let to = format!("{}/site", namespace.name());
    let moved = json!({
        "spec": {"releaseName": "site"}, "metadata": {"annotations": {"interlock.dev/allow-retarget": to}},
    });
    patch(&moved.to_string()).expect_failure(&[RULE]);
    patch(r#"{"spec":{"values":{"note":"two"}}}"#).expect_success();
    // The labels that lead to the HelmRelease stay, so that nobody deletes an object without them next.
    let strip = ["label", "deployment/demo", "helm.toolkit.fluxcd.io/name-"];
    for who in [&namespace.kubectl("bob"), &namespace.kubectl_as(&namespace.service_account("deployer"))] {
        who.fails(&strip, &[RULE, "its ownership marks must stay"]);
    }
    pruner.ok(&[&strip[..], &["--dry-run=server"]].concat());
    // helm-controller itself, as it does with a HelmRelease that went while Interlock was away.
    flux.uninstall();
    assert_eq!(namespace.objects_of_demo().len(), 3);
    assert_eq!(records::deployed(&namespace.records(DRIVER, "demo")), 1);
    flux.reconcile(&chart, &json!({"note": "two"})).expect_success();
    // Suspended, it goes, and leaves the release.
    patch(r#"{"spec":{"suspend":true}}"#).expect_success();
    pruner.ok(&delete);
    assert_eq!(records::deployed(&namespace.records(DRIVER, "demo")), 1);
}

#[test]
fn only_managers_remove_the_annotation() {
    let plane = plane();
    let probe = Protected::install(&plane, "protected-probe", HelmVersion::V4);
    await_entries(&probe.namespace);
    let it = Protected::install(&plane, "annotated", HelmVersion::V3);
    let name = it.namespace.name();
    let annotate = |who: &Identity, value: &str| {
        it.namespace.kubectl_as(who).run(&["annotate", "namespace", name, "--overwrite", value])
    };
    let (alice, ci) = (plane.person("alice"), it.namespace.service_account("deployer"));
    annotate(&alice, "interlock.dev/protected=true").expect_success();
    it.expect_kept(&alice);
    it.expect_kept(&helm_controller(&plane));
    it.namespace
        .kubectl("alice")
        .fails(&["delete", "namespace", name], &[RULE, "the annotation interlock.dev/protected"]);
    for who in [&alice, &ci] {
        for value in ["interlock.dev/protected-", "interlock.dev/protected=false"] {
            annotate(who, value).expect_failure(&[RULE, "managers and controllers of the policy remove it"]);
        }
    }
    let remove = r#"{"metadata":{"annotations":{"interlock.dev/protected":null}}}"#;
    let through_status = ["patch", "namespace", name, "--subresource=status", "--type=merge", "-p", remove];
    it.namespace.kubectl("admin").fails(&through_status, &[RULE]);
    annotate(&alice, "team=blue").expect_success();
    // A HelmRelease in an annotated namespace is guarded like its release.
    let object = helm_release(name, "site", json!({"releaseName": "site", "timeout": "10s"}));
    it.namespace.kubectl("bob").with_file("create", &object, &[]).expect_success();
    installed(&it.namespace, "site", &it.namespace);
    let delete = ["delete", "helmrelease/site"];
    it.namespace.kubectl("bob").fails(&delete, &[RULE, "Flux would uninstall release", "of Namespace annotated"]);
    annotate(&account(&plane, "flux-system", "kustomize-controller"), "interlock.dev/protected-").expect_success();
    it.namespace.kubectl("bob").ok(&["delete", "helmrelease/site", "--dry-run=server"]);
    it.helm.ok(&["uninstall", "demo"]);
    it.expect_gone();
    revisions_hold_their_namespace(&plane, &it.namespace);
    applied_objects_hold_their_namespace(&plane);
    expect_marked_object_kept(&plane);
}

/// An annotated extension with the name of its namespace.
fn annotated_extension(name: &str) -> Value {
    json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": name, "annotations": {"interlock.dev/protected": "true"}},
        "spec": {
            "namespace": name, "serviceAccount": {"name": "installer"},
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "web"}},
        },
    })
}

/// An extension that OLM has installed as revisions has no records, and its objects are in this namespace.
#[track_caller]
fn revisions_hold_their_namespace(plane: &Plane, namespace: &Namespace<'_>) {
    establish_kinds(plane);
    let name = namespace.name();
    namespace.kubectl("alice").with_file("create", &annotated_extension(name), &[]).expect_success();
    let delete = ["delete", "namespace", name, "--dry-run=server"];
    namespace.kubectl("bob").ok(&delete);
    let status = json!({"status": {"activeRevisions": [{"name": format!("{name}-1")}]}}).to_string();
    let in_use = ["patch", "clusterextension", name, "--subresource=status", "--type=merge", "-p", &status];
    namespace.kubectl_as(&operator_controller(plane)).ok(&in_use);
    namespace.kubectl("bob").fails(&delete, &[RULE, "of ClusterExtension"]);
}

/// What applies objects without a release holds the namespace of these, and its own if it takes them along.
#[track_caller]
fn applied_objects_hold_their_namespace(plane: &Plane) {
    kustomizations::define(plane);
    applications::define(plane);
    let (team, objects) = (Namespace::new(plane, "team"), Namespace::new(plane, "applied"));
    let shop = Kustomization::new(&team, json!({"targetNamespace": objects.name()}));
    let app = Application::new(&team, json!({"destination": {"namespace": objects.name()}}), Sync::Client);
    let bob = team.kubectl("bob");
    let delete = |namespace: &Namespace<'_>| bob.run(&["delete", "namespace", namespace.name(), "--dry-run=server"]);
    shop.list(&[("", "ConfigMap", "web")]);
    app.list(&[("", "ConfigMap", "web")]);
    delete(&team).expect_success();
    let annotate = |object: &str, value: &str| {
        let annotation = format!("interlock.dev/protected{value}");
        team.kubectl_as(&kustomize_controller(plane)).ok(&["annotate", object, &annotation]);
    };
    annotate("kustomization/shop", "=true");
    for namespace in [&team, &objects] {
        delete(namespace).expect_failure(&[RULE, "of Kustomization"]);
    }
    annotate("kustomization/shop", "-");
    annotate("applications.argoproj.io/shop", "=true");
    delete(&objects).expect_failure(&[RULE, "of Application"]);
    delete(&team).expect_success();
}

/// The neighbouring release is protected by nothing but the mark.
#[track_caller]
fn expect_marked_object_kept(plane: &Plane) {
    let namespace = Namespace::new(plane, "marked");
    let helm = namespace.helm(HelmVersion::V4, DRIVER, "alice");
    helm.ok(&["install", "demo", Chart::new("demo").path()]);
    let alice = namespace.kubectl("alice");
    let mark =
        |suffix: &str| alice.ok(&["label", "deployment/demo", &format!("policy.kruise.io/delete-protection{suffix}")]);
    mark("=Always");
    let words = [
        "has the mark policy.kruise.io/delete-protection",
        "take policy.kruise.io/delete-protection off it first",
        RULE,
    ];
    // For a person, another rule refuses first: the object belongs to a release.
    alice.fails(&["delete", "deployment/demo"], &["[manual-delete]"]);
    let robot = namespace.kubectl_as(&account(plane, "default", "robot"));
    robot.fails(&["delete", "deployment/demo"], &words);
    helm.fails(&["uninstall", "demo"], &["failed to delete release"]);
    alice.get(&["deployment/demo"]);
    mark("-");
    helm.ok(&["uninstall", "demo"]);
}

/// Without the entries of the overlay, the annotation comes off no more than with them.
#[test]
fn the_base_registration_keeps_the_annotation() {
    let plane = shared();
    let namespace = Namespace::new(plane, "annotated-base");
    let (alice, bob) = (namespace.kubectl("alice"), namespace.kubectl("bob"));
    namespace.helm(HelmVersion::V4, DRIVER, "alice").ok(&["install", "demo", Chart::new("demo").path()]);
    bob.with_file("create", &helm_release(namespace.name(), "demo", json!({})), &[]).expect_success();
    installed(&namespace, "demo", &namespace);
    let kustomize = namespace.kubectl_as(&account(plane, "flux-system", "kustomize-controller"));
    for object in [&["helmrelease/demo"][..], &["namespace", namespace.name()]] {
        let annotate = |value| [&["annotate"], object, &["--overwrite", value]].concat();
        alice.ok(&annotate("interlock.dev/protected=true"));
        for value in ["interlock.dev/protected-", "interlock.dev/protected=false"] {
            bob.fails(&annotate(value), &[RULE, "managers and controllers of the policy remove it"]);
        }
        bob.ok(&annotate("team=blue"));
        kustomize.ok(&annotate("interlock.dev/protected-"));
    }
    bob.ok(&["delete", "helmrelease/demo"]);
}

/// A ClusterExtension with a revision, and then with a newer one too.
#[test]
fn the_only_revision_of_an_annotated_extension_stays() {
    let plane = shared();
    establish_kinds(plane);
    let namespace = Namespace::new(plane, "annotated-revision");
    let (alice, bob) = (namespace.kubectl("alice"), namespace.kubectl("bob"));
    let (name, olm) = (namespace.name(), namespace.kubectl_as(&operator_controller(plane)));
    alice.with_file("create", &annotated_extension(name), &[]).expect_success();
    let revision = |number: u32| {
        let metadata =
            json!({"name": format!("{name}-{number}"), "labels": {"olm.operatorframework.io/owner-name": name}});
        json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet", "metadata": metadata,
            "spec": {"lifecycleState": "Active", "revision": number},
        })
    };
    let in_use = |numbers: &[u32]| {
        let names: Vec<_> = numbers.iter().map(|number| json!({"name": format!("{name}-{number}")})).collect();
        let patch = json!({"status": {"activeRevisions": names}}).to_string();
        olm.ok(&["patch", "clusterextension", name, "--subresource=status", "--type=merge", "-p", &patch]);
    };
    olm.with_file("create", &revision(1), &[]).expect_success();
    in_use(&[1]);
    let (first, second) = (format!("clusterobjectset/{name}-1"), format!("clusterobjectset/{name}-2"));
    let archive = r#"{"spec":{"lifecycleState":"Archived"}}"#;
    let text = "is the only revision of ClusterExtension";
    for who in [&bob, &namespace.kubectl_as(&namespace.service_account("deployer"))] {
        who.fails(&["delete", &first], &[RULE, text]);
        who.fails(&["patch", &first, "--type=merge", "-p", archive], &[RULE, text]);
    }
    let extension = format!("clusterextension/{name}");
    bob.fails(&["annotate", &extension, "interlock.dev/protected-"], &[RULE]);
    bob.fails(&["delete", &extension], &[RULE]);
    olm.with_file("create", &revision(2), &[]).expect_success();
    in_use(&[1, 2]);
    olm.ok(&["patch", &first, "--type=merge", "-p", archive]);
    in_use(&[2]);
    // It goes as the policy says: its annotation first.
    namespace.kubectl_as(&account(plane, "flux-system", "kustomize-controller")).ok(&[
        "annotate",
        &extension,
        "interlock.dev/protected-",
    ]);
    let warned = bob.ok(&["delete", &second]);
    assert!(warned.stderr.contains("[extension-safety]"), "{warned}");
    bob.ok(&["delete", &first, &extension]);
}

#[test]
fn nothing_of_a_protected_release_goes_while_the_webhook_is_away() {
    let plane = plane();
    let it = Protected::install(&plane, "protected-away", HelmVersion::V4);
    await_entries(&it.namespace);
    let other = Namespace::new(&plane, "other");
    other.kubectl("alice").ok(&["create", "configmap", "plain"]);
    plane.webhook().stop();
    it.expect_kept(&plane.person("alice"));
    let away = "failed calling webhook";
    it.namespace.kubectl("alice").fails(&["delete", "namespace", it.namespace.name()], &[away]);
    other.kubectl("alice").ok(&["delete", "configmap/plain"]);
    plane.webhook().restart();
    // The uninstall has not even begun.
    let statuses = it.namespace.records(DRIVER, "demo");
    assert_eq!(statuses.last().unwrap().body_status, "deployed", "{}", records::summary(&statuses));
    it.expect_kept(&plane.person("alice"));
    override_protection(&it.namespace);
    it.helm.ok(&["uninstall", "demo"]);
    it.expect_gone();
}
