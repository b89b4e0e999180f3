//! The rule `duplicate-release`.

use serde_json::{Value, json};

use super::{CONTROLLER, dying, first, helm_release, installed, refused, with};
use crate::effort::Effort;
use crate::evidence::{Query, Question, question};
use crate::facts::{Facts, RecordBodies, RequestObjects};
use crate::owners::flux::Driver;
use crate::policy::Policy;
use crate::review::Review;
use crate::rules::tests::scenario::{Cluster, decided};

#[test]
fn one_helm_release_drives_a_release() {
    let kube_config = json!({"secretRef": {"name": "prod"}});
    for (given, new, verdict) in [
        (first(), json!({"releaseName": "web"}), refused("duplicate-release")),
        (first(), json!({"releaseName": "web", "targetNamespace": "prod"}), refused("duplicate-release")),
        (first(), json!({"releaseName": "other"}), Ok(())),
        (first(), json!({"releaseName": "web", "storageNamespace": "records"}), Ok(())),
        (first(), json!({"releaseName": "web", "suspend": true}), Ok(())),
        (first(), json!({"releaseName": "web", "kubeConfig": kube_config}), Ok(())),
        (helm_release("web", json!({"suspend": true})), json!({"releaseName": "web"}), Ok(())),
        (helm_release("web", json!({"kubeConfig": kube_config})), json!({"releaseName": "web"}), Ok(())),
        (
            helm_release("web", json!({"kubeConfig": kube_config})),
            json!({"releaseName": "web", "kubeConfig": kube_config}),
            refused("duplicate-release"),
        ),
        // One cluster in two spellings.
        (
            helm_release("web", json!({"kubeConfig": kube_config})),
            json!({"releaseName": "web", "kubeConfig": {"secretRef": {"name": "prod", "key": "value"}}}),
            refused("duplicate-release"),
        ),
        (
            helm_release("web", json!({"kubeConfig": kube_config})),
            json!({"releaseName": "web", "kubeConfig": {"secretRef": {"name": "prod", "key": "other"}}}),
            Ok(()),
        ),
        // The Secret of a kubeconfig is in the HelmRelease's namespace.
        (
            with(
                helm_release("web", json!({"kubeConfig": kube_config, "storageNamespace": "shop"})),
                "/metadata/namespace",
                json!("bar"),
            ),
            json!({"releaseName": "web", "kubeConfig": kube_config}),
            Ok(()),
        ),
        // Its spec names another release now, but this one is still installed.
        (
            installed(helm_release("old", json!({"releaseName": "new"}))),
            json!({"releaseName": "web"}),
            refused("duplicate-release"),
        ),
        (dying(first()), json!({"releaseName": "web"}), refused("duplicate-release")),
    ] {
        let mut cluster = Cluster::new();
        cluster.given(given.clone());
        assert_eq!(cluster.create_object("alice", helm_release("two", new.clone())), verdict, "{new} beside {given}");
    }
}

#[test]
fn only_edits_that_drive_another_release_are_checked() {
    let second = |spec: Value| helm_release("two", spec);
    let same = json!({"releaseName": "web"});
    let remote = |secret: Value| json!({"releaseName": "web", "kubeConfig": {"secretRef": secret}});
    for (old, new, verdict) in [
        (same.clone(), json!({"releaseName": "web", "values": {"a": 1}}), Ok(())),
        (json!({"releaseName": "web", "suspend": true}), same.clone(), refused("duplicate-release")),
        (json!({"releaseName": "other"}), same.clone(), refused("duplicate-release")),
        (json!({"releaseName": "web", "kubeConfig": {"a": 1}}), same.clone(), refused("duplicate-release")),
        (remote(json!({"name": "prod"})), remote(json!({"name": "prod", "key": "value"})), Ok(())),
        (same.clone(), json!({"releaseName": "web", "suspend": true}), Ok(())),
        (same.clone(), json!({"releaseName": "other"}), Ok(())),
    ] {
        let mut cluster = Cluster::new();
        cluster.given(first());
        cluster.given(second(old.clone()));
        assert_eq!(
            cluster.update_objects("alice", second(old.clone()), second(new.clone())),
            verdict,
            "{old} -> {new}"
        );
    }
    let mut cluster = Cluster::new();
    cluster.given(first());
    let (old, new) = (second(json!({"releaseName": "other"})), second(json!({"releaseName": "web"})));
    assert_eq!(cluster.update_objects("alice", dying(old.clone()), dying(new.clone())), Ok(()));
    assert_eq!(cluster.update_objects(CONTROLLER, old, new), refused("duplicate-release"), "whoever asks");
    assert_eq!(cluster.update_objects("alice", first(), helm_release("web", json!({"suspend": true}))), Ok(()));
}

