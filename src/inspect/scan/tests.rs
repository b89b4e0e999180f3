//! Scans of an API server of a few answers, which gives its lists in pages.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use http::Uri;
use interlock_engine::release::storage::HELM_SECRET_TYPE;
use serde_json::{Value, json};

use super::*;
use crate::world::kubernetes::fake;
use crate::world::policy_directory;

/// Answers by path and a part of the query, each once and the last one for ever; otherwise an empty list, or 404.
#[derive(Clone, Default)]
struct Fake {
    answers: Arc<Mutex<HashMap<Collection, Answers>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

/// Status codes and bodies.
type Answers = VecDeque<(u16, Value)>;

/// A path, and a part of the query.
type Collection = (&'static str, &'static str);

/// Helm's Secrets.
const RECORDS: Collection = ("/api/v1/secrets", "type%3Dhelm.sh");
/// Every list of Secrets.
const SECRETS: Collection = ("/api/v1/secrets", "");
const CONFIG_MAPS: Collection = ("/api/v1/configmaps", "");

impl Fake {
    fn answer(&self, asked: Collection, code: u16, body: Value) {
        self.answers.lock().unwrap().entry(asked).or_default().push_back((code, body));
    }

    async fn scan(&self, options: &ScanOptions) -> Result<ScanReport, ScanError> {
        let policies = policy_directory::load_or_shipped(None).unwrap();
        let fake = self.clone();
        let client = fake::client(move |head, _| fake.answered(&head.uri));
        scan(&client, &policies, options, "2026-11-21T10:00:00Z".parse().unwrap(), &|_| {}).await
    }

    fn answered(&self, uri: &Uri) -> (u16, Value) {
        let asked = uri.to_string();
        self.asked.lock().unwrap().push(asked.clone());
        let mut answers = self.answers.lock().unwrap();
        let fits = |(path, part): &&Collection| uri.path() == *path && asked.contains(part);
        let wanted = answers.keys().filter(fits).max_by_key(|(_, part)| part.len()).copied();
        match wanted.and_then(|wanted| answers.get_mut(&wanted)) {
            Some(answers) if answers.len() > 1 => answers.pop_front().unwrap(),
            Some(answers) => answers.front().cloned().unwrap(),
            None if asked.contains("limit=") => (200, json!({"metadata": {}, "items": null})),
            None if asked == "/apis" => (200, json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})),
            None => (404, failure(404, "not found")),
        }
    }
}

fn failure(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": "X", "code": code})
}

fn record(release: &str, revision: u64, status: &str) -> Value {
    json!({"metadata": {
        "name": format!("sh.helm.release.v1.{release}.v{revision}"), "namespace": "shop", "uid": "u",
        "creationTimestamp": "2026-11-21T09:00:00Z",
        "labels": {"owner": "helm", "name": release, "version": revision.to_string(), "status": status},
    }})
}

fn page(items: &[Value], more: &str) -> Value {
    json!({"metadata": {"continue": more}, "items": items})
}

fn metadata_alone() -> ScanOptions {
    ScanOptions { bodies: BodySelection::Questioned, ..ScanOptions::default() }
}

fn checks(report: &ScanReport) -> Vec<(&'static str, &str)> {
    report.findings.iter().map(|finding| (finding.kind.as_str(), finding.name())).collect()
}

#[tokio::test]
async fn lists_are_read_page_by_page() {
    let fake = Fake::default();
    fake.answer(RECORDS, 200, page(&[record("web", 1, "deployed")], "next"));
    fake.answer(RECORDS, 200, page(&[record("web", 2, "deployed"), record("api", 1, "deployed")], ""));
    let report = fake.scan(&metadata_alone()).await.unwrap();
    assert_eq!((report.releases, report.records), (2, 3));
    assert_eq!(checks(&report), [("several-deployed", "web")]);
    assert_eq!(report.calls, fake.asked.lock().unwrap().len() as u64);
    let asked = fake.asked.lock().unwrap().join("\n");
    assert!(asked.contains("continue=next"), "{asked}");
    // Both revisions are what helm acts on.
    assert_eq!(asked.matches("/api/v1/namespaces/shop/secrets/sh.helm.release.v1.web.v").count(), 2, "{asked}");
    assert!(!asked.contains("/sh.helm.release.v1.api"), "{asked}");
}

#[tokio::test]
async fn an_expired_list_starts_again_and_counts_nothing_twice() {
    let fake = Fake::default();
    fake.answer(RECORDS, 200, page(&[record("web", 1, "deployed")], "next"));
    fake.answer(RECORDS, 410, failure(410, "expired"));
    fake.answer(RECORDS, 200, page(&[record("web", 1, "superseded")], "next"));
    fake.answer(RECORDS, 200, page(&[record("web", 2, "deployed")], ""));
    let report = fake.scan(&metadata_alone()).await.unwrap();
    assert_eq!((report.releases, report.records), (1, 2));
    assert_eq!(checks(&report), []);
}

