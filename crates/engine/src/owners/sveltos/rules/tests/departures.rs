//! What a commit removes that the profile no longer wants, while something that it wants is missing.

use serde_json::json;

use super::*;

const REFUSED: &[&str] = &["dropped-bundles"];

/// The same chart under another name, in another namespace, or from another repository.
fn chart_of(chart_name: &str, release: &str, namespace: &str, action: &str) -> Value {
    json!({
        "repositoryURL": "https://charts.example.com", "chartName": chart_name, "releaseName": release,
        "releaseNamespace": namespace, "helmChartAction": action,
    })
}

fn installed(releases: &[&str]) -> Value {
    let charts: Vec<_> = releases.iter().map(|name| json!({"releaseName": name, "namespace": "shop"})).collect();
    json!([{"featureID": "Helm", "charts": charts}])
}

/// A profile that had the chart nginx as shop/web, which was delivered, and has these charts now. None of them is staged.
fn had_web(charts: &[Value]) -> Shop {
    let mut shop = Shop::new();
    shop.delivered(installed(&["web"]));
    shop.charts(charts.into());
    let entries: Vec<_> = charts
        .iter()
        .map(|chart| json!({"releaseName": chart["releaseName"], "releaseNamespace": chart["releaseNamespace"], "status": "Managing"}))
        .collect();
    shop.releases(entries.into());
    shop
}

#[test]
fn a_removal_waits_until_its_replacement_is_staged() {
    for (name, replacement) in [
        ("a rename", chart_of("nginx", "web2", "shop", "Install")),
        ("another namespace", chart_of("nginx", "web", "front", "Install")),
        ("another chart", chart_of("traefik", "edge", "shop", "Install")),
    ] {
        let shop = had_web(std::slice::from_ref(&replacement));
        let text = "no longer contains release shop/web, while release";
        let command = "kubectl annotate clusterprofile shop --overwrite 'interlock.dev/allow-removal=shop/web'";
        shop.create(&group(&[])).refused(REFUSED, &[text, "not staged", command]);
        assert!(shop.create(&group(&[])).asked_for("SveltosCluster"), "{name}");
        // Once it is staged, the old release may go.
        let name = replacement["releaseName"].as_str().unwrap();
        let namespace = replacement["releaseNamespace"].as_str().unwrap();
        let bundle =
            json!({"helmReleaseNamespace": namespace, "helmReleaseName": name, "isLastHelmReleaseBundle": true});
        let staged = shop.indexed("new", Some("a-b-c-0"), bundle);
        shop.create(&group(&[staged])).admitted();
    }
}

#[test]
fn a_removal_by_name_passes_unless_the_same_chart_is_missing() {
    let gone = chart_of("nginx", "web", "shop", "Uninstall");
    had_web(&[gone.clone(), chart_of("redis", "cache", "shop", "Install")]).create(&group(&[])).admitted();
    let renamed = had_web(&[gone.clone(), chart_of("nginx", "web2", "shop", "Install")]);
    renamed.create(&group(&[])).refused(REFUSED, &["no longer contains release shop/web"]);
    // Nothing is missing.
    had_web(&[gone]).create(&group(&[])).admitted();
    had_web(&[]).create(&group(&[])).admitted();
}

#[test]
fn a_removal_that_people_allow_passes() {
    let renamed = || had_web(&[chart_of("nginx", "web2", "shop", "Install")]);
    let shop = renamed();
    shop.annotate_profile_with("interlock.dev/allow-removal", "shop/other");
    let both = "interlock.dev/allow-removal=shop/other,shop/web";
    shop.create(&group(&[])).refused(REFUSED, &[both]);
    shop.annotate_profile_with("interlock.dev/allow-removal", "shop/other, shop/web");
    shop.create(&group(&[])).admitted();
    let mut on_summary = renamed();
    on_summary.change("/metadata/annotations", json!({"interlock.dev/allow-removal": "shop/web"}));
    on_summary.create(&group(&[])).admitted();
    // The withdrawal of the whole profile needs no annotation.
    let mut withdrawn = renamed();
    withdrawn.change("/metadata/deletionTimestamp", "2026-11-21T10:00:00Z".into());
    withdrawn.create(&group(&[])).admitted();
}

