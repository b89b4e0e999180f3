//! The rule `retarget`.

use serde_json::{Value, json};

use super::{dying, first, helm_release, installed, refused, with};
use crate::rules::tests::overrides::override_of;
use crate::rules::tests::scenario::{Cluster, rec};

/// A HelmRelease with a chart from a chart repository.
fn charted(name: &str, more: &Value) -> Value {
    let mut spec = json!({"chart": {"spec": {"chart": name, "sourceRef": {"kind": "HelmRepository", "name": "r"}}}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    helm_release("web", spec)
}

#[test]
fn an_edit_that_uninstalls_the_release_is_refused() {
    let in_place = json!({"upgrade": {"chartNameChangeStrategy": "InPlaceUpdate"}});
    let of_git = with(charted("./charts/other", &json!({})), "/spec/chart/spec/sourceRef/kind", json!("GitRepository"));
    for (old, new, open) in [
        (first(), helm_release("web", json!({"releaseName": "other"})), false),
        (first(), helm_release("web", json!({"targetNamespace": "prod"})), false),
        (first(), helm_release("web", json!({"targetNamespace": "prod", "releaseName": "web"})), false),
        (first(), helm_release("web", json!({"storageNamespace": "records"})), false),
        (
            first(),
            helm_release("web", json!({"releaseName": "web", "targetNamespace": "shop", "storageNamespace": "shop"})),
            true,
        ),
        (first(), helm_release("web", json!({"values": {"a": 1}})), true),
        (charted("nginx", &json!({})), charted("apache", &json!({})), false),
        (charted("nginx", &json!({})), charted("library/nginx", &json!({})), true),
        (charted("nginx", &in_place), charted("apache", &in_place), true),
        (charted("nginx", &json!({})), of_git, true),
        (charted("nginx", &json!({})), first(), true),
        // Flux was already about to uninstall it before this edit.
        (helm_release("web", json!({"releaseName": "a"})), helm_release("web", json!({"releaseName": "b"})), true),
        // But not by the chart's name, which can differ for ever.
        (charted("mine", &json!({})), charted("mine", &json!({"releaseName": "other"})), false),
        (charted("mine", &json!({})), charted("apache", &json!({})), false),
        (charted("mine", &json!({})), charted("mine", &json!({"values": {"a": 1}})), true),
        (charted("mine", &json!({})), charted("nginx", &json!({})), true),
        (
            helm_release("web", json!({"releaseName": "a"})),
            helm_release("web", json!({"releaseName": "a", "targetNamespace": "prod"})),
            false,
        ),
        // A mistake is reverted.
        (helm_release("web", json!({"releaseName": "a"})), first(), true),
    ] {
        let (old, new) = (installed(old), installed(new));
        let verdict = Cluster::new().update_objects("alice", old.clone(), new.clone());
        assert_eq!(verdict.is_ok(), open, "{} -> {}: {verdict:?}", old["spec"], new["spec"]);
        assert!(verdict.is_ok() || verdict == refused("retarget"));
        assert_eq!(Cluster::new().update_objects("alice", dying(old.clone()), dying(new.clone())), Ok(()));
        let unknown = |object: Value| with(object, "/status", json!({"observedGeneration": -1}));
        assert_eq!(Cluster::new().update_objects("alice", unknown(old), unknown(new)), Ok(()), "not installed yet");
    }
}

#[test]
fn a_move_to_another_cluster_leaves_the_release_behind() {
    let remote = |more: Value| {
        let mut spec = json!({"kubeConfig": {"secretRef": {"name": "spoke"}}});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        helm_release("web", spec)
    };
    for (old, new) in [(first(), remote(json!({}))), (remote(json!({})), first())] {
        let (old, new) = (installed(old), installed(new));
        let found = Cluster::new().findings("alice", Some(old.clone()), Some(new.clone()));
        let texts = found.concat();
        assert!(found.len() == 1 && texts.contains("nothing manages release shop/web"), "{found:?}");
        assert_eq!(Cluster::new().update_objects("alice", old, new), Ok(()));
    }
    // Away with another name, or back with one: Flux would uninstall the release once it is back.
    for (old, new) in [
        (first(), remote(json!({"releaseName": "other"}))),
        (remote(json!({})), helm_release("web", json!({"releaseName": "other"}))),
    ] {
        let verdict = Cluster::new().update_objects("alice", installed(old), installed(new));
        assert_eq!(verdict, Err(vec!["retarget", "retarget"]), "one is the warning");
    }
    let never = |object: Value| with(object, "/status", json!({"observedGeneration": -1}));
    assert_eq!(Cluster::new().findings("alice", Some(never(first())), Some(never(remote(json!({}))))), [""; 0]);
}

#[test]
fn no_annotation_is_offered_that_does_not_open_a_protected_release() {
    let (old, new) = (installed(first()), installed(helm_release("web", json!({"releaseName": "other"}))));
    for (policy, offered) in [("", true), ("protected: {releases: [web]}", false)] {
        let found = Cluster::with_policy(policy).findings("alice", Some(old.clone()), Some(new.clone())).concat();
        assert_eq!(found.contains("interlock.dev/allow-retarget"), offered, "{found}");
        assert!(
            found.contains("create another HelmRelease") || found.contains("Create another HelmRelease"),
            "{found}"
        );
    }
}

#[test]
fn a_retarget_is_judged_by_the_installed_release() {
    let retarget = |cluster: &mut Cluster, spec: Value| {
        cluster.update_objects("carol", installed(first()), installed(helm_release("web", spec)))
    };
    for (namespace, verdict) in [("mine", refused("retarget")), ("shop", Ok(()))] {
        let mut cluster = Cluster::new();
        let made = override_of("web", &["retarget"], 30);
        cluster.given(with(made, "/metadata/namespace", json!(namespace)));
        assert_eq!(retarget(&mut cluster, json!({"storageNamespace": "mine"})), verdict, "{namespace}");
    }
    for (release, verdict) in [("other", refused("retarget")), ("web", Ok(()))] {
        let cases = format!("rules:\n  retarget: {{cases: [{{when: {{releases: [{release}]}}, mode: 'off'}}]}}");
        let mut cluster = Cluster::with_policy(&cases);
        assert_eq!(retarget(&mut cluster, json!({"releaseName": "other"})), verdict, "{release}");
    }
}

#[test]
fn an_acknowledgement_is_valid_for_one_target() {
    let old = || installed(charted("nginx", &json!({})));
    for (new, value) in [
        (helm_release("web", json!({"releaseName": "other"})), "shop/other"),
        (helm_release("web", json!({"targetNamespace": "prod"})), "shop/prod-web"),
        (helm_release("web", json!({"storageNamespace": "records"})), "records/web"),
        // These changes affect neither the namespace of the records nor the release name, so the value has a third part.
        (helm_release("web", json!({"targetNamespace": "prod", "releaseName": "web"})), "shop/web/prod"),
        (charted("apache", &json!({})), "shop/web/apache"),
    ] {
        let new = installed(new);
        let found = Cluster::new().findings("alice", Some(old()), Some(new.clone())).concat();
        assert!(
            found.contains(&format!("interlock.dev/allow-retarget: {value} (`kubectl annotate helmrelease web")),
            "{found}"
        );
        assert!(found.contains("uninstall release shop/web (deployed)"), "{found}");
        for (annotation, open) in [(value, true), ("shop/web", false), ("true", false), ("", false)] {
            let new = with(new.clone(), "/metadata/annotations", json!({"interlock.dev/allow-retarget": annotation}));
            let verdict = Cluster::new().update_objects("alice", old(), new);
            assert_eq!(verdict.is_ok(), open, "{annotation}: {verdict:?}");
        }
    }
}

/// The object with these revisions in its status, newest first: number and status.
fn attempted(object: Value, revisions: &[(u64, &str)]) -> Value {
    let snapshot = |(version, status): &(u64, &str)| json!({"name": "web", "namespace": "shop", "version": version, "status": status, "chartName": "nginx"});
    let history: Vec<_> = revisions.iter().map(snapshot).collect();
    with(object, "/status", json!({"storageNamespace": "shop", "history": history}))
}

#[test]
fn only_a_release_that_was_deployed_counts() {
    for (revisions, text) in [
        (&[(1, "failed")][..], None),
        (&[(2, "failed"), (1, "failed")], None),
        (&[(1, "uninstalled")], None),
        (&[(2, "uninstalled"), (1, "superseded")], None),
        (&[(1, "deployed")], Some("(deployed)")),
        (&[(3, "failed"), (2, "deployed"), (1, "superseded")], Some("(deployed)")),
        (&[(3, "failed"), (2, "superseded")], Some("(failed)")),
    ] {
        let old = attempted(first(), revisions);
        let new = attempted(helm_release("web", json!({"releaseName": "other"})), revisions);
        let found = Cluster::new().findings("alice", Some(old), Some(new)).concat();
        assert_eq!(!found.is_empty(), text.is_some(), "{revisions:?}: {found}");
        let text = text.unwrap_or_default();
        assert!(found.contains(text), "{revisions:?}: {found}");
    }
}

/// If Flux retries failures, it keeps only five attempts.
#[test]
fn records_are_read_if_the_status_has_only_failures() {
    let failures = [(9, "failed"), (8, "failed"), (7, "failed"), (6, "failed"), (5, "failed")];
    let edit = |records: &[(u64, &'static str)], more: Value| {
        let mut cluster = Cluster::new();
        for (revision, status) in records {
            cluster.given_record(&rec(*revision, status));
        }
        let side = |name: &str| {
            let mut object = helm_release("web", more.clone());
            object["spec"]["releaseName"] = name.into();
            attempted(object, &failures)
        };
        cluster.findings("alice", Some(side("web")), Some(side("other"))).concat()
    };
    let here = json!({});
    let found = edit(&[(9, "failed"), (4, "deployed")], here.clone());
    assert!(found.contains("uninstall release shop/web (deployed)") && found.contains("[retarget]"), "{found}");
    let found = edit(&[(9, "failed"), (4, "superseded")], here.clone());
    assert!(found.contains("uninstall release shop/web (failed)"), "{found}");
    assert_eq!(edit(&[(9, "failed"), (8, "failed")], here.clone()), "");
    assert_eq!(edit(&[], here), "");
    let found = edit(&[], json!({"kubeConfig": {"secretRef": {"name": "prod"}}}));
    assert!(found.contains("uninstall release shop/web (unknown)"), "{found}");
    // The records of another cluster cannot be read, so there is only a warning.
    let remote = |name: &str| {
        let spec = json!({"releaseName": name, "kubeConfig": {"secretRef": {"name": "prod"}}});
        attempted(helm_release("web", spec), &failures)
    };
    assert_eq!(Cluster::new().update_objects("alice", remote("web"), remote("other")), Ok(()));
}

fn of_git(path: &str, more: &Value) -> Value {
    with(charted(path, more), "/spec/chart/spec/sourceRef/kind", json!("GitRepository"))
}

fn referenced(name: &str, more: &Value) -> Value {
    let mut spec = json!({"chartRef": {"kind": "OCIRepository", "name": name}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    helm_release("web", spec)
}

#[test]
fn another_chart_with_an_unknown_name_is_warned_of() {
    let (none, in_place) = (json!({}), json!({"upgrade": {"chartNameChangeStrategy": "InPlaceUpdate"}}));
    let here = |namespace: &str| with(referenced("a", &json!({})), "/spec/chartRef/namespace", json!(namespace));
    for (old, new, warned) in [
        (referenced("a", &none), referenced("b", &none), true),
        (referenced("a", &none), here("charts"), true),
        (referenced("a", &none), here("shop"), false),
        (referenced("a", &none), referenced("a", &json!({"values": {"a": 1}})), false),
        (charted("nginx", &none), referenced("a", &none), true),
        (of_git("./a", &none), of_git("./b", &none), true),
        (of_git("./a", &none), of_git("./a", &json!({"interval": "1m"})), false),
        (referenced("a", &none), of_git("./a", &none), true),
        // The object contains its name.
        (referenced("a", &none), charted("nginx", &none), false),
        (referenced("a", &in_place), referenced("b", &in_place), false),
        (referenced("a", &none), referenced("b", &in_place), false),
        // The same change in two writes.
        (referenced("b", &in_place), referenced("b", &none), true),
    ] {
        let named = format!("{} -> {}", old["spec"], new["spec"]);
        let found = Cluster::new().findings("alice", Some(installed(old.clone())), Some(installed(new.clone())));
        assert_eq!(found.len(), usize::from(warned), "{named}: {found:?}");
        assert!(
            found.iter().all(
                |text| text.contains("if the name is no longer nginx, Flux uninstalls release shop/web (deployed)")
            ),
            "{found:?}"
        );
        assert_eq!(
            Cluster::new().update_objects("alice", installed(old.clone()), installed(new.clone())),
            Ok(()),
            "{named}"
        );
        assert_eq!(Cluster::new().findings("alice", Some(old), Some(new)), [""; 0], "{named}: nothing is installed");
    }
    let known =
        Cluster::new().update_objects("alice", installed(referenced("a", &none)), installed(charted("apache", &none)));
    assert_eq!(known, refused("retarget"), "its name can be text, and is another one");
}
