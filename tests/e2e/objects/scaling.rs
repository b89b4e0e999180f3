//! The number of replicas, set by people and by an autoscaler.

use std::time::Duration;

use crate::harness::acts::{Target, Verdict};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::decisions::expect_findings_only_of;
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::origins::Origin;
use crate::harness::plane::Plane;

use Verdict::{Passes, Scales};

/// The autoscaler acts every 15 seconds.
const AUTOSCALER: Duration = Duration::from_secs(90);

#[test]
fn declared_replicas_cannot_be_scaled_by_hand_whichever_helm_wrote_them() {
    Origin::everywhere(|origin| {
        let (namespace, revision) = origin.release("scale");
        let kubectl = namespace.kubectl("bob");
        Target::deployed(&namespace, "demo", revision).expect_all(
            &kubectl,
            &[
                ("more", &["scale", "deployment/demo", "--replicas=5"], Scales),
                ("none", &["scale", "deployment/demo", "--replicas=0"], Scales),
                ("a dry run", &["scale", "deployment/demo", "--replicas=5", "--dry-run=server"], Scales),
                (
                    "the subresource patched",
                    &[
                        "patch",
                        "deployment/demo",
                        "--subresource=scale",
                        "--type=merge",
                        "-p",
                        r#"{"spec":{"replicas":5}}"#,
                    ],
                    Scales,
                ),
                ("as many as are declared", &["scale", "deployment/demo", "--replicas=1"], Passes),
            ],
        );
        assert_eq!(kubectl.get(&["deployment/demo"])["spec"]["replicas"], 1, "{origin:?}");
    });
}

#[test]
fn undeclared_replicas_can_be_scaled_by_anybody() {
    for version in HelmVersion::ALL {
        let namespace = Namespace::new(Plane::shared(), "scale-free");
        namespace.helm(version, Driver::Secret, "alice").ok(&[
            "install",
            "demo",
            Chart::new("demo").path(),
            "--set=replicas=null",
        ]);
        let kubectl = namespace.kubectl("bob");
        kubectl.ok(&["scale", "deployment/demo", "--replicas=3"]);
        kubectl.ok(&["patch", "deployment/demo", "--type=merge", "-p", r#"{"spec":{"replicas":2}}"#]);
        // A Deployment without a release.
        kubectl.ok(&["create", "deployment", "unmanaged", "--image=registry.invalid/app:1"]);
        kubectl.ok(&["scale", "deployment/unmanaged", "--replicas=3"]);
        // The refused neighbour: declared fields are still declared.
        Target::deployed(&namespace, "demo", 1).expect_all(
            &kubectl,
            &[(
                "an image",
                &["set", "image", "deployment/demo", "app=bob:1"],
                Verdict::Edits("spec.template.spec.containers[app].image"),
            )],
        );
        expect_findings_only_of(&namespace, &["bob"]);
    }
}

#[test]
fn an_autoscaler_scales_declared_replicas() {
    let (namespace, revision) = Origin::Helm3.release("scale-auto");
    let kubectl = namespace.kubectl("bob");
    // Without metrics an autoscaler still enforces its minimum.
    kubectl.ok(&["autoscale", "deployment", "demo", "--min=3", "--max=5"]);
    eventually(AUTOSCALER, "the autoscaler raises the replicas to its least", || {
        match &kubectl.get(&["deployment/demo"])["spec"]["replicas"] {
            replicas if *replicas == 3 => Ok(()),
            replicas => Err(replicas.to_string()),
        }
    });
    // The refused neighbour at the same time.
    Target::deployed(&namespace, "demo", revision)
        .expect_all(&kubectl, &[("by hand", &["scale", "deployment/demo", "--replicas=4"], Scales)]);
    // helm restores its number, as without the webhook.
    let chart = Chart::new("demo");
    namespace.helm(HelmVersion::V3, Driver::Secret, "alice").ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
    expect_findings_only_of(&namespace, &["bob"]);
}
