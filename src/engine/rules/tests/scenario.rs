//! A cluster for tests: a clock, a policy, the objects in memory, and records as values.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::io::Write;

use crate::engine::decide::{Step, decide};
use crate::engine::evidence::{Answer, Evidence, Query};
use crate::engine::facts::Facts;
use crate::engine::outcome::WeighedViolation;
use crate::engine::policy::{Policies, Policy};
use crate::engine::rule::RuleId;
use crate::offline::replay::Replay;

pub(super) const MANIFEST: &str = "---\nkind: Deployment\nmetadata: {name: web}\n";

/// A record as a test thinks of it.
#[derive(Debug, Clone)]
pub(super) struct Rec {
    pub(super) kind: &'static str,
    pub(super) release: &'static str,
    pub(super) revision: u64,
    pub(super) status: &'static str,
    /// `status` where label and body agree.
    pub(super) label: &'static str,
    pub(super) manifest: &'static str,
    pub(super) chart_version: &'static str,
    pub(super) config: Value,
    pub(super) hooks_run: u64,
    pub(super) lived: &'static str,
    pub(super) description: String,
    /// Of the body, where OLM keeps its own. A chart without a version has no name either, as OLM makes them.
    pub(super) labels: Value,
    pub(super) annotations: BTreeMap<String, String>,
    /// The payload in place of the encoded body.
    pub(super) payload: Option<String>,
    pub(super) created: Timestamp,
}

pub(super) fn rec(revision: u64, status: &'static str) -> Rec {
    Rec {
        kind: "Secret",
        release: "web",
        revision,
        status,
        label: status,
        manifest: MANIFEST,
        chart_version: "1.0.0",
        config: json!({"replicas": 1}),
        hooks_run: 0,
        lived: "2026-11-21T09:00:00Z",
        description: "x".to_owned(),
        labels: Value::Null,
        annotations: BTreeMap::new(),
        payload: None,
        created: start(),
    }
}

impl Rec {
    /// The same record with another status in label and body.
    pub(super) fn to(&self, status: &'static str) -> Self {
        Self { status, label: status, ..self.clone() }
    }

    pub(super) fn name(&self) -> String {
        format!("sh.helm.release.v1.{}.v{}", self.release, self.revision)
    }

    pub(super) fn annotated(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    pub(super) fn body(&self) -> Value {
        let chart = match self.chart_version {
            "" => json!({"annotations": {"createdAt": "2026-01-01"}}),
            version => json!({"name": "shop", "version": version}),
        };
        let mut body = json!({
            "name": self.release, "version": self.revision, "namespace": "shop", "manifest": self.manifest,
            "config": self.config, "hooks": [{"last_run": self.hooks_run}],
            "chart": {"metadata": chart},
            "info": {"status": self.status, "last_deployed": self.lived, "description": self.description},
        });
        if !self.labels.is_null() {
            body["labels"] = self.labels.clone();
        }
        body
    }

    fn payload(&self) -> String {
        if let Some(payload) = &self.payload {
            return payload.clone();
        }
        self.encoded(&self.body())
    }

    /// A body as the object of this record holds it.
    pub(super) fn encoded(&self, body: &Value) -> String {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(body.to_string().as_bytes()).unwrap();
        let inner = STANDARD.encode(gzip.finish().unwrap());
        if self.kind == "Secret" { STANDARD.encode(inner) } else { inner }
    }

    pub(super) fn object(&self) -> Value {
        let mut object = json!({
            "apiVersion": "v1", "kind": self.kind, "data": {"release": self.payload()},
            "metadata": {
                "name": self.name(), "namespace": "shop", "creationTimestamp": self.created.to_string(),
                "annotations": self.annotations,
                "labels": {
                    "owner": "helm", "name": self.release, "version": self.revision.to_string(), "status": self.label,
                },
            },
        });
        if self.kind == "Secret" {
            object["type"] = "helm.sh/release.v1".into();
        }
        object
    }
}

const SHIPPED: &str = include_str!("../../../../policies/cluster.yaml");

/// A user, in groups if the text says so: `NAME in GROUP,GROUP`.
fn user_info(user: &str) -> Value {
    match user.split_once(" in ") {
        Some((name, groups)) => json!({"username": name, "groups": groups.split(',').collect::<Vec<_>>()}),
        None => json!({"username": user}),
    }
}

/// The moment at which every scenario starts.
pub(super) fn start() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().unwrap()
}

