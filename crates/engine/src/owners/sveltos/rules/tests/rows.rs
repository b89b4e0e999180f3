//! The decision table, with a test for each row.

use serde_json::json;

use super::*;

#[test]
fn row_1_another_requestor_needs_no_read() {
    let shop = Shop::new();
    let mut other = with(&group(&[]), "sourceRef", json!({"kind": "Classifier", "name": "gpu"}));
    other["metadata"]["labels"]["pullmode.projectsveltos.io/requestorkind"] = "Classifier".into();
    shop.create(&other).admitted().without_a_read();
    other["metadata"].as_object_mut().unwrap().remove("labels");
    shop.create(&other).admitted().without_a_read();
}

#[test]
fn row_2_an_unchanged_spec_needs_no_read() {
    let shop = Shop::new();
    let bad = group(&[]);
    shop.update(&bad, &with_finalizer(&bad)).admitted().without_a_read();
    shop.update(&bad, &bad).admitted().without_a_read();
    let mut dying = with_finalizer(&bad);
    dying["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z".into();
    shop.update(&with(&dying, "tier", 1), &dying).refused(&["dropped-bundles"], &["leaves out releases"]);
    // The agent takes its finalizer off.
    let mut gone = dying.clone();
    gone["metadata"].as_object_mut().unwrap().remove("finalizers");
    shop.update(&dying, &gone).admitted().without_a_read();
}

#[test]
fn row_3_preparing_with_the_same_list_needs_no_read() {
    let shop = Shop::new();
    let (complete, bad) = (shop.complete(), group(&[]));
    for ready in [&complete, &bad] {
        shop.update(ready, &with(ready, "updatePhase", "Preparing")).admitted().without_a_read();
    }
    // Sveltos never does this. It is checked as if it were Ready.
    shop.update(&complete, &with(&bad, "updatePhase", "Preparing")).refused(&["dropped-bundles"], &["shop/web"]);
}

#[test]
fn row_4_remove_requires_a_deleted_summary() {
    let mut shop = Shop::new();
    let remove = with(&group(&[]), "action", "Remove");
    let texts = [
        "The Helm commit of ClusterSummary civ/shop-sveltos-prod for ClusterProfile shop tells the agent to remove everything",
        "though ClusterSummary civ/shop-sveltos-prod is not being deleted. Delete the profile",
        "interlock override civ/shop-sveltos-prod.helm --rule remove-while-live",
    ];
    shop.create(&remove).refused(&["remove-while-live"], &texts);
    shop.update(&shop.complete(), &remove).refused(&["remove-while-live"], &texts);
    // The group's own claim proves nothing.
    let deleted = with(&remove, "sourceStatus", "Deleted");
    shop.create(&deleted).refused(&["remove-while-live"], &texts);
    shop.create(&with(&deleted, "dryRun", true)).refused(&["remove-while-live"], &texts);
    for feature in ["Resources", "Kustomize"] {
        shop.create(&of_feature(deleted.clone(), feature)).refused(&["remove-while-live"], &[feature]);
    }
    shop.change("/metadata/deletionTimestamp", "2026-11-21T10:00:00Z".into());
    for feature in ["Helm", "Resources", "Kustomize"] {
        shop.create(&of_feature(deleted.clone(), feature)).admitted();
        shop.create(&of_feature(remove.clone(), feature)).admitted();
    }
    shop.remove(CONFIG, "ClusterSummary", SUMMARY);
    shop.create(&remove).admitted();
    shop.create(&deleted).admitted();
}

#[test]
fn row_5_a_dry_run_needs_no_read() {
    let shop = Shop::new();
    shop.create(&with(&group(&[]), "dryRun", true)).admitted().without_a_read();
    shop.create(&with(&group(&shop.stage("web", 1)), "dryRun", true)).admitted().without_a_read();
}

#[test]
fn row_6_a_teardown_may_have_only_hooks_or_nothing() {
    let mut shop = Shop::new();
    let deleted = |group: &Value| with(group, "sourceStatus", "Deleted");
    shop.create(&deleted(&group(&[]))).refused(&["dropped-bundles"], &["shop/web"]);
    shop.change("/metadata/deletionTimestamp", "2026-11-21T10:00:00Z".into());
    let hook = json!({"helmReleaseNamespace": "shop", "helmReleaseName": "db", "helmReleaseUninstall": true});
    let hooks = group(&[shop.bundle("hook", hook)]);
    // Bundles are deleted before their group. A handover to another profile has the lowest priority.
    let gone = group(&["config-gone".to_owned()]);
    let over = with(&group(&[]), "tier", i32::MAX);
    for teardown in [&hooks, &group(&[]), &gone, &over] {
        shop.create(teardown).admitted();
        shop.create(&deleted(teardown)).admitted();
    }
    shop.remove(CONFIG, "ClusterSummary", SUMMARY);
    shop.create(&deleted(&hooks)).admitted();
}

#[test]
fn row_7_without_summary_or_agent_nothing_is_refused() {
    let shop = Shop::new();
    shop.remove(CONFIG, "ClusterSummary", SUMMARY);
    let gone = shop.create(&group(&[]));
    gone.warned("dropped-bundles", &["ClusterSummary civ/shop-sveltos-prod does not exist"]);

    let mut shop = Shop::new();
    shop.put(&json!({
        "apiVersion": "lib.projectsveltos.io/v1beta1", "kind": "SveltosCluster",
        "metadata": {"name": "prod", "namespace": "civ"}, "spec": {"pullMode": false},
    }));
    let pushed = ["cluster civ/prod is not a SveltosCluster with spec.pullMode"];
    shop.create(&group(&[])).warned("dropped-bundles", &pushed);
    shop.remove(LIB, "SveltosCluster", "prod");
    shop.create(&group(&[])).warned("dropped-bundles", &pushed);
    shop.change("/spec/clusterType", "Capi".into());
    shop.create(&group(&[])).warned("dropped-bundles", &pushed);
    // A SveltosCluster with the same name is a different cluster.
    shop.put(&json!({
        "apiVersion": "lib.projectsveltos.io/v1beta1", "kind": "SveltosCluster",
        "metadata": {"name": "prod", "namespace": "civ"}, "spec": {"pullMode": true},
    }));
    shop.create(&group(&[])).warned("dropped-bundles", &pushed);
    // A complete commit needs no agent.
    shop.create(&shop.complete()).admitted();
}

#[test]
fn row_8_a_commit_with_every_release_passes_with_two_reads() {
    let mut shop = Shop::new();
    let complete = shop.complete();
    assert_eq!(shop.create(&complete).admitted().asked.len(), 2);
    // An upgrade renders fewer bundles.
    let fewer = group(&[shop.stage("web", 1), shop.stage("cache", 1), shop.stage("db", 1)].concat());
    shop.update(&complete, &fewer).admitted();
    // The last chart is removed from the profile, so nothing is required.
    shop.charts(json!([]));
    shop.releases(json!([]));
    assert_eq!(shop.update(&fewer, &group(&[])).admitted().asked.len(), 1);
    shop.create(&group(&[])).admitted();
}

#[test]
fn row_9_a_delivered_release_that_is_missing_is_refused() {
    let mut shop = Shop::new();
    shop.releases(json!([managing("web"), failed("cache", "cache: missing\n  required value"), managing("db")]));
    let partial = group(&shop.stage("web", 1));
    let texts = [
        "The Helm commit of ClusterSummary civ/shop-sveltos-prod for ClusterProfile shop leaves out releases shop/cache and shop/db",
        "remove what was delivered to cluster civ/prod",
        "shop/cache: its chart fails.",
        "Nothing was changed on the cluster. Sveltos retries within a minute.",
        "[dropped-bundles]",
    ];
    let refused = shop.create(&partial);
    refused.refused(&["dropped-bundles"], &texts);
    // The hash is enough evidence, and a failed chart needs no opt-out.
    assert!(refused.asked_for("SveltosCluster") && !refused.asked_for("ClusterConfiguration"));
    assert!(!refused.asked_for("ClusterProfile"));
}

#[test]
fn row_10_a_first_install_may_be_incomplete_by_default() {
    let entries = json!([never_staged("web"), never_staged("cache"), never_staged("db")]);
    let mut shop = Shop::new();
    shop.releases(entries.clone());
    shop.create(&group(&[])).admitted();
    shop.create(&group(&shop.stage("web", 1))).admitted();
    let mut strict = Shop::under("firstInstall: deny");
    strict.releases(entries);
    let refused = strict.create(&group(&strict.stage("web", 1)));
    refused.refused(
        &["dropped-bundles"],
        &["leaves out releases shop/cache and shop/db, never delivered to cluster civ/prod"],
    );
    strict.create(&strict.complete()).admitted();
}

#[test]
fn row_11_a_bundle_that_does_not_exist_is_refused() {
    let shop = Shop::new();
    let complete = shop.complete();
    shop.remove(LIB, "ConfigurationBundle", "config-cache-0");
    let texts = [
        "shop/cache (1 of its bundles)",
        "names bundles that do not exist: config-cache-0.",
        "Write the bundles first",
    ];
    shop.create(&complete).refused(&["dropped-bundles", "dangling-bundle"], &texts);
    shop.remove(LIB, "ConfigurationBundle", "config-cache-1");
    shop.create(&complete)
        .refused(&["dropped-bundles", "dangling-bundle"], &["shop/cache", "config-cache-0 and config-cache-1"]);
}

#[test]
fn row_12_a_release_removed_from_the_profile_is_not_required() {
    let mut shop = Shop::new();
    let complete = shop.complete();
    shop.charts(json!([chart("web"), chart("cache")]));
    shop.releases(json!([managing("web"), managing("cache")]));
    let shrunk = group(&[shop.stage("web", 1), shop.stage("cache", 2)].concat());
    shop.create(&shrunk).admitted();
    shop.update(&complete, &shrunk).admitted();
}

#[test]
fn row_13_a_release_of_another_profile_is_not_required() {
    let mut shop = Shop::new();
    shop.releases(json!([conflict("web"), managing("cache"), managing("db")]));
    let rest = [shop.stage("cache", 2), shop.stage("db", 3)].concat();
    shop.create(&group(&rest)).admitted();
    // The entry may be older than the bundle.
    shop.create(&group(&[shop.stage("web", 1), rest].concat())).admitted();
}

#[test]
fn row_14_the_deletion_of_a_group_is_not_judged() {
    let shop = Shop::new();
    shop.judge(CONTROLLER, "DELETE", Some(&shop.complete()), None).admitted().without_a_read();
}

#[test]
fn row_15_the_deletion_of_a_bundle_is_not_judged() {
    let shop = Shop::new();
    let bundle =
        json!({"kind": "ConfigurationBundle", "metadata": {"name": "config-web-0", "namespace": "civ"}, "spec": {}});
    shop.judge(CONTROLLER, "DELETE", Some(&bundle), None).admitted().without_a_read();
}

#[test]
fn row_16_the_writing_of_a_bundle_is_not_judged() {
    let shop = Shop::new();
    let bundle = |text: &str| {
        let metadata = json!({"name": "config-web-0", "namespace": "civ"});
        json!({"kind": "ConfigurationBundle", "metadata": metadata, "spec": {"resources": [text]}})
    };
    shop.create(&bundle("a")).admitted().without_a_read();
    shop.update(&bundle("a"), &bundle("b")).admitted().without_a_read();
}
