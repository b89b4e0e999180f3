//! Platforms and pipelines: what they may write to a release, and which sessions of a pipeline count as one holder.

use serde_json::{Value, json};

use super::doors::{DOORS, Door, STALE, operation_in};
use super::objects::{image, record, web};
use super::scenario::{Cluster, Rec, rec};
use crate::release::stamps::{HOLDER, PIPELINE};

const JOB_1: &str = "arn:aws:sts::1:assumed-role/deploy/job-1";
const JOB_2: &str = "arn:aws:sts::1:assumed-role/deploy/job-2";
const NIGHTLY_1: &str = "arn:aws:sts::1:assumed-role/nightly/job-1";
const NIGHTLY_2: &str = "arn:aws:sts::1:assumed-role/nightly/job-2";
const SHOP_1: &str = "gitlab:ci_job:1 in gitlab:project:42";
const SHOP_2: &str = "gitlab:ci_job:2 in gitlab:project:42";
const CRM: &str = "gitlab:ci_job:3 in gitlab:project:43";
const HPA: &str = "system:vpa-recommender";
const GLBC: &str = "system:controller:glbc";

const LISTS: &str = "platform: ['eks:*']
pipelines:
  - {name: deploy, users: ['arn:aws:sts::*:assumed-role/deploy/*'], holder: pipeline}
  - {name: nightly, users: ['arn:aws:sts::*:assumed-role/nightly/*']}
  - {name: gitlab, users: ['gitlab:ci_job:*'], holder: 'group:gitlab:project:*'}
";

fn cluster() -> Cluster {
    Cluster::with_policy(LISTS)
}

/// A release at rest, or with an operation of alice in flight.
fn release(status: &'static str) -> Cluster {
    let mut cluster = cluster();
    cluster.given_record(&record(5, "deployed", "alice"));
    cluster.given_record(&record(6, status, "alice"));
    cluster
}

/// What an ingress controller writes into an object.
fn ingress(finalizer: Option<&str>) -> Value {
    let mut object = web();
    object["metadata"]["finalizers"] = json!(finalizer.into_iter().collect::<Vec<_>>());
    object["metadata"]["annotations"]["ingress.kubernetes.io/url-map"] = "k8s2-um".into();
    object
}

#[test]
fn sessions_share_operations_as_the_policy_says() {
    for Door { name, over, closed_to_its_own_person, write } in DOORS {
        for (holder, user, open_while_fresh) in [
            (JOB_1, JOB_2, true),
            (JOB_1, JOB_1, true),
            (JOB_1, "alice", false),
            (JOB_1, NIGHTLY_1, false),
            ("alice", JOB_1, false),
            // Each session is its own holder, like a person.
            (NIGHTLY_1, NIGHTLY_2, false),
            (NIGHTLY_1, NIGHTLY_1, !closed_to_its_own_person),
            (SHOP_1, SHOP_2, true),
            (SHOP_1, CRM, false),
            // Without the group, a job is its own holder.
            (SHOP_1, "gitlab:ci_job:2", false),
            (SHOP_1, "gitlab:ci_job:2 in gitlab:project:42,gitlab:project:43", false),
            ("gitlab:ci_job:1", "gitlab:ci_job:2", false),
            // Platforms are treated like any other user.
            ("alice", HPA, false),
            ("eks:addon-manager", "eks:vpc-cni", false),
        ] {
            for (seconds, open) in [(0, open_while_fresh), (STALE, true)] {
                let (mut cluster, record) = operation_in(cluster(), holder, over, seconds);
                let verdict = write(&mut cluster, user, &record);
                let case = format!("{name}: {user} over {holder}'s of {seconds} s: {verdict:?}");
                assert_eq!(verdict.is_ok(), open, "{case}");
            }
        }
    }
}

#[test]
fn platforms_may_write_objects_even_during_an_operation() {
    for status in ["deployed", "pending-upgrade"] {
        let in_flight = status != "deployed";
        let (edit, delete) = if in_flight {
            ("foreign-edit-in-transition", "foreign-edit-in-transition")
        } else {
            ("manual-edit", "manual-delete")
        };
        for user in [HPA, GLBC, "eks:addon-manager"] {
            let mut cluster = release(status);
            cluster.given(web());
            assert_eq!(cluster.update_objects(user, web(), image("2")), Ok(()), "{user} {status}");
            assert_eq!(
                cluster.update_objects(user, web(), ingress(Some("networking.gke.io/ingress-finalizer"))),
                Ok(())
            );
            assert_eq!(cluster.scale(user, &web(), 2, 5), Ok(()), "{user} {status}");
            assert_eq!(cluster.delete_object(user, web()), Ok(()), "{user} {status}");
        }
        for user in ["system:admin", "Admin", "bob", "System:vpa-recommender", "system:node:worker", "aks"] {
            let mut cluster = release(status);
            cluster.given(web());
            assert_eq!(cluster.update_objects(user, web(), image("2")), Err(vec![edit]), "{user} {status}");
            let scale = if in_flight { "foreign-edit-in-transition" } else { "manual-scale" };
            assert_eq!(cluster.scale(user, &web(), 2, 5), Err(vec![scale]), "{user} {status}");
            assert_eq!(cluster.delete_object(user, web()), Err(vec![delete]), "{user} {status}");
            // A finalizer would keep the next write of the release from removing the object. An annotation is harmless.
            let finalizer = ingress(Some("example.com/mine"));
            assert_eq!(cluster.update_objects(user, web(), finalizer), Err(vec![edit]), "{user} {status}");
            assert_eq!(cluster.update_objects(user, web(), ingress(None)), Ok(()), "{user} {status}");
        }
    }
}