fn record_in(namespace: &str, release: &str, revision: u64, status: &str) -> Value {
    let mut record = record(release, revision, status);
    record["metadata"]["namespace"] = namespace.into();
    record
}

#[tokio::test]
async fn a_release_is_judged_once_its_namespace_is_read() {
    let fake = Fake::default();
    // A namespace goes on in the next page, and a label alone says that another Secret is a record of it.
    fake.answer(
        RECORDS,
        200,
        page(&[record_in("a-b", "web", 1, "deployed"), record_in("a", "web", 1, "deployed")], "2"),
    );
    fake.answer(
        RECORDS,
        200,
        page(&[record_in("a", "web", 2, "superseded"), record_in("b", "web", 1, "deployed")], ""),
    );
    fake.answer(("/api/v1/secrets", "labelSelector"), 200, page(&[record_in("a", "web", 3, "deployed")], ""));
    let report = fake.scan(&metadata_alone()).await.unwrap();
    assert_eq!((report.releases, report.records), (3, 5));
    let found: Vec<_> = report.findings.iter().map(|it| (it.kind.as_str(), it.namespace())).collect();
    assert_eq!(found, [("several-deployed", "a"), ("inconsistent-record", "a")]);
}

#[tokio::test]
async fn a_list_in_no_order_is_read_as_a_whole() {
    let fake = Fake::default();
    for _ in 0..2 {
        fake.answer(RECORDS, 200, page(&[record_in("b", "web", 1, "deployed")], "2"));
        fake.answer(RECORDS, 200, page(&[record_in("a", "web", 1, "deployed")], "3"));
        fake.answer(RECORDS, 200, page(&[record_in("b", "web", 2, "deployed")], ""));
    }
    let report = fake.scan(&metadata_alone()).await.unwrap();
    assert_eq!((report.releases, report.records), (2, 3));
    let found: Vec<_> = report.findings.iter().map(|it| (it.kind.as_str(), it.namespace())).collect();
    assert_eq!(found, [("several-deployed", "b")]);
}

#[tokio::test]
async fn a_list_that_expires_again_and_again_is_given_up() {
    let fake = Fake::default();
    fake.answer(RECORDS, 410, failure(410, "expired"));
    let error = fake.scan(&metadata_alone()).await.unwrap_err();
    assert!(error.to_string().contains("expired"), "{error}");
    let asked = fake.asked.lock().unwrap();
    assert_eq!(asked.iter().filter(|asked| asked.contains("type%3Dhelm.sh")).count(), 3, "{asked:?}");
}

#[tokio::test]
async fn only_the_right_to_list_secrets_is_required() {
    let fake = Fake::default();
    fake.answer(CONFIG_MAPS, 403, failure(403, "configmaps is forbidden: cannot list"));
    let report = fake.scan(&metadata_alone()).await.unwrap();
    assert_eq!(report.not_looked_at.len(), 1, "{:?}", report.not_looked_at);
    assert_eq!(report.not_looked_at[0].what, "records in ConfigMaps");
    assert!(report.not_looked_at[0].why.contains("cannot list"), "{:?}", report.not_looked_at);
    assert!(!report.looked_at.iter().any(|part| part == "records in ConfigMaps"));
    fake.answer(SECRETS, 403, failure(403, "secrets is forbidden: cannot list"));
    let error = fake.scan(&metadata_alone()).await.unwrap_err();
    assert!(error.to_string().contains("secrets is forbidden: cannot list"), "{error}");
}

#[tokio::test]
async fn which_bodies_are_read_is_as_asked() {
    for (bodies, wanted) in [
        (BodySelection::Questioned, vec![]),
        (BodySelection::ActedOn, vec!["v3"]),
        (BodySelection::All, vec!["v1", "v2", "v3"]),
    ] {
        let fake = Fake::default();
        // The buried one is legal, and raises no question.
        let records =
            [record("web", 1, "pending-upgrade"), record("web", 2, "superseded"), record("web", 3, "deployed")];
        fake.answer(RECORDS, 200, page(&records, ""));
        let options = ScanOptions { bodies, ..ScanOptions::default() };
        let report = fake.scan(&options).await.unwrap();
        assert_eq!(checks(&report), [("buried-operation", "web")]);
        let asked = fake.asked.lock().unwrap().clone();
        let mut read: Vec<_> = asked.iter().filter_map(|path| path.split_once(".web.")).map(|(_, end)| end).collect();
        read.sort_unstable();
        assert_eq!(read, wanted, "{bodies:?}");
    }
}

