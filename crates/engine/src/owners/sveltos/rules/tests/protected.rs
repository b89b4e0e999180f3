//! Commits of a profile must contain its protected releases.

use std::path::Path;

use serde_json::{Value, json};

use super::{Shop, chart, conflict, failed, group, managing, uninstall, with};
use crate::policy::Policy;

fn guarded(protected: &str) -> Shop {
    let text = format!(
        "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nprotected: {{{protected}}}\nrules:\n  \
         dropped-bundles: {{mode: enforce}}\n  remove-while-live: {{mode: enforce}}\n  protected-release: {{mode: enforce}}\n"
    );
    Shop { policy: Policy::parse(&text, Path::new("test")).unwrap(), ..Shop::new() }
}

fn delivered() -> Value {
    json!([{"featureID": "Helm", "charts": [
        {"releaseName": "web", "namespace": "shop"}, {"releaseName": "cache", "namespace": "shop"},
        {"releaseName": "db", "namespace": "shop"},
    ]}])
}

/// The rules that refuse a commit.
fn refusing(shop: &Shop, group: &Value) -> Vec<&'static str> {
    shop.create(group).outcome.refusals().map(|judged| judged.violation.rule.as_str()).collect()
}

/// The profile no longer has the chart `db`, and the commit has no bundle of it.
fn without_db(shop: &mut Shop) -> Value {
    shop.charts(json!([chart("web"), chart("cache")]));
    shop.releases(json!([managing("web"), managing("cache")]));
    group(&[shop.stage("web", 1), shop.stage("cache", 1)].concat())
}

#[test]
fn a_protected_release_outlives_its_chart_in_the_profile() {
    for (protected, refused) in [
        ("releases: [db]", true),
        ("namespaces: [shop]", true),
        ("releases: [other]", false),
        ("releases: [db], namespaces: [civ]", false),
    ] {
        let mut shop = guarded(protected);
        shop.delivered(delivered());
        let commit = without_db(&mut shop);
        let rules = if refused { vec!["protected-release"] } else { Vec::new() };
        assert_eq!(refusing(&shop, &commit), rules, "{protected}");
    }
    let mut shop = guarded("releases: [db]");
    shop.delivered(delivered());
    let commit = without_db(&mut shop);
    let message = shop.create(&commit).outcome.message;
    assert!(message.contains("does not contain shop/db: the agent would remove"), "{message}");
    assert_eq!(refusing(&shop, &shop.complete()), [""; 0]);
}

#[test]
fn a_protected_release_stays_for_any_reason() {
    // Another profile has taken it over.
    let mut handed_over = guarded("releases: [db]");
    handed_over.delivered(delivered());
    handed_over.releases(json!([managing("web"), managing("cache"), conflict("db")]));
    let commit = group(&[handed_over.stage("web", 1), handed_over.stage("cache", 1)].concat());
    assert_eq!(refusing(&handed_over, &commit), [""; 0]);

    let mut uninstalled = guarded("releases: [db]");
    uninstalled.charts(json!([chart("web"), chart("cache"), uninstall("db")]));
    let commit = group(&[uninstalled.stage("web", 1), uninstalled.stage("cache", 1)].concat());
    assert_eq!(refusing(&uninstalled, &commit), ["protected-release"]);

    let mut broken = guarded("releases: [db]");
    broken.releases(json!([managing("web"), managing("cache"), failed("db", "no such chart")]));
    let commit = group(&[broken.stage("web", 1), broken.stage("cache", 1)].concat());
    assert_eq!(refusing(&broken, &commit), ["protected-release", "dropped-bundles"]);

    // It was never delivered.
    let mut new = guarded("releases: [db]");
    new.releases(json!([managing("web"), managing("cache")]));
    new.charts(json!([chart("web"), chart("cache")]));
    let commit = group(&[new.stage("web", 1), new.stage("cache", 1)].concat());
    assert_eq!(refusing(&new, &commit), [""; 0]);
}

#[test]
fn the_profile_of_a_protected_release_cannot_be_removed() {
    let removal = |shop: &Shop| refusing(shop, &with(&group(&[]), "action", "Remove"));
    let mut withdrawn = guarded("releases: [db]");
    assert_eq!(removal(&withdrawn), ["protected-release", "remove-while-live"]);
    withdrawn.change("/metadata/deletionTimestamp", "2026-11-21T10:00:00Z".into());
    assert_eq!(removal(&withdrawn), ["protected-release"]);
    let empty = with(&group(&[]), "sourceStatus", "Deleted");
    assert_eq!(refusing(&withdrawn, &empty), ["protected-release"]);
    let mut other = guarded("releases: [other]");
    other.change("/metadata/deletionTimestamp", "2026-11-21T10:00:00Z".into());
    assert_eq!((removal(&other), refusing(&other, &empty)), (vec![], vec![]));
}