#[test]
fn a_platform_is_a_user_like_any_other_on_records() {
    let mut cluster = release("deployed");
    let newest = record(6, "deployed", "alice");
    assert_eq!(cluster.delete(HPA, &newest), Err(vec!["record-deletion"]));
    assert_eq!(cluster.delete_among_others(HPA, &rec(5, "superseded")), Err(vec!["record-deletion"]));
    assert_eq!(cluster.delete(HPA, &rec(4, "superseded")), Ok(()));
}

#[test]
fn edits_by_pipelines_are_audited_like_service_accounts() {
    for user in [JOB_1, SHOP_1, NIGHTLY_1] {
        let mut cluster = release("deployed");
        assert_eq!(cluster.update_objects(user, web(), image("2")), Ok(()), "{user}");
        let found = cluster.findings(user, Some(web()), Some(image("2")));
        assert!(found.len() == 1 && found[0].contains("[manual-edit]"), "{user}: {found:?}");
        // helm continues with the deletions of a refused uninstall.
        let mut cluster = release("pending-upgrade");
        assert_eq!(cluster.update_objects(user, web(), image("2")), Ok(()), "{user}");
        assert_eq!(cluster.delete_object(user, web()), Err(vec!["foreign-edit-in-transition"]), "{user}");
    }
    let mut cluster = release("deployed");
    assert_eq!(
        cluster.update_objects("arn:aws:sts::1:assumed-role/other/job-1", web(), image("2")),
        Err(vec!["manual-edit"])
    );
}

#[test]
fn the_next_session_may_write_objects_of_a_shared_operation() {
    let start = |holder: &str| {
        let mut cluster = cluster();
        cluster.given_record(&record(5, "deployed", ""));
        assert_eq!(cluster.create(holder, &record(6, "pending-upgrade", "")), Ok(()));
        cluster
    };
    let found = |cluster: &mut Cluster, user: &str| cluster.findings(user, Some(web()), Some(image("2"))).len();
    let mut of_job = start(JOB_1);
    assert_eq!((found(&mut of_job, JOB_2), found(&mut of_job, NIGHTLY_1), found(&mut of_job, "bob")), (0, 1, 1));
    let mut of_shop = start(SHOP_1);
    assert_eq!((found(&mut of_shop, SHOP_2), found(&mut of_shop, CRM)), (0, 1));
}

/// How the mutating half patches the stamp of the pipeline; `None` if it does not.
fn patched(cluster: &mut Cluster, user: &str, old: Option<&Rec>, new: &Rec) -> Option<Value> {
    let judged = cluster.judged(user, old.map(Rec::object), new.object());
    assert!(judged.allowed, "{user}: {:?}", judged.findings);
    let patch = serde_json::to_value(judged.patch).unwrap();
    let is_stamp = |operation: &&Value| operation["path"] == "/metadata/annotations/interlock.dev~1pipeline";
    patch.as_array().into_iter().flatten().find(is_stamp).cloned()
}

#[test]
fn the_pipeline_stamp_is_set_at_the_start_and_then_kept() {
    const STAMP: &str = "gitlab/gitlab:project:42";
    let is_set = |patch: Option<Value>| patch.is_some_and(|patch| patch["op"] == "add" && patch["value"] == STAMP);
    let is_removed = |patch: Option<Value>| patch.is_some_and(|patch| patch["op"] == "remove");
    let running = record(1, "pending-install", "");
    let sent = running.clone().annotated(PIPELINE, "deploy");
    let mut cluster = cluster();
    assert!(is_set(patched(&mut cluster, SHOP_1, None, &sent)));
    // Another session ends the operation and sends a different stamp.
    let stored = running.annotated(HOLDER, "gitlab:ci_job:1").annotated(PIPELINE, STAMP);
    let deployed = stored.to("deployed").annotated(PIPELINE, "gitlab/gitlab:project:43");
    assert!(is_set(patched(&mut cluster, SHOP_2, Some(&stored), &deployed)));
    // Operations of persons, and of sessions that do not share their operations, have no pipeline stamp.
    for user in ["alice", NIGHTLY_1] {
        assert!(is_removed(patched(&mut self::cluster(), user, None, &sent)), "{user}");
    }
}
