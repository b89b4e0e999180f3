//! Sveltos in pull mode: commits that would remove running workloads are refused. Everything else that its controller
//! does is admitted.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::addon_controller::{AddonController, chart_of, failed, install, managing, shared};
use crate::harness::decisions::decisions;
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};
use crate::harness::webhook::{NOWHERE, register};

const ERROR: &str = "values don't meet the specifications of the schema(s) in the following chart(s): web";

fn stage_all(shop: &mut AddonController<'_>) {
    shop.discard();
    shop.stage("web", 1);
    shop.stage("cache", 2);
    shop.stage("db", 3);
}

fn all() -> [Value; 3] {
    [managing("web"), managing("cache"), managing("db")]
}

/// The warnings that kubectl printed, as one line.
fn warnings(output: &Output) -> String {
    output.stderr.replace("\nWarning: interlock: ", " ")
}

/// The reviews of groups as `OPERATION verdict`, without the first `skip`.
fn asked(namespace: &Namespace<'_>, skip: usize) -> Vec<String> {
    let groups =
        decisions(namespace).into_iter().filter(|it| it.resource == "configurationgroups.lib.projectsveltos.io");
    groups.skip(skip).map(|decision| format!("{} {}", decision.operation, decision.verdict)).collect()
}

/// The first install, until the agent has completed it: neither bundles nor group are left.
fn install_all(shop: &mut AddonController<'_>) {
    stage_all(shop);
    shop.report(&all());
    shop.commit().expect_success();
    shop.terminate();
    assert_eq!(shop.group(), None);
}

/// What a refusal says of a chart with an error.
const FAILS: &str = "its chart fails";

/// The commit is refused with these texts and with those of every dropped bundle. The error of a chart can quote a value.
#[track_caller]
fn expect_dropped(namespace: &Namespace<'_>, commit: Output, texts: &[&str]) {
    assert!(!commit.stderr.contains(ERROR), "{commit}");
    let profile = format!("ClusterProfile {}", namespace.name());
    let always = ["The request is invalid", &profile, "Sveltos retries", "[dropped-bundles]"];
    commit.expect_failure(&[&always[..], texts].concat());
}

#[test]
fn a_commit_that_would_remove_running_releases_is_refused_in_each_of_its_forms() {
    let account = shared();
    let namespace = Namespace::new(Plane::shared(), "sveltos-wipe");
    let mut shop = AddonController::new(&namespace, account, &["web", "cache", "db"]);
    install_all(&mut shop);

    // The first chart fails, and nothing is staged.
    shop.discard();
    shop.report(&[failed("web", ERROR), managing("cache"), managing("db")]);
    expect_dropped(&namespace, shop.commit(), &["releases shop/web, shop/cache and shop/db", FAILS]);
    // The last one fails.
    shop.discard();
    shop.stage("web", 1);
    shop.stage("cache", 2);
    shop.report(&[managing("web"), managing("cache"), failed("db", ERROR)]);
    expect_dropped(&namespace, shop.commit(), &["leaves out release shop/db:", FAILS]);
    // The API server fails in the middle of a chart.
    shop.stage_some("db", 2, 3);
    expect_dropped(&namespace, shop.commit(), &["leaves out release shop/db (its last bundle):", FAILS]);
    // Only Sveltos' own bundle is left; up to 1.7.0 nothing in the API says why.
    shop.discard();
    shop.stage_bundle("debugging-configuration-crd", &json!({"notTracked": true, "resources": ["kind: A\n"]}));
    shop.report(&all());
    let texts = ["only in the log of addon-controller", "interlock.dev/may-render-nothing: shop/web,"];
    expect_dropped(&namespace, shop.commit(), &texts);
    assert_eq!(shop.group(), None);
    // The chart renders again, and the commit passes.
    stage_all(&mut shop);
    shop.commit().expect_success();
    assert_eq!(shop.listed().len(), 6);
}