pub(super) struct Cluster {
    replay: Replay,
    runtime: tokio::runtime::Runtime,
    pub(super) now: Timestamp,
    directory: tempfile::TempDir,
}

/// The rules that refused a request, `Ok` when none did.
pub(super) type Verdict = Result<(), Vec<RuleId>>;

impl Cluster {
    pub(super) fn new() -> Self {
        Self::with_policy("")
    }

    /// A cluster whose policy states this.
    pub(super) fn with_policy(rules: &str) -> Self {
        Self::with_policies(rules, None)
    }

    /// The same with a policy of the namespace `shop` over it.
    pub(super) fn with_policies(rules: &str, shop: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        if let Some(shop) = shop {
            std::fs::create_dir(directory.path().join("namespaces")).unwrap();
            let text = format!("apiVersion: interlock.dev/v1alpha1\nkind: NamespacePolicy\n{shop}\n");
            std::fs::write(directory.path().join("namespaces/shop.yaml"), text).unwrap();
        }
        Self::with_text(format!("{SHIPPED}{rules}\n"), directory)
    }

    fn with_text(text: String, directory: tempfile::TempDir) -> Self {
        std::fs::write(directory.path().join("cluster.yaml"), text).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let replay = Replay::new(Policies::load(directory.path()).unwrap(), false);
        Self { replay, runtime, now: start(), directory }
    }

