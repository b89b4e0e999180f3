//! Drift, and who may correct it. Bob's edits only cause warnings here, and a service account is a manager.

use crate::harness::acts::{Target, Verdict};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Kubectl};
use crate::harness::decisions::{decisions, expect_findings_only_of};
use crate::harness::in_flight::impatient;
use crate::harness::namespace::Namespace;
use crate::harness::process::Output;

use Verdict::{Edits, Passes};

const IMAGE: &str = "spec.template.spec.containers[app].image";

fn release(test: &str, version: HelmVersion) -> Namespace<'static> {
    let namespace = Namespace::new(impatient(), test);
    namespace.helm(version, Driver::Secret, "alice").ok(&["install", "demo", Chart::new("demo").path()]);
    namespace
}

#[test]
fn an_edit_admitted_with_a_warning_does_not_free_the_next_one() {
    for version in HelmVersion::ALL {
        let namespace = release("warned", version);
        let (alice, bob) = (namespace.kubectl("alice"), namespace.kubectl("bob"));
        let warned = bob.ok(&["set", "image", "deployment/demo", "app=bob:1"]);
        let first = format!("Warning: interlock: Deployment {}/demo is managed by release", namespace.name());
        assert!(warned.stderr.contains(&first) && warned.stderr.contains("[manual-edit]"), "{warned}");
        // managedFields now say that the image is bob's. Only the manifest shows that the chart declares it.
        let fields = alice.ok(&["get", "deployment/demo", "--show-managed-fields", "-o", "json"]).json();
        let owners = fields["metadata"]["managedFields"].as_array().unwrap().iter().filter(|entry| {
            let containers = &entry["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"];
            !containers["k:{\"name\":\"app\"}"]["f:image"].is_null()
        });
        let owners: Vec<_> = owners.map(|entry| entry["manager"].clone()).collect();
        assert_eq!(owners, ["kubectl-set"], "{version:?}");
        Target::deployed(&namespace, "demo", 1).expect_all(
            &alice,
            &[
                ("another image", &["set", "image", "deployment/demo", "app=alice:1"], Edits(IMAGE)),
                ("the declared one", &["set", "image", "deployment/demo", "app=registry.invalid/app:1"], Passes),
                ("another one again", &["set", "image", "deployment/demo", "app=alice:1"], Edits(IMAGE)),
            ],
        );
        expect_findings_only_of(&namespace, &["alice", "bob"]);
    }
}

/// Applies a manifest as drift correction does.
fn apply(kubectl: &Kubectl, manifest: &str) -> Output {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().expect("a temporary file");
    std::fs::write(file.path(), manifest).expect("a temporary file is writable");
    let path = file.path().to_str().expect("temporary files have plain names");
    kubectl.run(&["apply", "-f", path, "--server-side", "--force-conflicts", "--field-manager=corrector"])
}

#[test]
fn a_manager_corrects_drift_outside_of_any_operation() {
    for version in HelmVersion::ALL {
        let namespace = release("drift", version);
        let manifest = namespace.helm(version, Driver::Secret, "alice").ok(&["get", "manifest", "demo"]).stdout;
        let other = manifest.replace("registry.invalid/app:1", "other:1");
        let bot = namespace.service_account("bot");
        namespace.kubectl_as(&bot).ok(&["set", "image", "deployment/demo", "app=drifted:1"]);
        let target = Target::deployed(&namespace, "demo", 1);
        target.expect(&apply(&namespace.kubectl("alice"), &other), Edits(IMAGE));
        assert_eq!(namespace.image("demo"), "drifted:1");
        let corrector = namespace.service_account("corrector");
        apply(&namespace.kubectl_as(&corrector), &manifest).expect_success();
        assert_eq!(namespace.image("demo"), "registry.invalid/app:1");
        // A manager may also make other edits, scale and delete.
        let manager = namespace.kubectl_as(&corrector);
        apply(&manager, &other).expect_success();
        manager.ok(&["scale", "deployment/demo", "--replicas=2"]);
        manager.ok(&["delete", "service/demo"]);
        apply(&manager, &manifest).expect_success();
        target.expect(&apply(&namespace.kubectl("alice"), &other), Edits(IMAGE));
        expect_findings_only_of(&namespace, &["alice", bot.user()]);
        let asked = decisions(&namespace).iter().any(|decision| decision.user == corrector.user());
        assert!(asked, "the webhook saw nothing of the corrector");
    }
}
