//! A release's whole life, in parallel on a control plane with the webhook and on one without: no write is refused, and
//! the records are the same.

use std::fmt::Write as _;

use crate::harness::chart::{Chart, HookKind, When};
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records::Record;

/// A step: its name, and the command line with `CHART` for the chart's path.
type Step = (&'static str, &'static [&'static str]);

const LIFE: &[Step] = &[
    ("install", &["install", "R", "CHART", "--wait", "--timeout=90s"]),
    ("upgrade", &["upgrade", "R", "CHART", "--set=note=two,image=two", "--wait", "--timeout=90s"]),
    ("failed upgrade", &["upgrade", "R", "CHART", "--set=breakApply=true"]),
    ("upgrade after failure", &["upgrade", "R", "CHART", "--set=note=three"]),
    ("upgrade undone", &["upgrade", "R", "CHART", "--set=breakApply=true", "UNDO", "--timeout=90s"]),
    ("failed hook", &["upgrade", "R", "CHART", "--set=failHooks=true", "--timeout=60s"]),
    ("rollback", &["rollback", "R", "2", "--wait", "--timeout=90s"]),
    ("test", &["test", "R", "--timeout=90s"]),
    ("pruning upgrade", &["upgrade", "R", "CHART", "--set=note=four", "--history-max=3"]),
    ("pruning rollback", &["rollback", "R", "0", "--history-max=3"]),
    ("uninstall with history", &["uninstall", "R", "--keep-history"]),
    ("install in its place", &["install", "R", "CHART", "--replace"]),
    ("uninstall", &["uninstall", "R"]),
    ("failed install", &["install", "R", "CHART", "--set=breakApply=true"]),
    ("upgrade over a failed install", &["upgrade", "R", "CHART", "--install"]),
    ("uninstall again", &["uninstall", "R"]),
    ("install undone", &["install", "R", "CHART", "--set=breakApply=true", "UNDO", "--timeout=90s"]),
    ("last install", &["upgrade", "R", "CHART", "--install"]),
];

#[test]
fn helm_3_with_secrets() {
    same_life(HelmVersion::V3, Driver::Secret, "demo");
}

#[test]
fn helm_3_with_config_maps() {
    same_life(HelmVersion::V3, Driver::ConfigMap, "demo");
}

#[test]
fn helm_4_with_secrets_and_dots_in_the_name() {
    same_life(HelmVersion::V4, Driver::Secret, "demo.v1");
}

#[test]
fn helm_4_with_config_maps() {
    same_life(HelmVersion::V4, Driver::ConfigMap, "demo");
}

#[test]
fn helm_3_and_helm_4_take_turns_on_one_release() {
    let take_turns = |plane: &'static Plane| {
        let namespace = Namespace::new(plane, "turns");
        let chart = chart();
        let mut account = String::new();
        let versions = [HelmVersion::V3, HelmVersion::V4].into_iter().cycle();
        let steps = LIFE.iter().take(12).zip(versions);
        for (step, version) in steps {
            live(&namespace, &namespace.helm(version, Driver::Secret, "alice"), &chart, "demo", step, &mut account);
        }
        (namespace.name().to_owned(), account)
    };
    compare(take_turns);
}

fn same_life(version: HelmVersion, driver: Driver, release: &str) {
    compare(|plane| {
        let namespace = Namespace::new(plane, "life");
        let (helm, chart) = (namespace.helm(version, driver, "alice"), chart());
        let mut account = String::new();
        for step in LIFE {
            live(&namespace, &helm, &chart, release, step, &mut account);
        }
        (namespace.name().to_owned(), account)
    });
}

/// Lives a life on both planes in parallel and compares the transcripts. The webhook refuses nothing.
fn compare(life: impl Fn(&'static Plane) -> (String, String) + Sync) {
    let ((guarded, with), (alone, without)) = std::thread::scope(|scope| {
        let alone = scope.spawn(|| life(Plane::without_webhook()));
        let guarded = life(Plane::shared());
        (guarded, alone.join().unwrap())
    });
    // Only the names of the namespaces may differ.
    assert_eq!(with.replace(&guarded, "NAMESPACE"), without.replace(&alone, "NAMESPACE"));
    let denied = Plane::shared().webhook().log();
    let ours = format!("\"k8s.namespace.name\":\"{guarded}\"");
    let mut decided = denied.lines().filter(|line| line.contains(&ours)).peekable();
    assert!(decided.peek().is_some(), "the webhook was not asked about {guarded}");
    let denied: Vec<_> = decided.filter(|line| !line.contains("\"verdict\":\"allowed\"")).collect();
    assert!(denied.is_empty(), "{}", denied.join("\n"));
}

fn chart() -> Chart {
    Chart::new("demo")
        .hook(When::PreInstall, HookKind::ConfigMap)
        .hook(When::PostInstall, HookKind::ConfigMap)
        .hook(When::PreUpgrade, HookKind::Job)
        .hook(When::PostUpgrade, HookKind::ConfigMap)
        .hook(When::PreRollback, HookKind::ConfigMap)
        .hook(When::PostRollback, HookKind::ConfigMap)
        .hook(When::PreDelete, HookKind::ConfigMap)
        .hook(When::PostDelete, HookKind::ConfigMap)
        .hook(When::Test, HookKind::Pod)
}

/// Takes a step and writes its result and the records into the transcript.
fn live(namespace: &Namespace<'_>, helm: &Helm, chart: &Chart, release: &str, step: &Step, account: &mut String) {
    let (name, line) = step;
    let line: Vec<_> = line
        .iter()
        .map(|word| match *word {
            "R" => release,
            "CHART" => chart.path(),
            "UNDO" => helm.version().rollback_on_failure(),
            word => word,
        })
        .collect();
    let output = helm.run(&line);
    writeln!(account, "{name}: {}", if output.success() { "ok" } else { "failed" }).unwrap();
    for record in namespace.records(helm.driver(), release) {
        let Record { revision, label_status, body_status, chart, body, .. } = &record;
        let (config, manifest) = (&body["config"], body["manifest"].as_str().unwrap_or_default().len());
        let hooks = body["hooks"].as_array().map_or(0, Vec::len);
        let object = &record.object;
        writeln!(
            account,
            "  {object} {revision} {label_status} {body_status} {chart} {config} manifest={manifest} hooks={hooks}"
        )
        .unwrap();
    }
}