#[test]
fn a_refusal_names_the_first_helm_release_and_the_way_out() {
    let mut cluster = Cluster::new();
    let made = |name: &str, at: &str| {
        with(helm_release(name, json!({"releaseName": "web"})), "/metadata/creationTimestamp", json!(at))
    };
    cluster.given(made("b", "2026-11-21T09:00:00Z"));
    cluster.given(made("a", "2026-11-21T09:30:00Z"));
    let found = cluster.findings("alice", None, Some(made("c", "2026-11-21T10:00:00Z")));
    assert_eq!(
        found,
        [
            "HelmRelease shop/c would manage release shop/web, which HelmRelease shop/b already manages: Flux would upgrade or \
          uninstall one for the other, forever. Set another releaseName, or set another storageNamespace. To move the release, \
          suspend HelmRelease shop/b with `kubectl patch helmrelease b -n shop --type merge -p \
          '{\"spec\":{\"suspend\":true}}'`, then delete it with `kubectl delete helmrelease b -n shop`, then try again: \
          Flux does nothing for a suspended HelmRelease. [duplicate-release]"
        ]
    );
    cluster.given(dying(made("b", "2026-11-21T09:00:00Z")));
    let found = cluster.findings("alice", None, Some(made("c", "2026-11-21T10:00:00Z"))).concat();
    assert!(
        found.contains("HelmRelease shop/b is uninstalling") && found.contains("Wait until that HelmRelease is gone."),
        "{found}"
    );
}

/// The answers about HelmReleases: those that drive the release, from a cache, and those in each namespace, from the API server.
struct Known<'a> {
    driving: &'a [Value],
    stored: &'a [(&'a str, Value)],
}

/// The findings for a write of a HelmRelease, and its queries.
fn found(known: &Known<'_>, old: Option<&Value>, new: &Value) -> (Vec<String>, Vec<Query>) {
    let request = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": if old.is_some() { "UPDATE" } else { "CREATE" }, "name": new["metadata"]["name"],
            "namespace": new["metadata"]["namespace"], "userInfo": {"username": "alice"},
            "kind": {"group": "helm.toolkit.fluxcd.io", "version": "v2", "kind": "HelmRelease"},
            "resource": {"group": "helm.toolkit.fluxcd.io", "version": "v2", "resource": "helmreleases"},
            "oldObject": old, "object": new,
        },
    });
    let body = serde_json::to_vec(&request).unwrap();
    let review = Review::parse(&body).unwrap();
    let (objects, bodies) = (RequestObjects::read(&review.request).unwrap(), RecordBodies::default());
    let effort = Effort::of_review();
    let facts = Facts::of(&review.request, &objects, &bodies, &effort);
    let driver = |object: &Value| Driver::from(&serde_json::from_value(object.clone()).unwrap());
    let mut asked = Vec::new();
    let found = decided(&facts, &Policy::shipped().unwrap(), |query| {
        let answer = match query {
            Query::HelmReleases(it) => it.answered(Ok(known.driving.iter().map(driver).collect())),
            Query::HelmReleasesIn(it) => {
                let here = known.stored.iter().filter(|(at, _)| *at == it.namespace);
                it.answered(here.map(|(_, object)| driver(object)).collect())
            }
            Query::Overrides(it) => return it.answered(Vec::new()),
            query => panic!("{query:?}"),
        };
        asked.push(query.clone());
        answer
    });
    (found.iter().map(|found| found.violation.message()).collect(), asked)
}

fn driving(namespace: &str, release: &str) -> Query {
    question::HelmReleases::of(namespace, release, &crate::release::Stamps::default()).into()
}

