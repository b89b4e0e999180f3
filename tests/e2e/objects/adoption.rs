//! helm cleans up, keeps, takes over and writes objects late. All of this works as without the webhook.

use std::time::Duration;

use crate::harness::acts::{Target, Verdict};
use crate::harness::chart::{Chart, EXTRA, KEPT};
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::decisions::{Decision, decisions, expect_findings_only_of};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records;

const WHILE: Duration = Duration::from_secs(60);

/// An object that two releases declare.
const SHARED: &str = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: shared
data:
  of: {{ .Release.Name }}
  note: {{ .Values.note | quote }}
"#;

fn namespace_and_helm(test: &str, version: HelmVersion) -> (Namespace<'static>, Helm) {
    let namespace = Namespace::new(Plane::shared(), test);
    let helm = namespace.helm(version, Driver::Secret, "alice");
    (namespace, helm)
}

fn config_maps(namespace: &Namespace<'_>) -> Vec<String> {
    let list = namespace.kubectl("admin").get(&["configmaps"]);
    let names = list["items"].as_array().unwrap().iter();
    names.map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_failed_install_deletes_its_objects() {
    for version in HelmVersion::ALL {
        let (namespace, alice) = namespace_and_helm("undo-install", version);
        let chart = Chart::new("demo");
        let undo = version.rollback_on_failure();
        alice.fails(&["install", "demo", chart.path(), "--set=breakApply=true", undo, "--timeout=60s"], &["selector"]);
        assert!(config_maps(&namespace).is_empty(), "{:?}", config_maps(&namespace));
        assert!(namespace.records(Driver::Secret, "demo").is_empty());
        expect_findings_only_of(&namespace, &[]);
    }
}

#[test]
fn a_failed_upgrade_deletes_the_objects_that_it_created() {
    for version in HelmVersion::ALL {
        let (namespace, alice) = namespace_and_helm("clean-up", version);
        let chart = Chart::new("demo").template("extra", EXTRA);
        alice.ok(&["install", "demo", chart.path()]);
        let values = "--set=extra=true,note=two,breakApply=true";
        alice.fails(&["upgrade", "demo", chart.path(), values, "--cleanup-on-fail"], &["selector"]);
        assert_eq!(config_maps(&namespace), ["demo"]);
        assert_eq!(records::summary(&namespace.records(Driver::Secret, "demo")), "1 deployed, 2 failed");
        expect_findings_only_of(&namespace, &[]);
    }
}

#[test]
fn an_uninstall_keeps_its_history_and_kept_objects() {
    for version in HelmVersion::ALL {
        let (namespace, alice) = namespace_and_helm("keep", version);
        let chart = Chart::new("demo").template("kept", KEPT);
        alice.ok(&["install", "demo", chart.path()]);
        alice.ok(&["uninstall", "demo", "--keep-history"]);
        assert_eq!(config_maps(&namespace), ["kept"]);
        assert_eq!(records::summary(&namespace.records(Driver::Secret, "demo")), "1 uninstalled");
        // A rollback restores the release and finds the kept object.
        alice.ok(&["rollback", "demo", "1"]);
        assert_eq!(config_maps(&namespace), ["demo", "kept"]);
        expect_findings_only_of(&namespace, &[]);
    }
}

#[test]
fn a_second_release_takes_an_object_over_and_the_first_takes_it_back() {
    for version in HelmVersion::ALL {
        let (namespace, alice) = namespace_and_helm("take", version);
        let bob = namespace.helm(version, Driver::Secret, "bob");
        let chart = Chart::new("demo").template("shared", SHARED);
        let owner = || {
            let shared = namespace.kubectl("admin").get(&["configmap", "shared"]);
            let annotation = shared["metadata"]["annotations"]["meta.helm.sh/release-name"].clone();
            assert_eq!(shared["data"]["of"], annotation);
            annotation
        };
        alice.ok(&["install", "one", chart.path()]);
        // Refused by helm's own check, and without a release by Interlock.
        bob.fails(&["install", "two", chart.path()], &["cannot be imported into the current release"]);
        let steal = ["annotate", "configmap/shared", "--overwrite", "meta.helm.sh/release-name=two"];
        let mark = "metadata.annotations[meta.helm.sh/release-name]";
        Target::deployed(&namespace, "one", 1).expect(&namespace.kubectl("bob").run(&steal), Verdict::Edits(mark));
        bob.ok(&["install", "two", chart.path(), "--take-ownership"]);
        assert_eq!(owner(), "two");
        alice.ok(&["upgrade", "one", chart.path(), "--set=note=two"]);
        assert_eq!(owner(), "one");
        let deployed = |release| records::deployed(&namespace.records(Driver::Secret, release));
        assert_eq!((deployed("one"), deployed("two")), (1, 1));
        expect_findings_only_of(&namespace, &["bob"]);
        let refused = |decision: &Decision| !decision.rules.is_empty();
        let mut of_bob = decisions(&namespace).into_iter().filter(refused);
        assert!(of_bob.all(|decision| decision.resource == "configmaps" && decision.rules == "manual-edit=enforce"));
    }
}

#[test]
fn an_interrupted_upgrade_ends_as_without_the_webhook() {
    for version in HelmVersion::ALL {
        let (namespace, alice) = namespace_and_helm("interrupt", version);
        let chart = Chart::new("demo").template("extra", EXTRA);
        alice.ok(&["install", "demo", chart.path()]);
        namespace.hang_pods();
        let values = "--set=extra=true,note=two,image=two";
        let upgrade = alice.spawn(&["upgrade", "demo", chart.path(), values, "--wait", "--cleanup-on-fail"]);
        namespace.await_image("demo", "two");
        upgrade.interrupt();
        let ended = upgrade.wait(WHILE);
        assert!(!ended.success() && !ended.timed_out, "{ended}");
        let records = namespace.records(Driver::Secret, "demo");
        assert_eq!(records::summary(&records), "1 deployed, 2 failed", "{ended}");
        expect_findings_only_of(&namespace, &[]);
        // Another user may not delete the object.
        namespace.kubectl("bob").fails(&["delete", "configmap/demo"], &["(revision 2, failed)", "[manual-delete]"]);
    }
}
