//! Every way to lose running workloads. Next to each is a similar commit that is correct.

use serde_json::json;

use super::*;

const FAILURE: &str = "values don't meet the specifications of the schema(s)";

#[test]
fn an_empty_group_after_a_failed_first_chart_is_refused() {
    let mut shop = Shop::new();
    shop.releases(json!([failed("web", FAILURE), managing("cache"), managing("db")]));
    let texts = ["releases shop/web, shop/cache and shop/db", "shop/web: its chart fails"];
    shop.create(&group(&[])).refused(&["dropped-bundles"], &texts);
    let null = with(&group(&[]), "configurationItem", Value::Null);
    shop.create(&null).refused(&["dropped-bundles"], &texts);
    shop.create(&with(&group(&[]), "configurationItem", json!([]))).refused(&["dropped-bundles"], &texts);
}

#[test]
fn a_short_list_after_the_last_chart_failed_is_refused() {
    let mut shop = Shop::new();
    shop.releases(json!([managing("web"), managing("cache"), failed("db", FAILURE)]));
    let short = group(&[shop.stage("web", 1), shop.stage("cache", 2)].concat());
    shop.create(&short).refused(&["dropped-bundles"], &["leaves out release shop/db:"]);
}

#[test]
fn a_chart_without_its_last_bundle_is_refused() {
    let mut shop = Shop::new();
    shop.releases(json!([managing("web"), managing("cache"), failed("db", "the server was unable to write")]));
    let partial = [shop.stage("web", 1), shop.stage("cache", 2), shop.stage_some("db", 2, 3)].concat();
    shop.create(&group(&partial)).refused(&["dropped-bundles"], &["leaves out release shop/db (its last bundle):"]);
}

#[test]
fn a_chart_without_its_last_bundle_did_not_render_to_nothing() {
    let shop = Shop::under("unexplained: warn");
    shop.annotate_profile("shop/db");
    let partial = [shop.stage("web", 1), shop.stage("cache", 2), shop.stage_some("db", 2, 3)].concat();
    shop.create(&group(&partial)).refused(&["dropped-bundles"], &["shop/db (its last bundle)", "only in the log"]);
}

#[test]
fn an_update_of_a_rollout_in_flight_is_refused() {
    let mut shop = Shop::new();
    let complete = shop.complete();
    shop.releases(json!([managing("web"), managing("cache"), failed("db", FAILURE)]));
    let preparing = with(&complete, "updatePhase", "Preparing");
    let short = group(&[shop.stage("web", 1), shop.stage("cache", 2)].concat());
    shop.update(&preparing, &short).refused(&["dropped-bundles"], &["shop/db"]);
    // The next cycle of the same failure changes only updatePhase.
    shop.update(&with(&short, "updatePhase", "Preparing"), &short).refused(&["dropped-bundles"], &["shop/db"]);
    // Ready to Ready, from five bundles to none.
    shop.update(&complete, &group(&[])).refused(&["dropped-bundles"], &["shop/web"]);
}

#[test]
fn sveltos_own_bundles_do_not_complete_a_list() {
    let shop = Shop::new();
    let own = shop.bundle("drift", json!({"notTracked": true, "resources": ["kind: CustomResourceDefinition\n"]}));
    shop.create(&group(&[own])).refused(&["dropped-bundles"], &["shop/web, shop/cache and shop/db"]);
}

#[test]
fn hooks_of_an_uninstall_do_not_count_as_the_release() {
    let shop = Shop::new();
    let hook = json!({
        "helmReleaseNamespace": "shop", "helmReleaseName": "db", "helmReleaseUninstall": true, "isLastHelmReleaseBundle": true,
    });
    let hooked = [shop.stage("web", 1), shop.stage("cache", 2), vec![shop.bundle("hook", hook)]].concat();
    shop.create(&group(&hooked)).refused(&["dropped-bundles"], &["leaves out release shop/db:"]);
}

#[test]
fn a_namesake_in_another_namespace_does_not_count() {
    let shop = Shop::new();
    let other = json!({"helmReleaseNamespace": "bar", "helmReleaseName": "web", "isLastHelmReleaseBundle": true});
    let mixed = [vec![shop.bundle("other", other)], shop.stage("cache", 2), shop.stage("db", 3)].concat();
    shop.create(&group(&mixed)).refused(&["dropped-bundles"], &["leaves out release shop/web:"]);
}

#[test]
fn a_walk_past_an_error_omits_only_the_failed_chart() {
    let mut shop = Shop::new();
    shop.change("/spec/clusterProfileSpec/continueOnError", true.into());
    shop.releases(json!([managing("web"), failed("cache", FAILURE), managing("db")]));
    let short = group(&[shop.stage("web", 1), shop.stage("db", 3)].concat());
    shop.create(&short).refused(&["dropped-bundles"], &["leaves out release shop/cache:", "its chart fails"]);
}

#[test]
fn up_to_1_7_0_the_message_has_the_log_and_the_opt_out() {
    let shop = Shop::new();
    let short = group(&[shop.stage("web", 1), shop.stage("cache", 2)].concat());
    let refused = shop.create(&short);
    let texts = [
        "up to Sveltos 1.7.0 the error is only in the log of addon-controller",
        "annotate ClusterProfile shop with interlock.dev/may-render-nothing: shop/db",
    ];
    refused.refused(&["dropped-bundles"], &texts);
}