    pub(super) fn later(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    /// An object that is there.
    pub(super) fn given(&mut self, object: Value) {
        self.send(&json!({ "object": object }));
    }

    pub(super) fn given_record(&mut self, record: &Rec) {
        self.given(record.object());
    }

    pub(super) fn create(&mut self, user: &str, record: &Rec) -> Verdict {
        let created = Rec { created: self.now, ..record.clone() };
        self.judge("CREATE", user, None, Some(created.object()), Some(&record.name()))
    }

    /// Writes over the record of the same name, as a client does that knows nothing of stamps.
    pub(super) fn update(&mut self, user: &str, old: &Rec, new: &Rec) -> Verdict {
        let old_object = old.object();
        self.judge("UPDATE", user, Some(old_object), Some(new.object()), Some(&old.name()))
    }

    pub(super) fn update_objects(&mut self, user: &str, old: Value, new: Value) -> Verdict {
        let name = old["metadata"]["name"].as_str().unwrap().to_owned();
        self.judge("UPDATE", user, Some(old), Some(new), Some(&name))
    }

    /// An edit of an object that is in no namespace.
    pub(super) fn update_cluster_scoped(
        &mut self,
        user: &str,
        old: Value,
        new: Value,
    ) -> crate::offline::replay::Replayed {
        let name = old["metadata"]["name"].as_str().unwrap().to_owned();
        let mut line = self.review("UPDATE", user, Some(old), Some(new), Some(&name));
        line["review"]["request"]["namespace"] = Value::Null;
        self.send(&line).remove(0)
    }

    pub(super) fn create_object(&mut self, user: &str, new: Value) -> Verdict {
        self.judge("CREATE", user, None, Some(new), None)
    }

    pub(super) fn delete(&mut self, user: &str, record: &Rec) -> Verdict {
        self.judge("DELETE", user, Some(record.object()), None, Some(&record.name()))
    }

    /// One object of a collection delete.
    pub(super) fn delete_among_others(&mut self, user: &str, record: &Rec) -> Verdict {
        self.judge("DELETE", user, Some(record.object()), None, None)
    }

    /// The messages of the last refusal would be lost in a [`Verdict`]; this keeps them.
    pub(super) fn refusal(&mut self, operation: &str, user: &str, record: &Rec) -> String {
        let object = Some(record.object());
        let (old, new) = if operation == "DELETE" { (object, None) } else { (None, object) };
        let replayed = self.send(&self.review(operation, user, old, new, Some(&record.name())));
        replayed.iter().flat_map(|replayed| &replayed.violations).map(|violation| violation.message.clone()).collect()
    }

    fn judge(
        &mut self,
        operation: &str,
        user: &str,
        old: Option<Value>,
        new: Option<Value>,
        name: Option<&str>,
    ) -> Verdict {
        let line = self.review(operation, user, old, new, name);
        self.verdict(&line)
    }

    fn verdict(&mut self, line: &Value) -> Verdict {
        let replayed = self.send(line);
        let replayed = &replayed[0];
        if replayed.allowed {
            return Ok(());
        }
        let rules = replayed.violations.iter().map(|violation| violation.rule);
        Err(rules.map(|rule| crate::engine::rules::all().find(|id| id.as_str() == rule).unwrap()).collect())
    }

    fn review(&self, operation: &str, user: &str, old: Option<Value>, new: Option<Value>, name: Option<&str>) -> Value {
        let object = new.as_ref().or(old.as_ref()).unwrap();
        let text = |key: &str| object[key].as_str().unwrap().to_owned();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("shop");
        json!({
            "t": self.now.as_second(),
            "review": {
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "request": {
                    "uid": "u", "operation": operation, "name": name, "namespace": namespace,
                    "kind": {"group": group, "version": version, "kind": kind},
                    "resource": {"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())},
                    "userInfo": user_info(user), "object": new, "oldObject": old,
                },
            },
        })
    }

    /// `kubectl scale` of an object that is there.
    pub(super) fn scale(&mut self, user: &str, object: &Value, from: u64, to: u64) -> Verdict {
        let name = object["metadata"]["name"].as_str().unwrap();
        let mut line = self.review("UPDATE", user, Some(object.clone()), Some(object.clone()), Some(name));
        let request = &mut line["review"]["request"];
        request["subResource"] = "scale".into();
        request["kind"] = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        request["oldObject"] = json!({"kind": "Scale", "spec": {"replicas": from}});
        request["object"] = json!({"kind": "Scale", "spec": {"replicas": to}});
        self.verdict(&line)
    }

    pub(super) fn delete_object(&mut self, user: &str, object: Value) -> Verdict {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        self.judge("DELETE", user, Some(object), None, Some(&name))
    }

    /// The deletion of an object that is in no namespace.
    pub(super) fn delete_cluster_scoped(&mut self, user: &str, object: Value) -> Verdict {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let mut line = self.review("DELETE", user, Some(object), None, Some(&name));
        line["review"]["request"]["namespace"] = Value::Null;
        self.verdict(&line)
    }

    /// An edit through a subresource.
    pub(super) fn update_through(&mut self, sub_resource: &str, user: &str, old: Value, new: Value) -> Verdict {
        let name = old["metadata"]["name"].as_str().unwrap().to_owned();
        let mut line = self.review("UPDATE", user, Some(old), Some(new), Some(&name));
        line["review"]["request"]["subResource"] = sub_resource.into();
        self.verdict(&line)
    }

    /// What is found in a write of an object, one sentence for each finding, whatever becomes of it.
    pub(super) fn findings(&mut self, user: &str, old: Option<Value>, new: Option<Value>) -> Vec<String> {
        let operation = match (&old, &new) {
            (None, _) => "CREATE",
            (_, None) => "DELETE",
            _ => "UPDATE",
        };
        let name = new.as_ref().or(old.as_ref()).unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
        let replayed = self.send(&self.review(operation, user, old, new, Some(&name)));
        replayed.iter().flat_map(|replayed| &replayed.violations).map(|violation| violation.message.clone()).collect()
    }

    /// What the user reads of an edit, refusal or warning.
    pub(super) fn told(&mut self, user: &str, old: Value, new: Value) -> String {
        let name = old["metadata"]["name"].as_str().unwrap().to_owned();
        let replayed = self.send(&self.review("UPDATE", user, Some(old), Some(new), Some(&name)));
        replayed.iter().flat_map(|replayed| &replayed.violations).map(|violation| violation.message.clone()).collect()
    }

    /// What came of a write of an object.
    pub(super) fn replayed(&mut self, user: &str, old: Option<Value>, new: Value) -> crate::offline::replay::Replayed {
        let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
        let name = new["metadata"]["name"].as_str().unwrap().to_owned();
        self.send(&self.review(operation, user, old, Some(new), Some(&name))).remove(0)
    }

    fn send(&mut self, line: &Value) -> Vec<crate::offline::replay::Replayed> {
        assert!(self.directory.path().exists());
        self.runtime.block_on(self.replay.line(1, &line.to_string())).unwrap()
    }
}

/// Judges a request at the start, and answers whatever the rules ask.
pub(super) fn decided(
    facts: &Facts<'_>,
    policy: &Policy,
    mut answer: impl FnMut(&Query) -> Answer,
) -> Vec<WeighedViolation> {
    let mut evidence = Evidence::default();
    loop {
        match decide(facts, policy, &evidence, start()) {
            Step::Done(judged) => return judged,
            Step::Ask(query) => {
                let answer = answer(&query);
                evidence.add(query, answer);
            }
        }
    }
}