#[test]
fn a_rollout_in_flight_loses_no_release() {
    let account = shared();
    let namespace = Namespace::new(Plane::shared(), "sveltos-in-flight");
    let mut shop = AddonController::new(&namespace, account, &["web", "cache", "db"]);
    install_all(&mut shop);
    stage_all(&mut shop);
    shop.commit().expect_success();
    let whole = shop.listed();
    assert_eq!(whole.len(), 6);
    // A chart fails while the agent is busy.
    shop.discard();
    shop.stage("web", 1);
    shop.report(&[managing("web"), failed("cache", ERROR), managing("db")]);
    expect_dropped(&namespace, shop.commit(), &["releases shop/cache and shop/db", FAILS]);
    let group = shop.group().expect("the rollout is still there");
    assert_eq!((&group["spec"]["updatePhase"], shop.listed()), (&json!("Preparing"), whole));
    stage_all(&mut shop);
    shop.report(&all());
    shop.commit().expect_success();
    // A person removes an item by hand.
    let names = shop.listed();
    shop.write_group(&names[1..], &json!({})).expect_failure(&["leaves out release shop/web:", "[dropped-bundles]"]);
    shop.terminate();
    assert_eq!(shop.group(), None);
}

#[test]
fn a_commit_that_only_looks_like_a_loss_passes() {
    let account = shared();
    let namespace = Namespace::new(Plane::shared(), "sveltos-legal");
    let mut shop = AddonController::new(&namespace, account, &["web", "cache", "db"]);

    // A first install of which only a part renders: no release can be lost.
    let new = |release: &str| json!({"releaseName": release, "releaseNamespace": "shop", "status": "Managing"});
    shop.discard();
    shop.stage("web", 1);
    shop.report(&[managing("web"), failed("cache", ERROR), new("db")].map(|mut entry| {
        entry["valuesHash"] = json!(null);
        entry
    }));
    shop.commit().expect_success();
    // Then a complete one, and one with fewer bundles.
    stage_all(&mut shop);
    shop.report(&all());
    shop.commit().expect_success();
    shop.discard();
    for release in ["web", "cache", "db"] {
        shop.stage(release, 1);
    }
    shop.commit().expect_success();

    // A chart without hooks is to be uninstalled.
    let mut uninstalled = chart_of("db");
    uninstalled["helmChartAction"] = "Uninstall".into();
    shop.want(&json!({"helmCharts": [chart_of("web"), chart_of("cache"), uninstalled]}));
    shop.discard();
    shop.stage("web", 1);
    shop.stage("cache", 1);
    shop.commit().expect_success();
    // A chart is removed from the profile.
    shop.want(&json!({"helmCharts": [chart_of("web"), chart_of("cache")]}));
    shop.report(&[managing("web"), managing("cache")]);
    shop.commit_with(&json!({"requestorHash": "bmV3"})).expect_success();
    // Another profile has taken a release over.
    let conflict = json!({"releaseName": "web", "releaseNamespace": "shop", "status": "Conflict"});
    shop.report(&[conflict, managing("cache")]);
    shop.discard();
    shop.stage("cache", 1);
    shop.commit().expect_success();

    // A chart renders nothing, once the profile allows that.
    shop.want(&json!({"helmCharts": [chart_of("cache"), chart_of("empty")]}));
    shop.report(&[managing("cache"), managing("empty")]);
    shop.commit_with(&json!({"requestorHash": "ZW1wdHk="})).expect_failure(&["shop/empty", "may-render-nothing"]);
    let opt_out = "interlock.dev/may-render-nothing=shop/empty";
    namespace.kubectl("admin").ok(&["annotate", "clusterprofile", namespace.name(), opt_out]);
    shop.commit_with(&json!({"requestorHash": "ZW1wdHk="})).expect_success();

    // The last chart is removed.
    shop.want(&json!({"helmCharts": []}));
    shop.report(&[]);
    shop.discard();
    shop.commit().expect_success();
    shop.terminate();
    assert_eq!(shop.group(), None);
}

