//! Objects of other versions, and missing answers.

use serde_json::json;

use super::*;

#[test]
fn a_group_of_another_shape_is_undecided() {
    let shop = Shop::new();
    let judged = shop.create(&with(&group(&[]), "dryRun", "perhaps"));
    let rules: Vec<_> = judged.outcome.violations.iter().map(|judged| judged.violation.rule.as_str()).collect();
    assert_eq!(
        (judged.outcome.allowed, rules),
        (true, vec!["dropped-bundles", "dangling-bundle", "remove-while-live"])
    );
    for items in [json!("all"), json!([{"ref": "x"}]), json!([{"contentRef": {"kind": "OCIArtifact", "name": "x"}}])] {
        let judged = shop.create(&with(&group(&[]), "configurationItem", items));
        let reason = &judged.outcome.violations[0].violation;
        assert!(judged.outcome.allowed && reason.sentence.contains("list of bundles cannot be parsed"), "{reason:?}");
    }
}

#[test]
fn unknown_fields_are_skipped() {
    let mut shop = Shop::new();
    shop.change("/spec/transitionFrom", json!({"kind": "ClusterProfile"}));
    shop.change(
        "/status/helmReleaseSummaries/0",
        json!({
            "releaseName": "web", "releaseNamespace": "shop", "status": "Managing", "needsRedeploy": true,
            "valuesHash": null, "failureMessage": null,
        }),
    );
    let complete = with(&shop.complete(), "transitionFrom", json!({"name": "x"}));
    shop.create(&complete).admitted();
}

#[test]
fn a_bundle_that_is_named_twice_is_read_once() {
    let shop = Shop::new();
    let twice = [shop.stage("web", 1), shop.stage("web", 1), shop.stage("cache", 2), shop.stage("db", 3)].concat();
    let judged = shop.create(&group(&twice));
    judged.admitted();
    assert!(judged.asked.iter().any(|query| matches!(query, Query::Bundles(named) if named.0.len() == 6)));
}

#[test]
fn unparsable_objects_leave_the_rule_undecided() {
    let shop = Shop::new();
    shop.objects.put(ObjectKey::new(LIB, "ConfigurationBundle", "civ", "config-odd"), json!({"spec": 7}).to_string());
    let judged = shop.create(&group(&["config-odd".to_owned()]));
    let rules: Vec<_> = judged.outcome.violations.iter().map(|judged| judged.violation.rule.as_str()).collect();
    assert_eq!((judged.outcome.allowed, rules), (true, vec!["dropped-bundles", "dangling-bundle"]));
    let warnings = judged.outcome.warnings.join(" ");
    let unwrapped = warnings.replace("interlock: ", "");
    assert!(unwrapped.contains("civ/config-odd") && unwrapped.contains("Update Interlock"), "{warnings}");
}
