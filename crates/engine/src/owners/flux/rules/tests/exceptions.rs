//! Exceptions that people declare in a HelmRelease, and controllers that share the objects of a release.

use serde_json::{Value, json};

use super::{FOREIGNER, dying, first, helm_release, installed, refused, with};
use crate::rules::tests::objects::{image, record, web};
use crate::rules::tests::scenario::{Cluster, Rec, Verdict};

const HONOURED: &str = "";
const SUSPENDED: &str = "rules:\n  manual-edit: {whenSuspended: warn}";

/// Release shop/web with this HelmRelease.
fn release(policy: &str, helm_release: &Value) -> Cluster {
    let mut cluster = Cluster::with_policy(policy);
    cluster.given(helm_release.clone());
    cluster.given_record(&record(6, "deployed", super::CONTROLLER));
    cluster.given(web());
    cluster
}

/// HelmRelease shop/web, for which Flux has installed the release, with an entry under `spec.driftDetection.ignore`.
fn ignoring(paths: &[&str], target: Value) -> Value {
    let rule = json!({"paths": paths, "target": target});
    installed(helm_release("web", json!({"driftDetection": {"mode": "enabled", "ignore": [rule]}})))
}

fn edited(pointer: &str, value: Value) -> Value {
    let mut object = web();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let members = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    let key = key.replace("~1", "/");
    if value.is_null() {
        members.remove(&key)
    } else {
        members.insert(key, value)
    };
    object
}

fn replicas() -> Value {
    edited("/spec/replicas", json!(7))
}

#[test]
fn what_flux_ignores_may_be_edited_and_scaled() {
    let open = ignoring(&["/spec/replicas"], json!({"kind": "Deployment"}));
    let mut cluster = release(HONOURED, &open);
    assert_eq!(cluster.messages_for("bob", web(), replicas()), "");
    assert_eq!(cluster.scale("bob", &web(), 2, 7), Ok(()));
    assert_eq!(cluster.update_objects("bob", web(), image("2")), refused("manual-edit"));
    let both = with(replicas(), "/spec/template", image("2")["spec"]["template"].clone());
    let text = cluster.messages_for("bob", web(), both);
    assert!(text.contains("containers[web].image is declared") && !text.contains("replicas"), "{text}");
    assert_eq!(cluster.delete_object("bob", web()), refused("manual-delete"));
    // The policy can disable such exceptions.
    let mut cluster = release("rules:\n  manual-edit: {honourDriftIgnore: false}", &open);
    assert_eq!(cluster.update_objects("bob", web(), replicas()), refused("manual-edit"));
    assert_eq!(cluster.scale("bob", &web(), 2, 7), refused("manual-scale"));
}

/// Without a listed controller, every service account may write a status.
#[test]
fn a_status_opens_nothing_where_no_listed_controller_exists() {
    let account = |namespace: &str, name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}});
    let open = ignoring(&["/spec/replicas"], json!({"kind": "Deployment"}));
    let tenants = with(open.clone(), "/spec/serviceAccountName", json!("deployer"));
    for (policy, existing, proves) in [
        (HONOURED, account("flux-system", "helm-controller"), true),
        (HONOURED, account("gitops", "helm-controller"), false),
        (HONOURED, account("flux-system", "default"), false),
        ("managers: ['system:serviceaccount:gitops:helm-controller']", account("gitops", "helm-controller"), true),
        // Whether such an account exists cannot be asked.
        ("managers: ['system:serviceaccount:*:helm-controller']", account("gitops", "helm-controller"), true),
    ] {
        let mut cluster = release(policy, &open);
        cluster.given(existing.clone());
        assert_eq!(cluster.update_objects("bob", web(), replicas()).is_ok(), proves, "{existing}");
        // Alice's release, and the account of a HelmRelease that says that Flux has installed it.
        let mut cluster = release(policy, &tenants);
        cluster.given(existing.clone());
        cluster.given_record(&record(6, "deployed", "alice"));
        assert_eq!(cluster.messages_for(super::TENANT, web(), image("2")).is_empty(), proves, "{existing}");
    }
}

