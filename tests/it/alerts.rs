//! Alert rules, dashboard and runbook: their metrics exist, and they link to each other.

mod promtool;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

use interlock_engine::decision::{Decision, DecisionFinding};
use interlock_engine::outcome::Verdict;
use interlock_engine::review::Operation;
use interlock_engine::rule::Mode;
use interlock_engine::rules as rule_table;
use interlock_engine::violation::ViolationKind;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use release_interlock::inspect::scan::ScanReport;
use release_interlock::serve::https::metrics::{Cut, HandshakeFailure, HttpsMetrics, Port, ReviewEnd};
use release_interlock::serve::https::{Endpoint, Readiness, Rejection};
use release_interlock::serve::leader::metrics::LeaderMetrics;
use release_interlock::serve::pki::metrics::{
    CertificateMetrics, CertificateRole, CertificateStep, CertificateTrouble,
};
use release_interlock::serve::reload::metrics::{PolicyMetrics, ReloadResult};
use release_interlock::serve::report::metrics::{ReportMetrics, Sink, Write};
use release_interlock::serve::{openmetrics, process};
use serde_json::Value;

use crate::harness::binary::repository;

const ALERTS: &str = "manifests/chart/files/alerts.yaml";
const DASHBOARD: &str = "manifests/chart/files/dashboard.json";
const RUNBOOK: &str = "docs/runbook.md";
/// Its page of the book.
const RUNBOOK_PAGE: &str = "https://interlock.dev/docs/runbook.html";

/// The API server's own metrics of webhooks.
const OF_THE_API_SERVER: [&str; 3] = [
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_rejection_count",
    "apiserver_admission_webhook_admission_duration_seconds_bucket",
];

/// All metrics of a process in which every event has happened.
static TOLD: LazyLock<String> = LazyLock::new(|| {
    use Rejection::{BodyTooSlow, NoAnswer, NoMemory, TooLarge};
    let metrics = HttpsMetrics::default();
    metrics.review(Endpoint::Validate).end(ReviewEnd::Answered);
    for rejection in [TooLarge, NoMemory, BodyTooSlow, NoAnswer] {
        metrics.http_refusals.get_or_create(&rejection).inc();
    }
    metrics.cut(Cut::Full);
    metrics.accept_errors.get_or_create(&Port::Admission).inc();
    metrics.tls_handshake_failures.get_or_create(&HandshakeFailure::NotTls).inc();
    metrics.connections.get_or_create(&Port::Admission).inc();
    let policies = PolicyMetrics::default();
    policies.set_loaded(Timestamp::UNIX_EPOCH);
    policies.count_reload(ReloadResult::Bad, 1);
    let leader = LeaderMetrics::default();
    leader.set_findings(&scan());
    let certificates = CertificateMetrics::default();
    certificates.set_expiry(CertificateRole::Leaf, Some(Timestamp::UNIX_EPOCH));
    certificates.count_step(CertificateStep::Healed);
    certificates.count_trouble(CertificateTrouble::Read);
    let reports = ReportMetrics::default();
    reports.waiting(Sink::Events, 1);
    reports.wrote(Sink::Reports, Write::Failed);
    for (kind, overridden) in
        [(ViolationKind::Refused, None), (ViolationKind::Late, None), (ViolationKind::Refused, Some("shop/fix"))]
    {
        reports.decided(&decision(kind, overridden), false);
    }
    let mut registry = Registry::default();
    process::register(&mut registry);
    let ours = registry.sub_registry_with_prefix(openmetrics::PREFIX);
    Readiness::new().register(ours);
    metrics.register(ours);
    policies.register(ours);
    leader.register(ours);
    certificates.register(ours);
    reports.register(ours);
    openmetrics::render(&registry).unwrap()
});

fn scan() -> ScanReport {
    ScanReport {
        cluster: String::new(),
        policy: String::new(),
        time: Timestamp::UNIX_EPOCH,
        namespace: None,
        releases: 0,
        records: 0,
        bodies: 0,
        objects: 0,
        calls: 0,
        took_seconds: 0.0,
        peak_memory_bytes: None,
        looked_at: Vec::new(),
        not_looked_at: Vec::new(),
        counts: BTreeMap::new(),
        findings: Vec::new(),
        left_out: 0,
    }
}

fn decision(kind: ViolationKind, overridden: Option<&str>) -> Decision {
    let finding = DecisionFinding {
        rule: rule_table::named("manual-edit").unwrap(),
        mode: Mode::Enforce,
        kind,
        refuses: kind == ViolationKind::Refused && overridden.is_none(),
        overridden: overridden.map(str::to_owned),
        ticket: None,
        frozen: None,
        pointers: Vec::new(),
        message: "No.".to_owned(),
        ways_out: "Do this.".into(),
    };
    Decision {
        uid: "u".to_owned(),
        operation: Operation::Update,
        resource: "deployments.apps".to_owned(),
        namespace: "shop".to_owned(),
        concerns_releases: true,
        name: "web".to_owned(),
        user: "alice".to_owned(),
        release: None,
        allowed: !finding.refuses,
        dry_run: false,
        objection: None,
        findings: vec![finding],
        object: None,
        object_uid: String::new(),
        change: 0,
        transition: None,
        took: Duration::ZERO,
        decoded: Some(Duration::ZERO),
        effort: 600_000_000,
        over_budget: true,
    }
}

