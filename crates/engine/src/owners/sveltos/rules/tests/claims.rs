//! A group's own claims, set by hand or by mistake, open nothing while the ClusterSummary is live.

use serde_json::json;

use super::*;
use crate::policy::Policy;

const REQUESTOR: &str = "pullmode.projectsveltos.io/requestorname";

/// A shop whose ClusterSummary has Sveltos' labels.
fn labelled() -> Shop {
    let mut shop = Shop::new();
    shop.change("/metadata/labels", json!({"projectsveltos.io/cluster-profile-name": "shop"}));
    shop
}

/// The ClusterSummary of another profile on this cluster. It is being deleted.
fn rival(shop: &Shop, name: &str, profile: &str, cluster: &str) {
    shop.put(&json!({
        "apiVersion": "config.projectsveltos.io/v1beta1", "kind": "ClusterSummary",
        "metadata": {
            "name": name, "namespace": "civ", "labels": {"projectsveltos.io/cluster-profile-name": profile},
            "deletionTimestamp": "2026-11-21T10:00:00Z",
        },
        "spec": {"clusterNamespace": "civ", "clusterName": cluster, "clusterType": "Sveltos"},
    }));
}

fn by(requestor: &str, group: &Value) -> Value {
    let mut group = group.clone();
    group["metadata"]["annotations"][REQUESTOR] = requestor.into();
    group
}

fn labels(group: &Value, labels: Value) -> Value {
    let mut group = group.clone();
    group["metadata"]["labels"] = labels;
    group
}

#[test]
fn another_requestor_does_not_hide_the_profile() {
    let shop = labelled();
    rival(&shop, "rival-sveltos-prod", "rival", "prod");
    rival(&shop, "shop-sveltos-test", "shop", "test");
    let text = "ClusterSummary civ/shop-sveltos-prod for ClusterProfile shop";
    let opened = "override civ/shop-sveltos-prod.helm --rule";
    for requestor in ["gone", "rival-sveltos-prod", "shop-sveltos-test", "", "No Name"] {
        shop.create(&by(requestor, &group(&[]))).refused(&["dropped-bundles"], &[text, "leaves out", opened]);
        let remove = with(&by(requestor, &group(&[])), "action", "Remove");
        shop.create(&with(&remove, "sourceStatus", "Deleted")).refused(&["remove-while-live"], &[text, opened]);
        let complete = shop.create(&by(requestor, &shop.complete()));
        assert_eq!(complete.admitted().decision.object, None);
    }
    // The rival's own commits are teardowns.
    let of_rival =
        with(&by("rival-sveltos-prod", &group(&[])), "sourceRef", json!({"kind": "ClusterProfile", "name": "rival"}));
    shop.create(&of_rival).admitted();
}

#[test]
fn a_requestor_without_a_contradiction_is_believed() {
    let mut shop = Shop::new();
    shop.summary["metadata"]["name"] = "summary".into();
    shop.put(&shop.summary);
    shop.remove(CONFIG, "ClusterSummary", SUMMARY);
    shop.create(&by("summary", &group(&[])))
        .refused(&["dropped-bundles"], &["override civ/summary.helm --rule dropped-bundles"]);
    shop.change("/metadata/deletionTimestamp", "2026-11-21T10:00:00Z".into());
    shop.create(&by("summary", &group(&[]))).admitted();
    // If the right ClusterSummary does not exist, a wrong one decides nothing.
    let wrong = with(&by("summary", &group(&[])), "sourceRef", json!({"kind": "ClusterProfile", "name": "other"}));
    shop.create(&wrong).admitted();
    shop.change("/metadata/labels", json!({"projectsveltos.io/cluster-profile-name": "shop"}));
    shop.create(&wrong)
        .warned("dropped-bundles", &["ClusterSummary civ/summary does not exist, or is that of another profile"]);
}

#[test]
fn missing_or_wrong_marks_do_not_hide_the_profile() {
    let shop = labelled();
    let cluster = "pullmode.projectsveltos.io/clustername";
    let feature = "pullmode.projectsveltos.io/requestorfeature";
    let kind = "pullmode.projectsveltos.io/requestorkind";
    for marks in [
        json!({cluster: "prod"}),
        json!({cluster: "prod", feature: "Helm"}),
        json!({cluster: "prod", feature: "Helm", kind: "Classifier"}),
        json!({cluster: "prod", feature: "", kind: "ClusterSummary"}),
    ] {
        let bare = labels(&group(&[]), marks);
        shop.create(&bare).refused(&["dropped-bundles"], &["leaves out"]);
        shop.create(&with(&bare, "action", "Remove")).refused(&["remove-while-live"], &[]);
        shop.update(&bare, &with_finalizer(&bare)).admitted().without_a_read();
    }
    let unknown = of_feature(group(&[]), "helm");
    shop.create(&unknown).warned("dropped-bundles", &["a feature that Interlock does not know"]);
    shop.create(&with(&unknown, "action", "Remove")).refused(&["remove-while-live"], &[]);
    let mut nameless = group(&[]);
    nameless["metadata"].as_object_mut().unwrap().remove("annotations");
    shop.create(&nameless).refused(&["dropped-bundles"], &["ClusterSummary civ/shop-sveltos-prod"]);
    let nobody = with(&labels(&nameless, json!({kind: "ClusterSummary", feature: "Helm"})), "sourceRef", json!({}));
    let warned = shop.create(&nobody);
    warned.warned("dropped-bundles", &["ConfigurationGroup civ/config-g", "does not name its ClusterSummary"]);
}