#[tokio::test]
async fn an_undecodable_body_is_a_finding_and_an_unread_one_a_gap() {
    let fake = Fake::default();
    let mut edited = record("web", 1, "deployed");
    edited["metadata"]["labels"]["version"] = "7".into();
    fake.answer(RECORDS, 200, page(&[edited.clone(), record("api", 1, "deployed")], ""));
    let mut stored = edited;
    stored["type"] = HELM_SECRET_TYPE.into();
    stored["data"] = json!({"release": "!"});
    fake.answer(("/api/v1/namespaces/shop/secrets/sh.helm.release.v1.web.v1", ""), 200, stored);
    fake.answer(("/api/v1/namespaces/shop/secrets/sh.helm.release.v1.api.v1", ""), 403, failure(403, "cannot get"));
    let report = fake.scan(&ScanOptions::default()).await.unwrap();
    assert_eq!(checks(&report), [("unreadable-record", "web")]);
    assert_eq!(report.bodies, 1);
    let gaps: Vec<_> = report.not_looked_at.iter().map(|gap| (gap.what.as_str(), gap.times)).collect();
    assert_eq!(gaps, [("bodies of some records", 1)]);
}

/// Flux's kind, served, with these HelmReleases in all namespaces.
fn with_flux(fake: &Fake, code: u16, answer: Value) {
    let version = json!({"groupVersion": "helm.toolkit.fluxcd.io/v2", "version": "v2"});
    let group = json!({"name": "helm.toolkit.fluxcd.io", "versions": [version], "preferredVersion": version});
    let groups = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]});
    fake.answer(("/apis", ""), 200, groups);
    let resource = json!({
        "name": "helmreleases", "singularName": "", "namespaced": true, "kind": "HelmRelease", "verbs": ["list"],
    });
    let list = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "helm.toolkit.fluxcd.io/v2", "resources": [resource],
    });
    fake.answer(("/apis/helm.toolkit.fluxcd.io/v2", ""), 200, list);
    fake.answer(("/apis/helm.toolkit.fluxcd.io/v2/helmreleases", ""), code, answer);
}

fn helm_release(name: &str, release: &str, storage: &str) -> Value {
    let history = json!([{"name": release, "namespace": storage, "status": "deployed"}]);
    json!({
        "metadata": {"name": name, "namespace": "flux-system", "uid": name, "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": {"releaseName": release, "storageNamespace": storage, "timeout": "2h"},
        "status": {"storageNamespace": storage, "history": history},
    })
}

#[tokio::test]
async fn a_scan_of_one_namespace_knows_the_helm_releases_of_others() {
    let records = ("/api/v1/namespaces/shop/secrets", "type%3Dhelm.sh");
    let options = ScanOptions { namespace: Some("shop".to_owned()), ..metadata_alone() };
    // Its account holds the release, which leads to the HelmRelease of another namespace.
    let (mut held, mut web) = (record("web", 1, "pending-install"), helm_release("web", "web", "shop"));
    held["metadata"]["annotations"] = json!({
        "interlock.dev/holder": "system:serviceaccount:flux-system:deployer",
        "interlock.dev/driver": "HelmRelease/flux-system/web/web/1",
    });
    web["spec"]["serviceAccountName"] = "deployer".into();
    let stuck = page(&[held, record("api", 1, "deployed")], "");
    let fake = Fake::default();
    fake.answer(records, 200, stuck.clone());
    let collisions = [
        web,
        helm_release("one", "api", "shop"),
        helm_release("two", "api", "shop"),
        helm_release("three", "far", "other"),
        helm_release("four", "far", "other"),
    ];
    with_flux(&fake, 200, page(&collisions, ""));
    let report = fake.scan(&options).await.unwrap();
    assert_eq!(checks(&report), [("duplicate-release", "api")], "web has two hours");
    assert!(report.is_complete(), "{:?}", report.not_looked_at);

    let fake = Fake::default();
    fake.answer(records, 200, stuck);
    with_flux(&fake, 403, failure(403, "cannot list"));
    let report = fake.scan(&options).await.unwrap();
    assert_eq!(checks(&report), []);
    let gaps: Vec<_> = report.not_looked_at.iter().map(|gap| gap.what.as_str()).collect();
    assert_eq!(gaps, ["HelmReleases", "stuck operations of releases in Secrets"]);
    assert!(!report.is_complete());
}

#[tokio::test]
async fn the_json_report_has_the_fields_for_programs() {
    let fake = Fake::default();
    fake.answer(RECORDS, 200, page(&[record("web", 1, "pending-install")], ""));
    let report = serde_json::to_value(fake.scan(&metadata_alone()).await.unwrap()).unwrap();
    let finding = &report["findings"][0];
    assert_eq!(finding["severity"], "high");
    assert_eq!((&finding["check"], &finding["namespace"]), (&json!("stuck-operation"), &json!("shop")));
    assert_eq!((&finding["release"], &finding["object"]["kind"]), (&json!("web"), &json!("Secret")));
    assert_eq!(report["counts"], json!({"high": 1}));
    for key in ["calls", "tookSeconds", "peakMemoryBytes", "lookedAt", "notLookedAt", "releases", "records", "bodies"] {
        assert!(!report[key].is_null(), "{key}");
    }
}