#[test]
fn harmless_writes_of_groups_are_not_reviewed() {
    let account = shared();
    let namespace = Namespace::new(Plane::shared(), "sveltos-quiet");
    let agent = namespace.kubectl_as(&namespace.service_account("prod"));
    let mut shop = AddonController::new(&namespace, account, &["web", "cache", "db"]);
    stage_all(&mut shop);
    shop.report(&all());
    shop.commit().expect_success();
    let seen = ["CREATE allowed".to_owned()];
    assert_eq!(asked(&namespace, 0), seen);

    // The agent's finalizer, its status, and the writes while bundles are staged.
    let name = shop.group().expect("a rollout is in flight")["metadata"]["name"].as_str().unwrap().to_owned();
    let patch = |patch: &str, more: &[&str]| {
        let args = [&["patch", "configurationgroup", &name, "--type=merge", "-p", patch], more].concat();
        agent.ok(&args);
    };
    patch(r#"{"metadata":{"finalizers":["projectsveltos.io/agent"]}}"#, &[]);
    patch(r#"{"status":{"status":"Provisioned"}}"#, &["--subresource=status"]);
    stage_all(&mut shop);
    // A dry run lists the bundles that it could render.
    shop.discard();
    shop.commit_with(&json!({"dryRun": true})).expect_success();
    // A group with a finalizer stays until the agent has seen its deletion.
    shop.terminate();
    patch(r#"{"metadata":{"finalizers":null}}"#, &[]);
    assert_eq!(shop.group(), None);
    assert_eq!(asked(&namespace, 0), seen);

    // The end of a dry run is reviewed.
    shop.write_group(&[], &json!({"dryRun": true})).expect_success();
    shop.write_group(&[], &json!({})).expect_failure(&["[dropped-bundles]"]);
    assert_eq!(asked(&namespace, 1), ["UPDATE denied"]);
}

#[test]
fn writes_of_groups_that_sveltos_does_not_make_are_refused_or_warned() {
    let account = shared();
    let namespace = Namespace::new(Plane::shared(), "sveltos-odd");
    let mut shop = AddonController::new(&namespace, account, &["web"]);
    shop.report(&[managing("web")]);
    // Bundles that are not there.
    shop.stage("web", 1);
    let missing = ["config-missing".to_owned()];
    let gone = [shop.listed(), missing.to_vec()].concat();
    shop.write_group(&gone, &json!({})).expect_failure(&["[dropped-bundles]", "config-missing", "[dangling-bundle]"]);
    // A source of Flux that is gone, and not optional.
    let mut resources = shop.of_feature("Resources");
    let source = json!({"kind": "GitRepository", "namespace": "flux", "name": "tenants"});
    shop.want(&json!({"policyRefs": [source]}));
    let from =
        json!({"resources": ["kind: A\n"], "referencedObjectKind": "GitRepository", "referencedObjectName": "tenants"});
    resources.stage_bundle("GitRepository-flux-tenants", &from);
    resources.commit().expect_success();
    resources.discard();
    resources.commit().expect_failure(&[
        "leaves out GitRepository flux/tenants",
        "optional: true",
        "[dropped-bundles]",
    ]);
    let mut optional = source;
    optional["optional"] = true.into();
    shop.want(&json!({"policyRefs": [optional]}));
    resources.commit().expect_success();

    // Without its ClusterSummary a group cannot be judged.
    namespace.kubectl("admin").ok(&["delete", "clustersummary/summary"]);
    let unknown = shop.write_group(&[], &json!({})).expect_success();
    assert!(warnings(&unknown).contains("/summary does not exist"), "{unknown}");
}

#[test]
fn a_teardown_is_proved_by_the_cluster_summary() {
    let account = shared();
    let namespace = Namespace::new(Plane::shared(), "sveltos-teardown");
    let mut shop = AddonController::new(&namespace, account, &["web"]);
    shop.stage("web", 1);
    shop.report(&[managing("web")]);
    shop.commit().expect_success();
    shop.terminate();
    let summary = format!("ClusterSummary {}/summary", namespace.name());
    let deleted = json!({"sourceStatus": "Deleted"});
    let removed = json!({"sourceStatus": "Deleted", "action": "Remove"});
    let features = ["Resources", "Kustomize"].map(|feature| shop.of_feature(feature));
    // What the group says of itself.
    shop.write_group(&[], &deleted).expect_failure(&[&summary, "leaves out release shop/web:", "[dropped-bundles]"]);
    for fields in [&removed, &json!({"action": "Remove"})] {
        let not_deleted = format!("though {summary} is not being deleted");
        shop.write_group(&[], fields).expect_failure(&[&not_deleted, "[remove-while-live]"]);
        for feature in &features {
            feature.write_group(&[], fields).expect_failure(&[&not_deleted, "[remove-while-live]"]);
        }
    }
    // What it does not say. Bob writes it by hand.
    let bob = namespace.kubectl("bob");
    let annotation = "pullmode.projectsveltos.io/requestorname";
    let claims: [fn(&mut Value); 3] = [
        |labels| labels["pullmode.projectsveltos.io/requestorkind"] = "Classifier".into(),
        |labels| _ = labels.as_object_mut().unwrap().remove("pullmode.projectsveltos.io/requestorfeature"),
        |labels| *labels = json!({"pullmode.projectsveltos.io/clustername": "prod"}),
    ];
    for claim in claims {
        let mut group = shop.new_group(&[], &json!({}));
        claim(&mut group["metadata"]["labels"]);
        bob.with_file("create", &group, &[]).expect_failure(&["leaves out release shop/web:", "[dropped-bundles]"]);
    }
    // In two writes: first for another cluster and another requestor, then for the right ones.
    let mut elsewhere = shop.new_group(&[], &json!({}));
    elsewhere["metadata"]["labels"]["pullmode.projectsveltos.io/clustername"] = "nowhere".into();
    elsewhere["metadata"]["annotations"][annotation] = "nobody".into();
    bob.with_file("create", &elsewhere, &[]).expect_success();
    let name = format!("configurationgroup/{}", elsewhere["metadata"]["name"].as_str().unwrap());
    let back = json!({"metadata": {"labels": {"pullmode.projectsveltos.io/clustername": "prod"}, "annotations": {annotation: "summary"}}});
    bob.fails(&["patch", &name, "--type=merge", "-p", &back.to_string()], &["[dropped-bundles]"]);
    bob.ok(&["delete", &name]);
    assert_eq!(shop.group(), None);

    // The teardown of Sveltos: hooks or nothing, then Remove, for each feature.
    shop.start_teardown();
    shop.write_group(&[], &deleted).expect_success();
    shop.write_group(&[], &removed).expect_success();
    shop.terminate();
    for mut feature in features {
        feature.write_group(&[], &removed).expect_success();
        feature.terminate();
    }
    shop.end_teardown();
    let late = shop.write_group(&[], &removed).expect_success();
    assert_eq!(warnings(&late), "");
    shop.terminate();
    // Nobody else can say that the profile was withdrawn.
    let by_hand = shop.new_group(&[], &removed);
    let unproven = "no ClusterSummary shows that the profile was withdrawn";
    bob.with_file("create", &by_hand, &[]).expect_failure(&[unproven, "[remove-while-live]"]);
}

/// The command at the end of a refusal, without the program and with a reason.
#[track_caller]
fn printed_command(refused: &Output) -> Vec<String> {
    let (_, command) = refused.stderr.split_once("In an emergency: interlock ").expect("a command");
    let words = command.split_whitespace().map(|word| if word.starts_with('"') { "incident 7" } else { word });
    words.map(str::to_owned).collect()
}

#[test]
fn the_printed_command_opens_the_commits_of_a_profile_under_every_name() {
    let plane = Plane::shipped("glass").unwrap();
    plane.define("manifests/base/releaseoverrides.yaml");
    let account = install(&plane);
    let namespace = Namespace::new(&plane, "sveltos-glass");
    let mut shop = AddonController::new(&namespace, &account, &["web", "cache"]);
    shop.stage("web", 1);
    shop.stage("cache", 1);
    shop.report(&[managing("web"), managing("cache")]);
    shop.commit().expect_success();
    shop.terminate();
    // Each try draws a new name, and leaves nothing.
    let tries: Vec<_> =
        (0..4).map(|_| shop.write_group(&[], &json!({})).expect_failure(&["[dropped-bundles]"])).collect();
    let command = printed_command(&tries[0]);
    assert!(tries.iter().all(|refused| printed_command(refused) == command), "{command:?}");
    assert_eq!(command[1], format!("{}/summary.helm", namespace.name()));

    // One Event, about what exists.
    let summary = namespace.kubectl("admin").get(&["clustersummary/summary"]);
    let event = eventually(Duration::from_secs(60), "one Event that counts four", || {
        let selector = "app.kubernetes.io/managed-by=interlock";
        let events = namespace.kubectl("admin").get(&["events.events.k8s.io", "-l", selector]);
        match events["items"].as_array().map(Vec::as_slice) {
            Some([event]) if event["series"]["count"] == 4 => Ok(event.clone()),
            _ => Err(format!("{events:#}")),
        }
    });
    let regarding = &event["regarding"];
    assert_eq!((&regarding["kind"], &regarding["name"]), (&json!("ClusterSummary"), &json!("summary")));
    assert_eq!(regarding["uid"], summary["metadata"]["uid"]);
    let described = namespace.kubectl("admin").ok(&["describe", "clustersummary/summary"]).stdout;
    assert!(described.contains("DroppedBundles"), "{described}");
    // The other feature has a name of its own.
    let mut resources = shop.of_feature("Resources");
    shop.want(&json!({"policyRefs": [{"kind": "Secret", "name": "pull"}]}));
    let from = json!({"resources": ["kind: A\n"], "referencedObjectKind": "Secret", "referencedObjectName": "pull"});
    resources.stage_bundle(&format!("Secret-{}-pull", namespace.name()), &from);
    resources.commit().expect_success();

    let command: Vec<_> = command.iter().map(String::as_str).collect();
    run(plane.interlock(&plane.person("alice"), &command), Duration::from_secs(60)).expect_success();
    let opened = shop.write_group(&[], &json!({})).expect_success();
    assert!(warnings(&opened).contains("dropped-bundles is overridden by ReleaseOverride"), "{opened}");
    shop.terminate();
    shop.write_group(&[], &json!({})).expect_success();
    resources.discard();
    let refused = resources.commit().expect_failure(&["leaves out Secret", "/pull, which", "[dropped-bundles]"]);
    assert_eq!(printed_command(&refused)[1], format!("{}/summary.resources", namespace.name()));
}

#[test]
fn only_commits_wait_for_a_webhook_that_is_down() {
    let plane = Plane::alone();
    let account = install(&plane);
    let namespace = Namespace::new(&plane, "sveltos-outage");
    let mut shop = AddonController::new(&namespace, &account, &["web"]);
    shop.report(&[managing("web")]);
    shop.stage("web", 1);
    shop.commit().expect_success();
    register(&plane, NOWHERE, plane.ca()).unwrap();
    let down = "failed calling webhook \"commits.sveltos.interlock.dev\"";
    let names = shop.listed();
    eventually(Duration::from_secs(20), "the registration works", || {
        let probe = shop.write_group(&names, &json!({"tier": 7}));
        if probe.stderr.contains(down) { Ok(()) } else { Err(probe.to_string()) }
    });
    shop.stage("web", 1);
    shop.commit().expect_failure(&[down]);
    shop.commit_with(&json!({"dryRun": true})).expect_success();
    shop.terminate();
    shop.commit().expect_failure(&[down]);
    shop.write_group(&[], &json!({"sourceStatus": "Deleted"})).expect_success();
    shop.write_group(&[], &json!({"sourceStatus": "Deleted", "action": "Remove"})).expect_success();
    shop.terminate();
    assert_eq!(shop.group(), None);
}