#[test]
fn the_last_of_two_writes_is_judged() {
    let shop = labelled();
    // First a group for an unknown cluster, then the right label.
    let cluster = "pullmode.projectsveltos.io/clustername";
    let mut elsewhere = group(&[]);
    elsewhere["metadata"]["labels"][cluster] = "nowhere".into();
    shop.update(&elsewhere, &group(&[])).refused(&["dropped-bundles"], &["leaves out"]);
    // First another requestor, then another list.
    let complete = by("gone", &shop.complete());
    shop.update(&shop.complete(), &complete).admitted();
    shop.update(&complete, &by("gone", &group(&[]))).refused(&["dropped-bundles"], &["leaves out"]);
    // First a dry run, then its list without dry run, as if bundles were still missing.
    let dry = with(&group(&[]), "dryRun", true);
    let preparing = with(&group(&[]), "updatePhase", "Preparing");
    shop.update(&dry, &preparing).refused(&["dropped-bundles"], &["leaves out"]);
    shop.update(&with(&preparing, "action", "Remove"), &preparing).refused(&["dropped-bundles"], &["leaves out"]);
}

#[test]
fn a_false_name_does_not_borrow_the_override_or_the_mode_of_another() {
    let open = |release: &str| {
        let mut open = crate::rules::tests::overrides::override_of(release, &["dropped-bundles"], 30);
        open["metadata"]["namespace"] = "civ".into();
        open
    };
    let mut shop = labelled();
    rival(&shop, "rival-sveltos-prod", "rival", "prod");
    let false_name = by("rival-sveltos-prod", &group(&[]));
    shop.put(&open("rival-sveltos-prod.helm"));
    shop.create(&false_name).refused(&["dropped-bundles"], &[]);
    let head =
        "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nrules:\n  dropped-bundles: {mode: enforce, cases: [";
    let case = |release: &str| format!("{head}{{when: {{releases: ['{release}']}}, mode: off}}]}}\n");
    shop.policy = Policy::parse(&case("rival-*"), Path::new("test")).unwrap();
    shop.create(&false_name).refused(&["dropped-bundles"], &[]);
    shop.policy = Policy::parse(&case("shop-sveltos-prod.helm"), Path::new("test")).unwrap();
    shop.create(&false_name).admitted();
    shop.create(&group(&[])).admitted();
}

#[test]
fn the_command_of_a_refusal_opens_the_next_attempt() {
    let mut shop = labelled();
    shop.change("/spec/clusterProfileSpec/policyRefs", json!([{"kind": "Secret", "name": "pull"}]));
    shop.delivered(json!([{"featureID": "Resources", "resources": [{"owner": {"kind": "Secret", "name": "pull"}}]}]));
    let tried = |name: &str| {
        let mut again = group(&[]);
        again["metadata"]["name"] = name.into();
        again
    };
    let command = "interlock override civ/shop-sveltos-prod.helm --rule dropped-bundles --for 30m";
    for name in ["config-a", "config-b"] {
        let refused = shop.create(&tried(name));
        refused.refused(&["dropped-bundles"], &[command]);
        assert!(!refused.outcome.message.contains(name), "{}", refused.outcome.message);
        let Decision { object, object_uid, release, .. } = &refused.decision;
        let object = object.as_ref().map(ToString::to_string).unwrap_or_default();
        assert_eq!(object, "config.projectsveltos.io/v1beta1 ClusterSummary civ/shop-sveltos-prod");
        let release = release.as_ref().map(ToString::to_string).unwrap_or_default();
        assert_eq!((object_uid.as_str(), release.as_str()), ("", "civ/shop-sveltos-prod.helm"));
    }
    let mut open = crate::rules::tests::overrides::override_of("shop-sveltos-prod.helm", &["dropped-bundles"], 30);
    open["metadata"]["namespace"] = "civ".into();
    shop.put(&open);
    let opened = shop.create(&tried("config-c"));
    assert!(
        opened.outcome.allowed && opened.outcome.warnings[0].contains("overridden"),
        "{:?}",
        opened.outcome.warnings
    );
    shop.create(&of_feature(tried("config-d"), "Resources"))
        .refused(&["dropped-bundles"], &["override civ/shop-sveltos-prod.resources --rule dropped-bundles"]);
}