fn stored_in(namespace: &str) -> Query {
    question::HelmReleasesIn { namespace: namespace.to_owned() }.into()
}

#[test]
fn edits_without_another_release_need_no_query() {
    let nothing = Known { driving: &[], stored: &[] };
    let asked = |new: &Value| found(&nothing, Some(&first()), new).1;
    assert_eq!(asked(&with(first(), "/metadata/labels", json!({"team": "blue"}))), []);
    assert_eq!(asked(&helm_release("web", json!({"values": {"a": 1}}))), []);
    let other = helm_release("web", json!({"releaseName": "other"}));
    assert_eq!(asked(&other), [driving("shop", "other"), stored_in("shop")]);
}

#[test]
fn uncached_helm_releases_are_read_before_a_second_passes() {
    let second = helm_release("two", json!({"releaseName": "web"}));
    let fresh = Known { driving: &[], stored: &[("shop", first())] };
    let (text, asked) = found(&fresh, None, &second);
    assert!(text.concat().contains("which HelmRelease shop/web already manages"), "{text:?}");
    assert_eq!(asked, [driving("shop", "web"), stored_in("shop")]);
    // Neither the HelmRelease itself nor one of another release is a duplicate.
    let stored = [("shop", second.clone()), ("shop", helm_release("three", json!({})))];
    assert_eq!(found(&Known { driving: &[], stored: &stored }, None, &second).0, [""; 0]);
    // A HelmRelease that the cache already has needs no list.
    let seen = Known { driving: &[first()], stored: &[] };
    let (text, asked) = found(&seen, None, &second);
    assert_eq!((text.len(), asked), (1, vec![driving("shop", "web")]));
    // The records may be in another namespace. HelmReleases in that namespace have a claim.
    let records = helm_release("two", json!({"releaseName": "web", "storageNamespace": "records"}));
    let theirs = with(helm_release("web", json!({})), "/metadata/namespace", json!("records"));
    let (text, asked) = found(&Known { driving: &[], stored: &[("records", theirs)] }, None, &records);
    assert_eq!((text.len(), asked), (1, vec![driving("records", "web"), stored_in("shop"), stored_in("records")]));
    // A suspended HelmRelease does not start to drive.
    let idle = helm_release("two", json!({"releaseName": "web", "suspend": true}));
    assert_eq!(found(&fresh, None, &idle), (Vec::new(), Vec::new()));
}

#[test]
fn deleting_one_of_two_is_warned_of() {
    let second = || helm_release("two", json!({"releaseName": "web"}));
    let suspended = |object: Value| with(object, "/spec/suspend", json!(true));
    let elsewhere = || {
        with(
            helm_release("two", json!({"releaseName": "web", "storageNamespace": "shop"})),
            "/metadata/namespace",
            json!("bar"),
        )
    };
    for (other, deleted, warned) in [
        (second(), first(), true),
        (second(), installed(first()), true),
        // It may resume and take over the release.
        (suspended(second()), first(), true),
        (installed(helm_release("old", json!({"releaseName": "new"}))), first(), true),
        (installed(elsewhere()), first(), false),
        (helm_release("two", json!({})), first(), false),
        (second(), suspended(first()), false),
        (second(), dying(first()), false),
        (dying(second()), first(), false),
        (
            helm_release("two", json!({"releaseName": "web", "kubeConfig": {"secretRef": {"name": "a"}}})),
            first(),
            false,
        ),
        // Naming a release of another namespace is not a claim. A status is not a claim either.
        (elsewhere(), first(), false),
    ] {
        let mut cluster = Cluster::new();
        cluster.given(other.clone());
        let text = cluster.findings("alice", Some(deleted.clone()), None).concat();
        let text = text.split_once(" [duplicate-release]").map(|(text, _)| text).unwrap_or_default();
        assert_eq!(!text.is_empty(), warned, "{deleted} beside {other}: {text}");
        assert!(
            !warned || text.contains("Flux uninstalls the release of both. To keep the release, first suspend"),
            "{text}"
        );
        assert_eq!(cluster.delete_object("alice", deleted), Ok(()), "a way out of the fight");
    }
}