#[test]
fn what_another_profile_manages_now_is_not_removed() {
    let shop = had_web(&[chart_of("nginx", "web2", "shop", "Install")]);
    let of = |profile: &str| json!({"clusterProfileName": profile, "Features": installed(&["web"])});
    shop.delivered_by(json!([of("shop"), of("rival")]));
    shop.create(&group(&[])).refused(REFUSED, &["shop/web"]);
    let summary = |status: &str| {
        json!({
            "apiVersion": "config.projectsveltos.io/v1beta1", "kind": "ClusterSummary",
            "metadata": {"name": "rival-sveltos-prod", "namespace": "civ"},
            "status": {"helmReleaseSummaries": [{"releaseName": "web", "releaseNamespace": "shop", "status": status}]},
        })
    };
    shop.put(&summary("Conflict"));
    shop.create(&group(&[])).refused(REFUSED, &["shop/web"]);
    shop.put(&summary("Managing"));
    shop.create(&group(&[])).admitted();
}

#[test]
fn a_release_with_a_computed_name_stays_required_without_its_entry() {
    let template = json!({"releaseName": "{{ .Cluster.metadata.name }}-web", "releaseNamespace": "shop"});
    let mut shop = Shop::new();
    shop.charts(json!([template, chart("cache")]));
    shop.delivered(installed(&["prod-web", "cache"]));
    // Another profile contests the release, so its entry is missing for a moment.
    shop.releases(json!([managing("cache")]));
    let short = group(&shop.stage("cache", 2));
    shop.create(&short).refused(REFUSED, &["leaves out release shop/prod-web"]);
    let complete = group(&[shop.stage("cache", 2), shop.stage("prod-web", 1)].concat());
    shop.create(&complete).admitted();
    // The name may have changed with the cluster.
    let renamed = group(&[shop.stage("cache", 2), shop.stage("test-web", 1)].concat());
    shop.create(&renamed).admitted();
    // Nothing of it was ever delivered, but something else would go.
    shop.delivered(installed(&["old"]));
    shop.create(&short).refused(REFUSED, &["no longer contains release shop/old, while a chart is not staged"]);
    shop.delivered(installed(&["cache"]));
    shop.create(&short).admitted();
}

#[test]
fn what_the_agent_leaves_is_not_said_to_be_removed() {
    let mut shop = Shop::new();
    shop.releases(json!([failed("web", "no such chart"), managing("cache"), managing("db")]));
    let leaves = |value: &Value| with(value, "leavePolicies", true);
    let refused = shop.create(&leaves(&group(&[])));
    refused.refused(REFUSED, &["nothing would manage any longer what was delivered to cluster civ/prod"]);
    assert!(!refused.outcome.message.contains("would remove"), "{}", refused.outcome.message);
    let remove = with(&leaves(&group(&[])), "action", "Remove");
    shop.create(&remove).refused(&["remove-while-live"], &["tells the agent to manage nothing any more"]);
}

#[test]
fn without_its_summary_only_sveltos_removes_a_profile() {
    let shop = Shop::new();
    shop.remove(CONFIG, "ClusterSummary", SUMMARY);
    let remove = with(&group(&[]), "action", "Remove");
    shop.create(&remove).admitted();
    for user in ["bob", "system:serviceaccount:civ:prod"] {
        let text = "no ClusterSummary shows that the profile was withdrawn";
        shop.create_as(user, &remove).refused(&["remove-while-live"], &[text, "does not exist"]);
    }
}

#[test]
fn the_opt_out_is_added_to_what_is_there() {
    let shop = Shop::new();
    shop.annotate_profile("shop/cache");
    let short = group(&shop.stage("db", 3));
    shop.create(&short).refused(REFUSED, &["interlock.dev/may-render-nothing=shop/cache,shop/web"]);
    shop.annotate_profile("shop/cache,shop/web");
    shop.create(&short).admitted();
}