#[test]
fn an_exception_is_that_of_the_target_and_of_the_path() {
    let open = |paths: &[&str], target: Value| {
        release(HONOURED, &ignoring(paths, target)).update_objects("bob", web(), replicas()).is_ok()
    };
    for (paths, target, wanted) in [
        (&["/spec/replicas"][..], json!(null), true),
        (&["/spec"], json!(null), true),
        (&[""], json!(null), true),
        (&["/spec/replicas2", "/data"], json!(null), false),
        (&["spec/replicas"], json!(null), false),
        (&["/spec/replicas"], json!({"kind": "Deploy.*", "name": "web|api", "namespace": "shop"}), true),
        (&["/spec/replicas"], json!({"group": "apps", "version": "v1"}), true),
        (&["/spec/replicas"], json!({"kind": "StatefulSet"}), false),
        (&["/spec/replicas"], json!({"name": "we"}), false),
        (&["/spec/replicas"], json!({"namespace": "bar"}), false),
        // The labels in the manifest, and those that Helm adds.
        (&["/spec/replicas"], json!({"labelSelector": "app=web,app.kubernetes.io/managed-by=Helm"}), true),
        (&["/spec/replicas"], json!({"annotationSelector": "meta.helm.sh/release-name=web"}), true),
        (&["/spec/replicas"], json!({"labelSelector": "free"}), false),
    ] {
        assert_eq!(open(paths, target.clone()), wanted, "{paths:?} {target}");
    }
    // Labels that somebody adds to the object select nothing.
    let labelled = |object: Value| with(object, "/metadata/labels/free", json!("yes"));
    let mut cluster = release(HONOURED, &ignoring(&["/spec/replicas"], json!({"labelSelector": "free"})));
    assert_eq!(cluster.update_objects("bob", web(), labelled(web())), Ok(()));
    assert_eq!(cluster.update_objects("bob", labelled(web()), labelled(replicas())), refused("manual-edit"));
}

#[test]
fn a_pattern_over_the_limit_is_named_in_the_refusal() {
    for pattern in [r"(?i)\pL\pL", "web|".repeat(1_000).as_str()] {
        let mut cluster = release(HONOURED, &ignoring(&["/spec/replicas"], json!({"name": pattern})));
        let refusal = cluster.messages_for("bob", web(), replicas());
        let exception = "spec.driftDetection.ignore[0].target.name of HelmRelease shop/web excepts nothing";
        assert!(refusal.contains("spec.replicas is declared") && refusal.contains(exception), "{refusal}");
    }
}

#[test]
fn an_exception_frees_no_marks_and_nothing_that_binds() {
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "1"}]);
    let mut cluster = release(HONOURED, &ignoring(&["", "/metadata"], json!(null)));
    for new in [
        edited("/metadata/labels/app.kubernetes.io~1managed-by", json!(null)),
        edited("/metadata/annotations", json!(null)),
        edited("/metadata/annotations/meta.helm.sh~1release-name", json!("other")),
        edited("/metadata/ownerReferences", owner),
        edited("/metadata/finalizers", json!(["x.io/y"])),
        edited("/metadata/managedFields", json!(null)),
    ] {
        assert_eq!(cluster.update_objects("bob", web(), new.clone()), refused("manual-edit"), "{new}");
    }
    assert_eq!(cluster.update_objects("bob", web(), edited("/metadata/labels/app", json!("x"))), Ok(()));
    assert_eq!(cluster.update_objects("bob", web(), image("2")), Ok(()));
    assert_eq!(cluster.delete_object("bob", web()), refused("manual-delete"));
}