#[test]
fn a_recovery_passes_though_the_feature_is_still_failed() {
    let mut shop = Shop::new();
    let bad = group(&[]);
    let complete = shop.complete();
    let status = json!([{"featureID": "Helm", "status": "Failed", "failureMessage": FAILURE}]);
    shop.change("/status/featureSummaries", status);
    shop.update(&with(&bad, "updatePhase", "Preparing"), &complete).admitted();
    shop.create(&complete).admitted();
}

#[test]
fn a_chart_to_uninstall_passes_with_its_hooks_or_without() {
    let mut shop = Shop::new();
    shop.charts(json!([chart("web"), chart("cache"), uninstall("db")]));
    let rest = [shop.stage("web", 1), shop.stage("cache", 2)].concat();
    shop.create(&group(&rest)).admitted();
    let hook = json!({"helmReleaseNamespace": "shop", "helmReleaseName": "db", "helmReleaseUninstall": true});
    shop.create(&group(&[rest, vec![shop.bundle("hook", hook)]].concat())).admitted();
    shop.create(&group(&shop.stage("web", 1))).refused(&["dropped-bundles"], &["leaves out release shop/cache:"]);
}

#[test]
fn leaving_a_dry_run_is_judged_by_the_new_list() {
    let mut shop = Shop::new();
    let dry = with(&group(&[]), "dryRun", true);
    shop.update(&dry, &shop.complete()).admitted();
    shop.update(&dry, &group(&shop.stage("web", 1))).refused(&["dropped-bundles"], &["shop/cache and shop/db"]);
    // A dry run delivered nothing that it lists.
    shop.releases(json!([never_staged("web"), never_staged("cache"), never_staged("db")]));
    shop.update(&with(&shop.complete(), "dryRun", true), &group(&[])).admitted();
    shop.update(&shop.complete(), &dry).admitted().without_a_read();
}

#[test]
fn removing_the_labels_does_not_help() {
    let shop = Shop::new();
    let mut bare = group(&[]);
    let metadata = bare["metadata"].as_object_mut().unwrap();
    metadata.remove("labels");
    metadata.remove("annotations");
    shop.update(&shop.complete(), &bare).refused(&["dropped-bundles"], &["shop/web"]);
}

#[test]
fn the_opt_out_applies_only_if_no_chart_failed() {
    let mut shop = Shop::new();
    let short = group(&[shop.stage("web", 1), shop.stage("db", 3)].concat());
    shop.create(&short).refused(&["dropped-bundles"], &["shop/cache"]);
    shop.annotate_profile("shop/search , shop/cache");
    shop.create(&short).admitted();
    shop.create(&group(&shop.stage("web", 1))).refused(&["dropped-bundles"], &["leaves out release shop/db:"]);
    // A failed chart did not render to nothing, nor did the charts after it.
    for failing in ["web", "cache"] {
        let entry = |name: &str| if name == failing { failed(name, FAILURE) } else { managing(name) };
        shop.releases(json!([entry("web"), entry("cache"), entry("db")]));
        shop.create(&short).refused(&["dropped-bundles"], &["leaves out release shop/cache:", "its chart fails"]);
    }
    // The charts before it did, and it is complete itself.
    shop.releases(json!([managing("web"), managing("cache"), failed("db", FAILURE)]));
    shop.create(&short).admitted();
    shop.create(&group(&shop.stage("web", 1)))
        .refused(&["dropped-bundles"], &["leaves out release shop/db:", "its chart fails"]);

    let mut shop = Shop::new();
    let short = group(&[shop.stage("web", 1), shop.stage("db", 3)].concat());
    shop.change("/metadata/annotations", json!({"interlock.dev/may-render-nothing": "shop/cache"}));
    let judged = shop.create(&short);
    assert!(!judged.admitted().asked_for("ClusterProfile"));
    for misspelt in ["cache", "", "*", "shop/*", "bar/cache"] {
        shop.change("/metadata/annotations", json!({"interlock.dev/may-render-nothing": misspelt}));
        shop.create(&short).refused(&["dropped-bundles"], &["shop/cache"]);
    }
}

#[test]
fn a_skipped_error_explains_only_its_own_chart() {
    let mut shop = Shop::new();
    shop.charts(json!([chart("new"), chart("cache"), chart("db")]));
    let mut new = never_staged("new");
    new["failureMessage"] = FAILURE.into();
    shop.releases(json!([new, managing("cache"), managing("db")]));
    shop.annotate_profile("shop/cache");
    let short = group(&shop.stage("db", 3));
    shop.create(&short).refused(&["dropped-bundles"], &["releases shop/new and shop/cache", "its chart fails"]);
    // The first install of one chart fails, and another one renders to nothing, as allowed.
    shop.change("/spec/clusterProfileSpec/continueOnError", true.into());
    shop.create(&short).admitted();
}

#[test]
fn an_unexplained_loss_can_be_a_warning() {
    let mut shop = Shop::under("unexplained: warn");
    let short = group(&[shop.stage("web", 1), shop.stage("db", 3)].concat());
    shop.create(&short).warned("dropped-bundles", &["release shop/cache", "interlock.dev/may-render-nothing"]);
    shop.releases(json!([managing("web"), failed("cache", FAILURE), managing("db")]));
    shop.create(&short).refused(&["dropped-bundles"], &["shop/cache: its chart fails"]);
}