fn rules() -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(&fs::read_to_string(repository(ALERTS)).unwrap()).unwrap();
    let groups = file["groups"].as_array().unwrap().iter();
    groups.flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {value}"))
}

/// The queries of the alert rules and of the dashboard.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(repository(DASHBOARD)).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let shown = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let shown: Vec<_> = shown.map(|target| text(target, "/expr").to_owned()).collect();
    assert!(shown.len() > 20, "a dashboard of {} queries", shown.len());
    rules().iter().map(|rule| text(rule, "/expr").to_owned()).chain(shown).collect()
}

/// The metrics of a query: words with a prefix of a known exporter.
fn metrics_of(query: &str) -> impl Iterator<Item = &str> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| ["interlock_", "process_", "apiserver_"].iter().any(|prefix| word.starts_with(prefix)))
}

#[test]
fn every_queried_metric_exists() {
    let names: BTreeSet<_> = TOLD.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    for query in queries() {
        assert!(metrics_of(&query).next().is_some(), "no metric in {query}");
        for metric in metrics_of(&query) {
            assert!(
                names.contains(metric) || OF_THE_API_SERVER.contains(&metric),
                "nobody counts {metric}, asked for by {query}"
            );
        }
    }
}

/// A label value that the code never exports selects nothing.
#[test]
fn every_queried_label_value_is_exported() {
    let mut seen = 0;
    for query in queries() {
        for known in query.split("verdict=\"").skip(1) {
            let verdict = known.split('"').next().unwrap();
            assert!(verdict.parse::<Verdict>().is_ok(), "no verdict {verdict} in {query}");
            seen += 1;
        }
        let told = [("check", "stuck-operation"), ("end", "answered"), ("write", "failed"), ("step", "healed")];
        for (label, value) in told {
            for known in query.split(&format!("{label}=\"")).skip(1) {
                assert_eq!(known.split('"').next(), Some(value), "{query}");
                assert!(TOLD.contains(&format!("{label}=\"{value}\"")), "{label}={value} is never exported");
                seen += 1;
            }
        }
        for label in ["check", "reason"] {
            for known in query.split(&format!("{label}=~\"")).skip(1) {
                for value in known.split('"').next().unwrap().split('|') {
                    assert!(
                        TOLD.contains(&format!("{label}=\"{value}\"")),
                        "{label}={value} is never exported: {query}"
                    );
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 15, "{seen}");
}

/// What Grafana's types do not say (`tests/dashboard` compiles the dashboard against them): a second panel with an id or a place hides the
/// first, a second query with a letter replaces the first, and a variable that is not defined selects no data source.
#[test]
fn no_panel_and_no_query_of_the_dashboard_hides_another() {
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(repository(DASHBOARD)).unwrap()).unwrap();
    let variables: Vec<_> =
        dashboard["templating"]["list"].as_array().unwrap().iter().map(|it| text(it, "/name")).collect();
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = text(panel, "/title");
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title} has the id of another panel");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(w > 0 && h > 0 && x + w <= 24, "{title} is outside of the 24 columns");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{title} covers another panel at {cell:?}");
        }
        if panel["type"] == "row" {
            continue;
        }
        let queries = panel["targets"].as_array().unwrap();
        let letters: BTreeSet<_> = queries.iter().map(|query| text(query, "/refId")).collect();
        assert!(
            !queries.is_empty() && letters.len() == queries.len(),
            "{title} has two queries with one letter, or none"
        );
        for source in queries.iter().chain([panel]).map(|it| text(it, "/datasource/uid")) {
            let variable = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
            assert!(variable.is_some_and(|name| variables.contains(&name)), "{title} reads {source}");
        }
    }
    assert!(cells.len() > 24 * 24, "{} cells", cells.len());
}

#[test]
fn every_alert_leads_to_its_paragraph_and_every_paragraph_has_its_alert() {
    let runbook = fs::read_to_string(repository(RUNBOOK)).unwrap();
    let (_, paragraphs) = runbook.split_once("\n## Alerts\n").expect("a section of alerts");
    let paragraphs = paragraphs.split("\n## ").next().unwrap();
    let printed: BTreeSet<_> = paragraphs.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let mut alerts = BTreeSet::new();
    for rule in &rules() {
        let alert = text(rule, "/alert");
        assert!(alerts.insert(alert.to_owned()), "{alert} is there twice");
        let anchor = format!("{RUNBOOK_PAGE}#{}", alert.to_ascii_lowercase());
        assert_eq!(text(rule, "/annotations/runbook_url"), anchor);
        assert!(["critical", "warning", "info"].contains(&text(rule, "/labels/severity")), "{alert}");
        for annotation in ["summary", "description"] {
            assert!(text(rule, &format!("/annotations/{annotation}")).len() > 10, "{alert} {annotation}");
        }
    }
    assert_eq!(printed, alerts.iter().map(String::as_str).collect());
}