/// The tenant's own HelmRelease, and those of others who try to loosen or tighten it.
#[test]
fn only_a_helm_release_that_has_installed_the_release_makes_exceptions() {
    let spec = json!({"releaseName": "web", "storageNamespace": "shop",
        "driftDetection": {"ignore": [{"paths": ["/spec"]}]}});
    let elsewhere = || with(helm_release("x", spec.clone()), "/metadata/namespace", json!("bar"));
    let with_status = |object: Value, status: Value| with(object, "/status", status);
    let history = |name: &str, namespace: &str, status: &str| json!({"storageNamespace": "shop", "history": [{"name": name, "namespace": namespace, "status": status}]});
    for (object, open) in [
        (helm_release("web", spec.clone()), false),
        (elsewhere(), false),
        (with_status(elsewhere(), json!({"storageNamespace": "shop", "history": []})), false),
        (with_status(elsewhere(), history("web", "shop", "uninstalled")), false),
        (with_status(elsewhere(), history("web", "bar", "deployed")), false),
        (with_status(elsewhere(), history("other", "shop", "deployed")), false),
        (with_status(elsewhere(), history("web", "shop", "deployed")), false),
        (with_status(helm_release("web", spec.clone()), history("web", "shop", "deployed")), true),
        (with(installed(elsewhere()), "/spec/kubeConfig", json!({"secretRef": {"name": "prod"}})), false),
    ] {
        let verdict = release(HONOURED, &object).update_objects("bob", web(), replicas());
        assert_eq!(verdict, if open { Ok(()) } else { refused("manual-edit") }, "{object}");
    }
    // If two have installed the release, both must agree, unless one is suspended.
    let silent = || with(installed(first()), "/metadata/name", json!("silent"));
    for (other, open) in [(silent(), false), (with(silent(), "/spec/suspend", json!(true)), true)] {
        let mut cluster = release(HONOURED, &ignoring(&["/spec"], json!(null)));
        cluster.given(other.clone());
        assert_eq!(cluster.update_objects("bob", web(), replicas()).is_ok(), open, "{other}");
    }
    // A release with the same name in another storage is a different one.
    let mut cluster = Cluster::new();
    cluster.given(ignoring(&["/spec"], json!(null)));
    cluster.given_record(&Rec { kind: "ConfigMap", ..record(6, "deployed", "alice") });
    assert_eq!(cluster.update_objects("bob", web(), replicas()), refused("manual-edit"));
}

#[test]
fn the_switch_of_an_object_counts_where_its_release_declares_it() {
    const KEY: &str = "helm.toolkit.fluxcd.io/driftDetection";
    let manifest = |place: &str| {
        let metadata = format!("metadata:\n  name: web\n  {place}:\n    {KEY}: disabled\n");
        let text = format!("apiVersion: apps/v1\nkind: Deployment\n{metadata}spec:\n  replicas: 2\n");
        let text: &'static str = text.leak();
        text
    };
    let judged = |manifest: &'static str, helm_release: &Value| {
        let mut cluster = Cluster::new();
        cluster.given(helm_release.clone());
        cluster.given_record(&Rec { manifest, ..record(6, "deployed", super::CONTROLLER) });
        cluster.update_objects("bob", web(), replicas())
    };
    for place in ["labels", "annotations"] {
        assert_eq!(judged(manifest(place), &installed(first())), Ok(()), "{place}");
        assert_eq!(judged(manifest(place), &first()), refused("manual-edit"), "{place}: Flux does not manage it");
    }
    // An annotation set by hand is undeclared, and Flux does not see it either. So the second write is refused like the first.
    let mut cluster = release(HONOURED, &installed(first()));
    let switched =
        |object: Value| with(object, "/metadata/annotations/helm.toolkit.fluxcd.io~1driftDetection", json!("disabled"));
    assert_eq!(cluster.update_objects("bob", web(), switched(web())), Ok(()));
    assert_eq!(cluster.update_objects("bob", switched(web()), switched(replicas())), refused("manual-edit"));
    assert_eq!(cluster.update_objects("bob", web(), switched(replicas())), refused("manual-edit"));
}

