//! Profiles that contest a release, and misleading evidence.

use serde_json::json;

use super::*;

#[test]
fn a_conflict_that_ends_the_walk_excuses_no_other_release() {
    let mut shop = Shop::new();
    shop.releases(json!([conflict("web"), managing("cache"), managing("db")]));
    let texts = ["leaves out releases shop/cache and shop/db", "shop/web: another profile manages it"];
    shop.create(&group(&[])).refused(&["dropped-bundles"], &texts);
    shop.update(&shop.complete(), &group(&[])).refused(&["dropped-bundles"], &texts);
}

#[test]
fn a_chart_after_a_skipped_conflict_may_render_to_nothing() {
    let mut shop = Shop::new();
    shop.change("/spec/clusterProfileSpec/continueOnConflict", true.into());
    shop.releases(json!([conflict("web"), managing("cache"), managing("db")]));
    let short = group(&shop.stage("db", 3));
    shop.create(&short).refused(&["dropped-bundles"], &["No chart is reported as failed"]);
    shop.annotate_profile("shop/cache");
    shop.create(&short).admitted();
}

#[test]
fn a_release_without_a_hash_is_in_the_agents_report() {
    let mut shop = Shop::new();
    shop.releases(json!([never_staged("web"), managing("cache"), managing("db")]));
    let short = group(&[shop.stage("cache", 2), shop.stage("db", 3)].concat());
    shop.create(&short).admitted();
    let chart =
        |namespace: &str| json!([{"featureID": "Helm", "charts": [{"releaseName": "web", "namespace": namespace}]}]);
    // The new release failed that replaces one in another namespace.
    shop.delivered(chart("bar"));
    shop.create(&short)
        .refused(&["dropped-bundles"], &["no longer contains release bar/web, while release shop/web is not"]);
    shop.delivered(chart("shop"));
    shop.create(&short).refused(&["dropped-bundles"], &["shop/web"]);
}

#[test]
fn a_release_without_a_hash_is_in_the_previous_group() {
    let mut shop = Shop::new();
    shop.releases(json!([never_staged("web"), managing("cache"), managing("db")]));
    let short = group(&[shop.stage("cache", 2), shop.stage("db", 3)].concat());
    shop.update(&shop.complete(), &short).refused(&["dropped-bundles"], &["shop/web"]);
    // Another profile may have removed them in the meantime.
    let complete = shop.complete();
    shop.remove(LIB, "ConfigurationBundle", "config-web-0");
    shop.update(&complete, &short).admitted();
}

#[test]
fn a_hash_of_a_staged_chart_counts_as_delivered() {
    let mut shop = Shop::new();
    shop.charts(json!([chart("web"), chart("cache2")]));
    shop.releases(json!([managing("web"), managing("cache2")]));
    shop.create(&group(&shop.stage("web", 1))).refused(&["dropped-bundles"], &["shop/cache2"]);
}

#[test]
fn a_briefly_missing_entry_still_requires_its_release() {
    let mut shop = Shop::new();
    let complete = shop.complete();
    shop.releases(json!([managing("db"), managing("cache")]));
    shop.create(&complete).admitted();
    // A chart that fails at that moment. It was delivered, according to the agent.
    shop.delivered(json!([{"featureID": "Helm", "charts": [{"releaseName": "web", "namespace": "shop"}]}]));
    let short = group(&[shop.stage("cache", 2), shop.stage("db", 3)].concat());
    shop.create(&short).refused(&["dropped-bundles"], &["leaves out release shop/web:"]);
}

#[test]
fn a_rivals_release_is_not_required_before_the_handover() {
    let mut shop = Shop::new();
    shop.charts(json!([chart("web")]));
    let delivered = json!([{"clusterProfileName": "rival", "Features": [
        {"featureID": "Helm", "charts": [{"releaseName": "web", "namespace": "shop"}]},
    ]}]);
    shop.delivered_by(delivered);
    // Its entry, with the status Conflict, is missing for a moment.
    shop.releases(json!([]));
    shop.create(&group(&[])).admitted();
    shop.releases(json!([never_staged("web")]));
    shop.create(&group(&[])).refused(&["dropped-bundles"], &["shop/web"]);
}

#[test]
fn a_rivals_release_stays_the_rivals() {
    let mut shop = Shop::new();
    shop.charts(json!([chart("web"), chart("cache")]));
    shop.delivered_by(json!([{"clusterProfileName": "rival", "Features": [
        {"featureID": "Helm", "charts": [{"releaseName": "web", "namespace": "shop"}]},
    ]}]));
    shop.releases(json!([managing("cache")]));
    shop.create(&group(&shop.stage("cache", 2))).admitted();
}

/// Names of releases that are templates.
fn templated(release: &str, action: &str) -> Value {
    let name = format!("{{{{ .Cluster.metadata.labels.{release} }}}}");
    json!({"releaseName": name, "releaseNamespace": "shop", "helmChartAction": action})
}

#[test]
fn a_templated_release_is_required_by_its_real_name() {
    let mut shop = Shop::new();
    shop.charts(json!([templated("web", "Install"), chart("cache"), chart("db")]));
    shop.create(&shop.complete()).admitted();
    let short = group(&[shop.stage("cache", 2), shop.stage("db", 3)].concat());
    shop.create(&short).refused(&["dropped-bundles"], &["leaves out release shop/web:"]);
}

#[test]
fn a_templated_chart_to_uninstall_is_found_by_position() {
    let mut shop = Shop::new();
    shop.charts(json!([chart("web"), templated("cache", "Uninstall"), chart("db")]));
    let rest = group(&[shop.stage("web", 1), shop.stage("db", 3)].concat());
    shop.create(&rest).admitted();
    // The lists do not match, in their order or their length, so the entry cannot belong to a chart that stays.
    shop.releases(json!([managing("db"), managing("cache"), managing("web")]));
    shop.create(&rest).admitted();
    shop.releases(json!([managing("cache"), managing("db")]));
    shop.create(&rest).admitted();
    // But it can belong to a chart whose name is a template.
    shop.charts(json!([templated("web", "Install"), templated("cache", "Uninstall"), chart("db")]));
    shop.create(&rest).refused(&["dropped-bundles"], &["leaves out release shop/cache:"]);
    // In a shorter list positions prove nothing, even if every chart matches the entry at its position.
    shop.releases(json!([managing("db"), managing("cache")]));
    shop.create(&rest).refused(&["dropped-bundles"], &["leaves out release shop/cache:"]);
    shop.releases(json!([managing("web"), managing("cache"), managing("db")]));
    shop.create(&rest).admitted();
    shop.releases(json!([managing("cache"), managing("db")]));
    // It is still found by its name.
    shop.charts(json!([chart("web"), uninstall("cache"), chart("db")]));
    shop.create(&rest).admitted();
}
