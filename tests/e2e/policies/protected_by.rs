//! Whoever deletes the annotated object first gets no further: the records name it, until a manager or an override ends that.

use std::time::Duration;

use serde_json::json;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Identity};
use crate::harness::controllers::{account, establish_kinds};
use crate::harness::eventually::eventually;
use crate::harness::extension::{Extension, hooked};
use crate::harness::helm_releases::{helm_release, installed, shared};
use crate::harness::namespace::Namespace;
use crate::harness::process::{Output, run};

const DRIVER: Driver = Driver::Secret;
const RULE: &str = "[protected-release]";
const WHILE: Duration = Duration::from_secs(60);
const PROTECTED: &str = "interlock.dev/protected=true";
const STAMP: &str = "interlock.dev/protected-by";
const UNPROTECTED: &str = "interlock.dev/protected-";

/// A release of helm whose HelmRelease is annotated, once its record has the stamp.
fn annotated(test: &str, version: HelmVersion) -> Namespace<'static> {
    let namespace = Namespace::new(shared(), test);
    namespace.helm(version, DRIVER, "alice").ok(&["install", "demo", Chart::new("demo").path()]);
    let bob = namespace.kubectl("bob");
    bob.with_file("create", &helm_release(namespace.name(), "demo", json!({"suspend": true})), &[]).expect_success();
    installed(&namespace, "demo", &namespace);
    bob.ok(&["annotate", "helmrelease/demo", PROTECTED]);
    await_stamp(&namespace, true);
    namespace
}

fn stamp(namespace: &Namespace<'_>) -> Option<String> {
    let records = namespace.kubectl("admin").get(&["secret", "-l", "owner=helm,name=demo"]);
    let newest = records["items"].as_array()?.last()?;
    newest["metadata"]["annotations"][STAMP].as_str().map(str::to_owned)
}

#[track_caller]
fn await_stamp(namespace: &Namespace<'_>, is_wanted: bool) {
    eventually(WHILE, "the leader stamps the record", || match stamp(namespace) {
        found if found.is_some() == is_wanted => Ok(()),
        found => Err(format!("{found:?}")),
    });
}

fn unprotect(namespace: &Namespace<'_>, who: &Identity, more: &[&str]) -> Output {
    let release = format!("{}/demo", namespace.name());
    run(namespace.plane().interlock(who, &[&["unprotect", &release], more].concat()), WHILE)
}

/// `interlock unprotect` changes nothing, and says why.
#[track_caller]
fn refuses(output: &Output, why: &str) {
    let text = &output.stdout;
    assert!(!output.success() && text.contains("does not end") && text.contains(why), "{output}");
}

#[test]
fn a_protection_outlasts_its_helm_release() {
    for version in [HelmVersion::V3, HelmVersion::V4] {
        let namespace = annotated(&format!("stamped-{version:?}").to_lowercase(), version);
        let (plane, bob) = (namespace.plane(), namespace.kubectl("bob"));
        let helm = namespace.helm(version, DRIVER, "alice");
        // Flux keeps the release of a suspended HelmRelease, so it may go.
        bob.ok(&["delete", "helmrelease/demo"]);
        let deleted = "(deleted since) protects it";
        let before = namespace.objects_of_demo();
        helm.fails(&["uninstall", "demo"], &["failed to delete release"]);
        assert_eq!(namespace.objects_of_demo(), before);
        namespace
            .kubectl_as(&namespace.service_account("deployer"))
            .fails(&["delete", "service/demo"], &[RULE, deleted]);

        // Neither does the history forget it, nor may people.
        let chart = Chart::new("demo");
        for note in ["--set=note=two", "--set=note=three"] {
            helm.ok(&["upgrade", "demo", chart.path(), note, "--history-max=1"]);
        }
        helm.fails(&["uninstall", "demo"], &["failed to delete release"]);
        let annotate =
            |value: &str| bob.run(&["annotate", "secret", "-l", "owner=helm,name=demo", "--overwrite", value]);
        annotate("interlock.dev/protected-by-").expect_failure(&[RULE, "must stay"]);
        annotate("interlock.dev/protected-by=none").expect_success();
        assert!(stamp(&namespace).is_some_and(|stamp| stamp.starts_with("HelmRelease/")), "it was put back");
        // Another HelmRelease of this name neither ends the protection nor takes the release away.
        let again = helm_release(namespace.name(), "demo", json!({}));
        bob.with_file("create", &again, &[]).expect_success();
        installed(&namespace, "demo", &namespace);
        bob.fails(&["delete", "helmrelease/demo"], &[RULE, deleted]);

        let alice = plane.person("alice");
        refuses(&unprotect(&namespace, &alice, &[]), RULE);
        let manager = account(plane, "flux-system", "kustomize-controller");
        for (more, text) in
            [(&["--dry-run"][..], "would end"), (&[], "is no longer protected by HelmRelease"), (&[], "Nothing to do")]
        {
            let done = unprotect(&namespace, &manager, more).expect_success();
            assert!(done.stdout.contains(text), "{done}");
        }
        bob.ok(&["delete", "helmrelease/demo"]);
        helm.ok(&["uninstall", "demo"]);
        assert_eq!(namespace.objects_of_demo(), Vec::<&str>::new());
    }
}

#[test]
fn a_protection_ends_with_its_annotation() {
    let namespace = annotated("stamped-once", HelmVersion::V4);
    let plane = namespace.plane();
    let (alice, manager) = (plane.person("alice"), account(plane, "flux-system", "kustomize-controller"));
    let command = format!("kubectl annotate helmrelease demo -n {} {UNPROTECTED}", namespace.name());
    refuses(&unprotect(&namespace, &manager, &[]), &command);
    namespace.kubectl_as(&manager).ok(&["annotate", "helmrelease", "demo", UNPROTECTED]);
    // Before the leader has removed the stamp, too.
    namespace.helm_as(HelmVersion::V4, DRIVER, &alice).ok(&["upgrade", "demo", Chart::new("demo").path()]);
    await_stamp(&namespace, false);
    namespace.helm_as(HelmVersion::V4, DRIVER, &alice).ok(&["uninstall", "demo"]);
}

/// Its records are OLM's own, in OLM's namespace.
#[test]
fn an_extension_is_stamped_too() {
    let plane = shared();
    establish_kinds(plane);
    let extension = Extension::new(plane, "stamped-olm").asked_for(&plane.kubectl(&plane.person("bob")));
    extension.olm.reconcile(&hooked(), &json!({"note": "one"})).expect_success();
    let admin = plane.kubectl(&plane.admin());
    admin.ok(&["annotate", "clusterextension", &extension.name, PROTECTED]);
    let selector = format!("owner=operator-controller,name={}", extension.name);
    let stamp = || {
        let records = admin.get(&["secret", "-n", extension.system.name(), "-l", &selector]);
        let mut found = records["items"].as_array()?.iter().map(|it| &it["metadata"]["annotations"][STAMP]);
        found.find_map(|stamp| stamp.as_str().map(str::to_owned))
    };
    eventually(WHILE, "the leader stamps the record of the extension", || match stamp() {
        Some(stamp) if stamp.starts_with(&format!("ClusterExtension//{}/", extension.name)) => Ok(()),
        other => Err(format!("{other:?}")),
    });
}