#[test]
fn rules_that_take_too_much_work_make_no_exception() {
    let rule = json!({"paths": ["/data"], "target": {"name": "(a|b)*".repeat(170)}});
    let mut rules = vec![rule; 2_000];
    rules.push(json!({"paths": ["/spec"]}));
    let spec = json!({"driftDetection": {"ignore": rules}});
    let mut cluster = release(HONOURED, &installed(helm_release("web", spec)));
    assert_eq!(cluster.update_objects("bob", web(), replicas()), refused("manual-edit"));
}

#[test]
fn an_operation_in_flight_is_left_alone() {
    let mut cluster = Cluster::with_policy(SUSPENDED);
    cluster.given(with(ignoring(&["/spec"], json!(null)), "/spec/suspend", json!(true)));
    cluster.given_record(&record(5, "deployed", "alice"));
    cluster.given_record(&record(6, "pending-upgrade", "alice"));
    assert_eq!(cluster.update_objects("bob", web(), replicas()), refused("foreign-edit-in-transition"));
}

/// The verdicts for an edit, a scaling and a deletion.
fn acts(cluster: &mut Cluster) -> [Verdict; 3] {
    [
        cluster.update_objects("bob", web(), image("2")),
        cluster.scale("bob", &web(), 2, 7),
        cluster.delete_object("bob", web()),
    ]
}

fn all_refused() -> [Verdict; 3] {
    ["manual-edit", "manual-scale", "manual-delete"].map(refused)
}

#[test]
fn suspension_may_leave_objects_to_people() {
    let suspended = || installed(helm_release("web", json!({"suspend": true})));
    assert_eq!(acts(&mut release(HONOURED, &suspended())), all_refused(), "as shipped");
    assert_eq!(acts(&mut release(SUSPENDED, &suspended())), [Ok(()), Ok(()), Ok(())]);
    let text = release(SUSPENDED, &suspended()).messages_for("bob", web(), image("2"));
    assert!(text.contains("image is declared by the chart") && text.ends_with("[manual-edit]"), "{text}");
    for not_suspended in [
        installed(first()),
        helm_release("web", json!({"suspend": true})),
        with(
            helm_release("x", json!({"suspend": true, "releaseName": "web", "storageNamespace": "shop"})),
            "/metadata/namespace",
            json!("bar"),
        ),
    ] {
        assert_eq!(acts(&mut release(SUSPENDED, &not_suspended)), all_refused(), "{not_suspended}");
    }
    let mut cluster = release(SUSPENDED, &suspended());
    cluster.given(with(installed(first()), "/metadata/name", json!("other")));
    assert_eq!(acts(&mut cluster), all_refused(), "another one still acts");
    // Changes with effects beyond the suspension.
    let mut cluster = release(SUSPENDED, &suspended());
    for new in [edited("/metadata/annotations", json!(null)), edited("/metadata/finalizers", json!(["x.io/y"]))] {
        assert_eq!(cluster.update_objects("bob", web(), new.clone()), refused("manual-edit"), "{new}");
    }
}

#[test]
fn namespaces_loosen_exceptions_only_if_delegated() {
    let ignoring = || ignoring(&["/spec"], json!(null));
    let strict = "rules:\n  manual-edit: {honourDriftIgnore: false}";
    let mut cluster = Cluster::with_policies("", Some(strict));
    cluster.given(ignoring());
    cluster.given_record(&record(6, "deployed", super::CONTROLLER));
    assert_eq!(cluster.update_objects("bob", web(), replicas()), refused("manual-edit"));
    let mut cluster = Cluster::with_policies("rules: {}", Some("rules:\n  manual-edit: {whenSuspended: enforce}"));
    cluster.given(with(dying(ignoring()), "/spec/suspend", json!(true)));
    cluster.given_record(&record(6, "deployed", super::CONTROLLER));
    assert_eq!(cluster.update_objects("bob", web(), replicas()), Ok(()));
}

