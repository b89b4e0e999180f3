use super::*;
use crate::release::stamps::{HOLDER, PIPELINE};

fn kind(name: &str, groups: &[&'static str]) -> ActorKind {
    let groups: Vec<_> = groups.iter().map(|group| Cow::Borrowed(*group)).collect();
    Actor::named(name, &groups).kind
}

#[test]
fn the_kind_of_an_actor_follows_from_its_name_and_groups() {
    use ActorKind::{ControlPlane, Person, Platform, ServiceAccount};
    for (name, wanted) in [
        ("system:serviceaccount:kube-system:generic-garbage-collector", ControlPlane),
        ("system:serviceaccount:kube-system:clusterrole-aggregation-controller", ControlPlane),
        ("system:serviceaccount:kube-system:taint-eviction-controller", ControlPlane),
        ("system:kube-controller-manager", ControlPlane),
        ("system:apiserver", ControlPlane),
        ("system:serviceaccount:kube-system:tiller", ServiceAccount),
        ("system:serviceaccount:shop:namespace-controller", ServiceAccount),
        ("system:serviceaccount:flux-system:helm-controller", ServiceAccount),
        ("system:controller:glbc", Platform),
        ("system:vpa-recommender", Platform),
        ("system:snapshot-controller", Platform),
        ("system:cloud-controller-manager", Platform),
        ("system:gke-common-webhooks", Platform),
        ("system:nodes-agent", Platform),
        ("alice", Person),
        ("", Person),
        ("Admin", Person),
        ("kubernetes-admin", Person),
        ("eks:addon-manager", Person),
        ("arn:aws:sts::1:assumed-role/deploy/job-1", Person),
        // Reserved names of people.
        ("system:admin", Person),
        ("system:anonymous", Person),
        ("system:Admin", Person),
        ("system:", Person),
    ] {
        assert_eq!(kind(name, &["system:authenticated"]), wanted, "{name}");
    }
}

#[test]
fn what_only_looks_like_a_reserved_name_is_a_persons() {
    for name in [
        "System:vpa-recommender",
        "SYSTEM:vpa-recommender",
        "systems:vpa-recommender",
        "\u{455}ystem:vpa-recommender",
        " system:vpa-recommender",
        "system:adm\u{456}n",
        "system:admin ",
        "system:admin\u{200b}",
        // Invalid identities.
        "system:node:worker-1",
        "system:node:",
        "system:node",
        "system:Node:worker-1",
        "system:bootstrap:abcdef",
        "system:serviceaccount:",
        "system:serviceaccount",
        "system:serviceaccount:shop",
        "system:serviceaccount:shop:",
        "system:serviceaccount::deployer",
        "system:serviceaccount:shop:deployer:x",
        "system:serviceaccount:Shop:deployer",
        "system:serviceaccount:kube-system:Namespace-controller",
        "system:ServiceAccount:kube-system:namespace-controller",
    ] {
        assert_eq!(kind(name, &["system:authenticated"]), ActorKind::Person, "{name}");
    }
}

#[test]
fn a_node_must_be_in_the_group_of_nodes() {
    use ActorKind::{Node, Person};
    for (name, wanted) in [
        ("system:node:worker-1", Node),
        ("system:node:", Person),
        ("system:node", Person),
        ("system:Node:worker-1", Person),
        ("alice", Person),
        ("system:admin", Person),
    ] {
        assert_eq!(kind(name, &["system:authenticated", "system:nodes"]), wanted, "{name} as a node");
    }
    assert_eq!(kind("system:node:worker-1", &["system:nodes:a", "System:nodes"]), Person);
}

#[test]
fn only_a_valid_account_is_a_service_account() {
    let account = |name| Actor::named(name, &[]).service_account();
    assert_eq!(account("system:serviceaccount:shop:deployer"), Some("shop:deployer"));
    assert_eq!(account("system:serviceaccount:shop:a.b"), Some("shop:a.b"));
    assert_eq!(account("system:serviceaccount:shop"), None);
    assert_eq!(account("system:serviceaccount:shop:a:b"), None);
}

#[test]
fn a_holder_is_the_same_user_or_a_session_that_shares() {
    let session = |pipeline, holder| Some(Session { pipeline, holder });
    let [job_1, job_2] = ["job-1", "job-2"].map(|name| Actor::named(name, &[]));
    let of = |actor, session| Actor { session, ..actor };
    let stamps = |pipeline: Option<String>| {
        let mut stamps = Stamps::default();
        stamps.set(HOLDER, "job-1".to_owned());
        stamps.set_or_remove(PIPELINE, pipeline);
        stamps
    };
    use SharedHolder::{Group, Pipeline};
    for (held_as, other, wanted) in [
        (None, None, false),
        (None, session("deploy", Pipeline), false),
        (session("deploy", SharedHolder::Session), session("deploy", SharedHolder::Session), false),
        (session("deploy", SharedHolder::Session), session("deploy", Pipeline), false),
        (session("deploy", Pipeline), session("deploy", Pipeline), true),
        (session("deploy", Pipeline), session("deploy", SharedHolder::Session), false),
        (session("deploy", Pipeline), session("deploy-2", Pipeline), false),
        (session("deploy-2", Pipeline), session("deploy", Pipeline), false),
        (session("deploy", Pipeline), session("deploy", Group("")), false),
        (session("ci", Group("project:1")), session("ci", Group("project:1")), true),
        (session("ci", Group("project:1")), session("ci", Group("project:12")), false),
        (session("ci", Group("project:1")), session("ci", Pipeline), false),
        (session("ci", Group("a/b")), session("ci", Group("a/b")), true),
        (session("ci", Group("project:1")), None, false),
    ] {
        let stamps = stamps(held_as.and_then(|session: Session<'_>| session.stamp()));
        assert_eq!(of(job_2, other).holds(&stamps), wanted, "{held_as:?} {other:?}");
        assert!(of(job_1, None).holds(&stamps), "by name, whatever the pipeline");
    }
    assert!(!of(job_1, session("deploy", Pipeline)).holds(&Stamps::default()), "nobody is known to hold it");
}
