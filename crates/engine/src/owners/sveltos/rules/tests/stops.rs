//! What ends the walk over the charts, and the ways out.

use serde_json::json;

use super::*;

#[test]
fn a_chart_before_a_conflict_may_render_to_nothing() {
    let mut shop = Shop::new();
    shop.releases(json!([managing("web"), managing("cache"), conflict("db")]));
    let short = group(&shop.stage("web", 1));
    shop.create(&short)
        .refused(&["dropped-bundles"], &["leaves out release shop/cache:", "may-render-nothing: shop/cache"])
        .refused(
            &["dropped-bundles"],
            &["(`kubectl annotate clusterprofile shop --overwrite 'interlock.dev/may-render-nothing=shop/cache'`)"],
        );
    shop.annotate_profile("shop/cache");
    shop.create(&short).admitted();
    // A chart after it was never rendered.
    shop.annotate_profile("shop/db");
    shop.releases(json!([managing("web"), conflict("cache"), managing("db")]));
    shop.create(&short).refused(&["dropped-bundles"], &["leaves out release shop/db:"]);
}

#[test]
fn the_order_is_that_of_the_charts_not_of_the_entries() {
    let mut shop = Shop::new();
    shop.annotate_profile("shop/cache");
    shop.releases(json!([conflict("db"), managing("web"), managing("cache")]));
    shop.create(&group(&shop.stage("web", 1))).admitted();
    shop.charts(json!([chart("db"), chart("cache"), chart("web")]));
    shop.create(&group(&shop.stage("web", 1))).refused(&["dropped-bundles"], &["leaves out release shop/cache:"]);
    // Templates make the order uncertain.
    let templated = json!({"releaseName": "{{ .Cluster.metadata.name }}", "releaseNamespace": "shop"});
    shop.charts(json!([templated, templated]));
    shop.create(&group(&shop.stage("web", 1))).refused(&["dropped-bundles"], &["leaves out release shop/cache:"]);
}

#[test]
fn a_conflict_is_resolved_in_one_of_the_profiles() {
    let mut shop = Shop::new();
    shop.releases(json!([conflict("web"), managing("cache"), managing("db")]));
    let refused = shop.create(&group(&[]));
    refused.refused(&["dropped-bundles"], &["To end the conflict over shop/web, take the chart out of one profile."]);
    assert!(!refused.outcome.message.contains("once every chart renders"), "{}", refused.outcome.message);
    shop.change("/spec/clusterProfileSpec/continueOnConflict", true.into());
    shop.releases(json!([conflict("web"), failed("cache", "no such chart"), managing("db")]));
    let refused = shop.create(&group(&[]));
    refused.refused(&["dropped-bundles"], &["once every chart renders"]);
    assert!(!refused.outcome.message.contains("one profile"), "{}", refused.outcome.message);
}

#[test]
fn three_charts_that_fail_are_named_and_no_error_is_quoted() {
    let mut shop = Shop::new();
    shop.change("/spec/clusterProfileSpec/continueOnError", true.into());
    shop.charts(json!([chart("a"), chart("b"), chart("c"), chart("d")]));
    let failed = |name: &str| failed(name, &format!("error {name}"));
    shop.releases(json!([failed("a"), failed("b"), failed("c"), failed("d")]));
    let refused = shop.create(&group(&[]));
    let named = ["shop/a", "shop/b", "shop/c"].map(|release| format!("{release}: its chart fails"));
    let mut text: Vec<_> = named.iter().map(String::as_str).collect();
    text.push("The status of ClusterSummary civ/");
    refused.refused(&["dropped-bundles"], &text);
    let message = &refused.outcome.message;
    assert!(!message.contains("shop/d: its") && !message.contains("error"), "{message}");
}

#[test]
fn a_refusal_warns_before_sveltos_stops_trying() {
    let stopped = "Sveltos may have stopped trying: maxConsecutiveFailures is 3. Any change of the profile's spec makes it try again.";
    let retries = "Sveltos retries within a minute.";
    let mut shop = Shop::new();
    shop.create(&group(&[])).refused(&["dropped-bundles"], &[retries]);
    shop.change("/spec/clusterProfileSpec/maxConsecutiveFailures", 3.into());
    for (failures, said) in [(0, retries), (1, retries), (2, stopped), (3, stopped)] {
        let states = json!([{"featureID": "Resources", "consecutiveFailures": 9}, {"featureID": "Helm", "consecutiveFailures": failures}]);
        shop.change("/status/featureSummaries", states);
        let refused = shop.create(&group(&[]));
        refused.refused(&["dropped-bundles"], &[said]);
        assert!(
            refused.outcome.message.contains("retries") != refused.outcome.message.contains("stopped"),
            "{failures}"
        );
    }
    let complete = shop.complete();
    shop.remove(LIB, "ConfigurationBundle", "config-cache-0");
    shop.create(&complete).refused(&["dropped-bundles", "dangling-bundle"], &[stopped]);
    // There is no status yet.
    shop.change("/status/featureSummaries", json!([]));
    shop.create(&group(&[])).refused(&["dropped-bundles"], &[stopped]);
}
