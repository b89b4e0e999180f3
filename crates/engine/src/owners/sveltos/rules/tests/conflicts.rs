//! Profiles that contest a release, and evidence that is not what it seems.

use serde_json::json;

use super::*;

#[test]
fn a_conflict_that_ends_the_walk_takes_nothing_else_along() {
    let mut shop = Shop::new();
    shop.releases(json!([conflict("web"), managing("cache"), managing("db")]));
    let texts = ["leaves out releases shop/cache and shop/db", "shop/web: another profile manages it"];
    shop.create(&group(&[])).refused(&["dropped-bundles"], &texts);
    shop.update(&shop.complete(), &group(&[])).refused(&["dropped-bundles"], &texts);
}

#[test]
fn after_a_conflict_that_the_walk_went_past_a_chart_may_render_to_nothing() {
    let mut shop = Shop::new();
    shop.change("/spec/clusterProfileSpec/continueOnConflict", true.into());
    shop.releases(json!([conflict("web"), managing("cache"), managing("db")]));
    let short = group(&shop.stage("db", 3));
    shop.create(&short).refused(&["dropped-bundles"], &["No chart is reported as failed"]);
    shop.annotate_profile("shop/cache");
    shop.create(&short).admitted();
}

#[test]
fn a_delivered_release_without_a_hash_is_known_from_the_agent_s_account() {
    let mut shop = Shop::new();
    shop.releases(json!([never_staged("web"), managing("cache"), managing("db")]));
    let short = group(&[shop.stage("cache", 2), shop.stage("db", 3)].concat());
    shop.create(&short).admitted();
    let chart =
        |namespace: &str| json!([{"featureID": "Helm", "charts": [{"releaseName": "web", "namespace": namespace}]}]);
    shop.delivered(chart("bar"));
    shop.create(&short).admitted();
    shop.delivered(chart("shop"));
    shop.create(&short).refused(&["dropped-bundles"], &["shop/web"]);
}

#[test]
fn a_delivered_release_without_a_hash_is_known_from_the_group_before() {
    let mut shop = Shop::new();
    shop.releases(json!([never_staged("web"), managing("cache"), managing("db")]));
    let short = group(&[shop.stage("cache", 2), shop.stage("db", 3)].concat());
    shop.update(&shop.complete(), &short).refused(&["dropped-bundles"], &["shop/web"]);
    // Another profile may have removed them meanwhile.
    let complete = shop.complete();
    shop.remove(LIB, "ConfigurationBundle", "config-web-0");
    shop.update(&complete, &short).admitted();
}

#[test]
fn a_hash_of_what_was_only_staged_counts_as_delivered() {
    let mut shop = Shop::new();
    shop.charts(json!([chart("web"), chart("cache2")]));
    shop.releases(json!([managing("web"), managing("cache2")]));
    shop.create(&group(&shop.stage("web", 1))).refused(&["dropped-bundles"], &["shop/cache2"]);
}

#[test]
fn a_status_that_is_short_for_a_moment_does_not_make_a_release_superfluous() {
    let mut shop = Shop::new();
    let complete = shop.complete();
    shop.releases(json!([managing("db"), managing("cache")]));
    shop.create(&complete).admitted();
    // A chart that fails just then: delivered, as the agent says.
    shop.delivered(json!([{"featureID": "Helm", "charts": [{"releaseName": "web", "namespace": "shop"}]}]));
    let short = group(&[shop.stage("cache", 2), shop.stage("db", 3)].concat());
    shop.create(&short).refused(&["dropped-bundles"], &["leaves out release shop/web:"]);
}

#[test]
fn what_another_profile_has_delivered_is_not_missed_before_it_changes_hands() {
    let mut shop = Shop::new();
    shop.charts(json!([chart("web")]));
    let delivered = json!([{"clusterProfileName": "rival", "Features": [
        {"featureID": "Helm", "charts": [{"releaseName": "web", "namespace": "shop"}]},
    ]}]);
    shop.delivered_by(delivered);
    // Its entry, which says Conflict, is missing for a moment.
    shop.releases(json!([]));
    shop.create(&group(&[])).admitted();
    shop.releases(json!([never_staged("web")]));
    shop.create(&group(&[])).refused(&["dropped-bundles"], &["shop/web"]);
}

#[test]
fn another_release_of_the_profile_does_not_make_what_a_rival_delivered_its_own() {
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
fn a_release_with_a_template_for_a_name_is_required_under_its_real_name() {
    let mut shop = Shop::new();
    shop.charts(json!([templated("web", "Install"), chart("cache"), chart("db")]));
    shop.create(&shop.complete()).admitted();
    let short = group(&[shop.stage("cache", 2), shop.stage("db", 3)].concat());
    shop.create(&short).refused(&["dropped-bundles"], &["leaves out release shop/web:"]);
}

#[test]
fn a_chart_to_uninstall_with_a_template_for_a_name_is_found_by_its_position() {
    let mut shop = Shop::new();
    shop.charts(json!([chart("web"), templated("cache", "Uninstall"), chart("db")]));
    let rest = group(&[shop.stage("web", 1), shop.stage("db", 3)].concat());
    shop.create(&rest).admitted();
    // The lists do not match, of another order or of another length: no chart that is to stay can be its.
    shop.releases(json!([managing("db"), managing("cache"), managing("web")]));
    shop.create(&rest).admitted();
    shop.releases(json!([managing("cache"), managing("db")]));
    shop.create(&rest).admitted();
    // But one with a template for a name can.
    shop.charts(json!([templated("web", "Install"), templated("cache", "Uninstall"), chart("db")]));
    shop.create(&rest).refused(&["dropped-bundles"], &["leaves out release shop/cache:"]);
    // In a shorter list the positions prove nothing, even if every chart can be the entry at its own.
    shop.releases(json!([managing("db"), managing("cache")]));
    shop.create(&rest).refused(&["dropped-bundles"], &["leaves out release shop/cache:"]);
    shop.releases(json!([managing("web"), managing("cache"), managing("db")]));
    shop.create(&rest).admitted();
    shop.releases(json!([managing("cache"), managing("db")]));
    // By its name it is found all the same.
    shop.charts(json!([chart("web"), uninstall("cache"), chart("db")]));
    shop.create(&rest).admitted();
}
