//! Jobs of pipelines: which of them are one holder, and go on with what a dead job left.

use std::sync::OnceLock;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Identity};
use crate::harness::decisions::findings_of_others;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records::{self, V2};

const JOB_1: &str = "arn:aws:sts::1:assumed-role/deploy/job-1";
const JOB_2: &str = "arn:aws:sts::1:assumed-role/deploy/job-2";
const NIGHTLY: &str = "arn:aws:sts::1:assumed-role/nightly/job-1";

/// A plane with the shipped policy and the pipeline `deploy`, whose sessions hold operations together.
fn plane() -> &'static Plane {
    static PLANE: OnceLock<Plane> = OnceLock::new();
    PLANE.get_or_init(|| {
        let shipped = include_str!("../../../policies/cluster.yaml");
        let pipeline = "{name: deploy, users: ['arn:aws:sts::*:assumed-role/deploy/*'], holder: pipeline}";
        Plane::start(&format!("{shipped}pipelines: [{pipeline}]\n"))
    })
}

/// A release whose upgrade to revision 2 died with its job.
fn left_by(job: &Identity, version: HelmVersion) -> Namespace<'static> {
    let namespace = Namespace::new(plane(), "pipelines");
    let helm = namespace.helm_as(version, Driver::Secret, job);
    let chart = Chart::new("demo");
    helm.ok(&["install", "demo", chart.path(), "--wait", "--timeout=60s"]);
    namespace.hang_pods();
    let upgrade = helm.spawn(&["upgrade", "demo", chart.path(), "--set=image=two", "--wait"]);
    namespace.await_status(Driver::Secret, "demo", 2, "pending-upgrade");
    namespace.await_image("demo", "two");
    upgrade.kill();
    namespace.ready_pods();
    namespace
}

/// Nobody else may end the operation that a job left, and another job of the same holder goes on at once.
#[track_caller]
fn expect_handover(version: HelmVersion, stamp: &str, dead: &Identity, next: &Identity, others: &[&Identity]) {
    let namespace = left_by(dead, version);
    let annotations = namespace.kubectl("admin").get(&["secret", V2])["metadata"]["annotations"].clone();
    assert_eq!(annotations["interlock.dev/holder"], dead.user());
    assert_eq!(annotations["interlock.dev/pipeline"], stamp);
    let held = format!("held by {}", dead.user());
    for other in others {
        let helm = namespace.helm_as(version, Driver::Secret, other);
        helm.fails(&["rollback", "demo", "1"], &["denied the request", &held, "[pending-recovery]"]);
        namespace.kubectl_as(other).fails(&["delete", "secret", V2], &["denied the request", "[pending-recovery]"]);
    }
    // During the operation its holder writes the objects of the release. A dry run, because helm 4 conflicts with a real one.
    let patch = ["patch", "configmap/demo", "--type=merge", "-p", r#"{"data":{"note":"mine"}}"#, "--dry-run=server"];
    namespace.kubectl_as(next).ok(&patch);
    let helm = namespace.helm_as(version, Driver::Secret, next);
    helm.ok(&["rollback", "demo", "1", "--wait", "--timeout=60s"]);
    let chart = Chart::new("demo");
    helm.ok(&["upgrade", "demo", chart.path(), "--set=image=three"]);
    assert_eq!(records::deployed(&namespace.records(Driver::Secret, "demo")), 1);
    let culprits: Vec<_> = others.iter().map(|other| other.user()).collect();
    let found: Vec<_> = findings_of_others(&namespace, &culprits).iter().map(|found| format!("{found:?}")).collect();
    assert!(found.is_empty(), "expected no finding about the pipeline\n{}", found.join("\n"));
}

#[test]
fn the_next_job_of_a_role_goes_on_with_what_a_dead_one_left_and_nobody_else_does() {
    let named = |user: &str| plane().named(user, &[]);
    let (bob, nightly) = (plane().person("bob"), named(NIGHTLY));
    for version in HelmVersion::ALL {
        expect_handover(version, "deploy", &named(JOB_1), &named(JOB_2), &[&bob, &nightly]);
    }
}

#[test]
fn jobs_of_two_projects_do_not_share_an_operation() {
    let job = |id: u32, project: u32| {
        let (user, group) = (format!("gitlab:ci_job:{id}"), format!("gitlab:project:{project}"));
        plane().named(&user, &["gitlab:ci_job", &group])
    };
    let stamp = "gitlab/gitlab:project:42";
    expect_handover(HelmVersion::V4, stamp, &job(1, 42), &job(2, 42), &[&job(3, 43), &job(4, 4)]);
}

#[test]
fn two_people_do_not_share_an_operation() {
    let alice = plane().person("alice");
    let namespace = left_by(&alice, HelmVersion::V4);
    let annotations = namespace.kubectl("admin").get(&["secret", V2])["metadata"]["annotations"].clone();
    assert_eq!(annotations["interlock.dev/pipeline"], serde_json::Value::Null);
    let bob = namespace.helm(HelmVersion::V4, Driver::Secret, "bob");
    bob.fails(&["rollback", "demo", "1"], &["denied the request", "held by alice", "[pending-recovery]"]);
    // Alice herself knows whether her helm still runs.
    namespace.kubectl("alice").ok(&["patch", "configmap/demo", "--type=merge", "-p", r#"{"data":{"note":"mine"}}"#]);
}