const FLAGGER: &str = "system:serviceaccount:flagger-system:flagger";
const ROLLOUTS: &str = "system:serviceaccount:argo-rollouts:argo-rollouts";

/// Flagger scales down the target of a canary, and runs its copy `web-primary`, which lacks the marks of the release.
#[test]
fn progressive_delivery_works_in_every_mode() {
    let enforced: String = ["manual-edit", "manual-delete", "manual-scale", "foreign-edit-in-transition"]
        .map(|rule| format!("  {rule}: {{mode: enforce}}\n"))
        .concat();
    let primary = || {
        let mut object = web();
        object["metadata"] = json!({"name": "web-primary", "namespace": "shop", "labels": {"app": "web-primary"}});
        object
    };
    for user in [FLAGGER, "system:serviceaccount:istio-system:flagger", ROLLOUTS] {
        for status in ["deployed", "pending-upgrade"] {
            let mut cluster = Cluster::with_policy(&format!("rules:\n{enforced}"));
            cluster.given_record(&record(5, "deployed", "alice"));
            cluster.given_record(&record(6, status, "alice"));
            cluster.given(web());
            assert_eq!(cluster.scale(user, &web(), 2, 0), Ok(()), "{user} {status}");
            assert_eq!(
                cluster.update_objects(user, web(), edited("/spec/replicas", json!(0))),
                Ok(()),
                "{user} {status}"
            );
            assert_eq!(cluster.create_object(user, primary()), Ok(()), "{user} {status}");
            assert_eq!(cluster.update_objects(user, primary(), with(primary(), "/spec/replicas", json!(3))), Ok(()));
            // The copy belongs to no release, so a person may edit it.
            assert_eq!(cluster.messages_for("bob", primary(), with(primary(), "/spec/replicas", json!(3))), "");
        }
        // These controllers share objects, but drive no release.
        let mut cluster = Cluster::new();
        cluster.given_record(&record(5, "deployed", "alice"));
        let pending = record(6, "pending-upgrade", "alice");
        cluster.given_record(&pending);
        assert_ne!(cluster.update(user, &pending, &pending.to("failed")), Ok(()), "{user}");
    }
    let people_too = "rules: {manual-edit: {cases: {only: []}}}\n";
    let mut cluster = Cluster::with_policy(people_too);
    cluster.given_record(&record(5, "deployed", "alice"));
    for namesake in ["system:serviceaccount:shop:flagger", "system:serviceaccount:shop:argo-rollouts", FOREIGNER] {
        assert_eq!(cluster.update_objects(namesake, web(), replicas()), refused("manual-edit"), "{namesake}");
    }
}

/// The accounts of clients that write release records, from their projects' installations.
#[test]
fn the_accounts_of_known_clients_are_shipped() {
    let policy = crate::policy::Policy::shipped().unwrap();
    for account in [
        "flux-system:helm-controller",
        "flux-system:kustomize-controller",
        "projectsveltos:addon-controller",
        "projectsveltos:sveltos-applier-manager",
        "olmv1-system:operator-controller-controller-manager",
        "cattle-fleet-system:fleet-agent",
        "cattle-fleet-local-system:fleet-agent",
        "crossplane-system:provider-helm-1a2b3c",
        "kube-system:helm-traefik",
    ] {
        assert!(policy.managers.contains(&format!("system:serviceaccount:{account}")), "{account}");
    }
    // In a tenant's namespace, the tenant can create an account with this name.
    assert!(!policy.managers.contains("system:serviceaccount:shop:helm-traefik"));
    for account in ["velero:velero", "velero:velero-server"] {
        assert!(policy.tools.contains(&format!("system:serviceaccount:{account}")), "{account}");
    }
}
