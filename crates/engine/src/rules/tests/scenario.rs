//! A cluster for tests: a clock, a policy, the objects in memory, and records as values.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::{SignedDuration, Timestamp};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::Write;

use crate::decide::{Step, decide};
use crate::effort::Effort;
use crate::evidence::{Answer, Evidence, Query};
use crate::facts::{Facts, RequestObjects, Subject, storing_kind};
use crate::freezes;
use crate::json::{Patch, RawObject};
use crate::memory::Objects;
use crate::object::ObjectKey;
use crate::outcome::{Outcome, WeighedViolation};
use crate::overrides;
use crate::policy::{Policies, Policy};
use crate::policy_files::PolicyFiles;
use crate::release::ReleaseRef;
use crate::review::{Request, Review};
use crate::stamp::{ClusterStamps, driver, inherits_protector, recording, stamp};

pub(crate) const MANIFEST: &str = "---\nkind: Deployment\nmetadata: {name: web}\n";

/// A record, as tests describe it.
#[derive(Debug, Clone)]
pub(crate) struct Rec {
    pub(crate) kind: &'static str,
    pub(crate) release: &'static str,
    pub(crate) revision: u64,
    pub(crate) status: &'static str,
    /// The status in the label. Label and body agree if it equals `status`.
    pub(crate) label: &'static str,
    pub(crate) manifest: &'static str,
    pub(crate) chart_version: &'static str,
    pub(crate) config: Value,
    pub(crate) hooks_run: u64,
    pub(crate) lived: &'static str,
    pub(crate) description: String,
    /// The labels in the body, where OLM keeps its own. A chart without a version has no name either, as OLM creates them.
    pub(crate) labels: Value,
    pub(crate) annotations: BTreeMap<String, String>,
    /// A payload that replaces the encoded body.
    pub(crate) payload: Option<String>,
    pub(crate) created: Timestamp,
}

pub(crate) fn rec(revision: u64, status: &'static str) -> Rec {
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
    pub(crate) fn to(&self, status: &'static str) -> Self {
        Self { status, label: status, ..self.clone() }
    }

    pub(crate) fn name(&self) -> String {
        format!("sh.helm.release.v1.{}.v{}", self.release, self.revision)
    }

    pub(crate) fn annotated(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn body(&self) -> Value {
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

    /// Encodes a body as it is stored in the object of this record.
    pub(crate) fn encoded(&self, body: &Value) -> String {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(body.to_string().as_bytes()).unwrap();
        let inner = STANDARD.encode(gzip.finish().unwrap());
        if self.kind == "Secret" { STANDARD.encode(inner) } else { inner }
    }

    pub(crate) fn object(&self) -> Value {
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

const SHIPPED: &str = include_str!("../../../../../policies/cluster.yaml");

/// A user, in groups if the text says so, or with the token of a pod: `NAME in GROUP,GROUP`, `NAME on POD:UID`.
fn user_info(user: &str) -> Value {
    if let Some((name, pod)) = user.split_once(" on ") {
        let (pod, uid) = pod.split_once(':').unwrap();
        let key = |key: &str| format!("authentication.kubernetes.io/{key}");
        return json!({"username": name, "extra": {key("pod-name"): [pod], key("pod-uid"): [uid]}});
    }
    match user.split_once(" in ") {
        Some((name, groups)) => json!({"username": name, "groups": groups.split(',').collect::<Vec<_>>()}),
        None => json!({"username": user}),
    }
}

/// The time at which every scenario starts.
pub(crate) fn start() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().unwrap()
}

pub(crate) struct Cluster {
    objects: Objects,
    policies: Policies,
    pub(crate) now: Timestamp,
}

/// The result of a request.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) allowed: bool,
    /// The findings in any mode: the rule, and the message for the user.
    pub(crate) findings: Vec<(&'static str, String)>,
    pub(crate) warnings: Vec<String>,
    pub(crate) patch: Option<Patch>,
}

impl Judged {
    pub(crate) fn messages(&self) -> impl Iterator<Item = &str> {
        self.findings.iter().map(|(_, message)| message.as_str())
    }
}

/// The rules that refused a request; `Ok` if none did.
pub(crate) type Verdict = Result<(), Vec<&'static str>>;

/// The policies of a cluster. Thousands of clusters of the tests have the same.
fn loaded(rules: &str, shop: Option<&str>) -> Policies {
    static LOADED: Mutex<BTreeMap<(String, Option<String>), Policies>> = Mutex::new(BTreeMap::new());
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let policies = loaded.entry((rules.to_owned(), shop.map(str::to_owned))).or_insert_with(|| {
        let mut files = PolicyFiles::default();
        files.set_cluster("cluster.yaml".into(), format!("{SHIPPED}{rules}\n"));
        if let Some(shop) = shop {
            let text = format!("apiVersion: interlock.dev/v1alpha1\nkind: NamespacePolicy\n{shop}\n");
            files.add_namespace("shop".to_owned(), "namespaces/shop.yaml".into(), text);
        }
        Policies::of_files(&files).unwrap()
    });
    policies.clone()
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self::with_policy("")
    }

    /// A cluster with this cluster policy.
    pub(crate) fn with_policy(rules: &str) -> Self {
        Self::with_policies(rules, None)
    }

    /// Like [`Self::with_policy`], with an additional policy for namespace `shop`.
    pub(crate) fn with_policies(rules: &str, shop: Option<&str>) -> Self {
        let policies = loaded(rules, shop);
        Self { objects: Objects::new(512 << 20).noting_losses(), policies, now: start() }
    }

    pub(crate) fn later(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    /// Adds an existing object.
    pub(crate) fn given(&mut self, object: Value) {
        let text = object.to_string();
        let object = RawObject::delimited(&text);
        let key = ObjectKey::of_object(object).unwrap();
        let restored = self.objects.get(&key).and_then(|known| recording::restored(object, &known));
        self.objects.put(key, restored.map_or(text, |restored| restored.get().to_owned()));
    }

    pub(crate) fn given_record(&mut self, record: &Rec) {
        self.given(record.object());
    }

    /// The JSON text of an object.
    pub(crate) fn stored(&self, key: &ObjectKey) -> Option<String> {
        self.objects.get(key)
    }

    pub(crate) fn create(&mut self, user: &str, record: &Rec) -> Verdict {
        let created = Rec { created: self.now, ..record.clone() };
        self.judge("CREATE", user, None, Some(created.object()), Some(&record.name()))
    }

    /// Writes over the record with the same name, like a client that does not know stamps.
    pub(crate) fn update(&mut self, user: &str, old: &Rec, new: &Rec) -> Verdict {
        let old_object = old.object();
        self.judge("UPDATE", user, Some(old_object), Some(new.object()), Some(&old.name()))
    }

    pub(crate) fn update_objects(&mut self, user: &str, old: Value, new: Value) -> Verdict {
        let name = old["metadata"]["name"].as_str().unwrap().to_owned();
        self.judge("UPDATE", user, Some(old), Some(new), Some(&name))
    }

    /// An edit while the mutating half is out of service.
    pub(crate) fn update_unstamped(&mut self, user: &str, old: Value, new: Value) -> Verdict {
        let name = old["metadata"]["name"].as_str().unwrap().to_owned();
        let text = self.review("UPDATE", user, Some(old), Some(new), Some(&name)).to_string();
        let judged = self.validated(&Review::parse(text.as_bytes()).unwrap().request);
        if judged.allowed { Ok(()) } else { Err(judged.findings.into_iter().map(|(rule, _)| rule).collect()) }
    }

    /// An edit of a cluster-scoped object.
    pub(crate) fn update_cluster_scoped(&mut self, user: &str, old: Value, new: Value) -> Judged {
        let name = old["metadata"]["name"].as_str().unwrap().to_owned();
        let mut line = self.review("UPDATE", user, Some(old), Some(new), Some(&name));
        line["request"]["namespace"] = Value::Null;
        self.send(&line)
    }

    pub(crate) fn create_object(&mut self, user: &str, new: Value) -> Verdict {
        self.judge("CREATE", user, None, Some(new), None)
    }

    pub(crate) fn delete(&mut self, user: &str, record: &Rec) -> Verdict {
        self.judge("DELETE", user, Some(record.object()), None, Some(&record.name()))
    }

    /// One object of a collection delete.
    pub(crate) fn delete_among_others(&mut self, user: &str, record: &Rec) -> Verdict {
        self.judge("DELETE", user, Some(record.object()), None, None)
    }

    /// Like a refused request, but returns the messages, which a [`Verdict`] drops.
    pub(crate) fn refusal(&mut self, operation: &str, user: &str, record: &Rec) -> String {
        let object = Some(record.object());
        let (old, new) = if operation == "DELETE" { (object, None) } else { (None, object) };
        self.send(&self.review(operation, user, old, new, Some(&record.name()))).messages().collect()
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
        let judged = self.send(line);
        if judged.allowed { Ok(()) } else { Err(judged.findings.into_iter().map(|(rule, _)| rule).collect()) }
    }

    fn review(&self, operation: &str, user: &str, old: Option<Value>, new: Option<Value>, name: Option<&str>) -> Value {
        let object = new.as_ref().or(old.as_ref()).unwrap();
        let text = |key: &str| object[key].as_str().unwrap().to_owned();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("shop");
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "operation": operation, "name": name, "namespace": namespace,
                "kind": {"group": group, "version": version, "kind": kind},
                "resource": {"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())},
                "userInfo": user_info(user), "object": new, "oldObject": old,
            },
        })
    }

    /// `kubectl scale` of an existing object.
    pub(crate) fn scale(&mut self, user: &str, object: &Value, from: u64, to: u64) -> Verdict {
        let name = object["metadata"]["name"].as_str().unwrap();
        let mut line = self.review("UPDATE", user, Some(object.clone()), Some(object.clone()), Some(name));
        let request = &mut line["request"];
        request["subResource"] = "scale".into();
        request["kind"] = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        request["oldObject"] = json!({"kind": "Scale", "spec": {"replicas": from}});
        request["object"] = json!({"kind": "Scale", "spec": {"replicas": to}});
        self.verdict(&line)
    }

    pub(crate) fn delete_object(&mut self, user: &str, object: Value) -> Verdict {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        self.judge("DELETE", user, Some(object), None, Some(&name))
    }

    /// The deletion of a cluster-scoped object.
    pub(crate) fn delete_cluster_scoped(&mut self, user: &str, object: Value) -> Verdict {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let mut line = self.review("DELETE", user, Some(object), None, Some(&name));
        line["request"]["namespace"] = Value::Null;
        self.verdict(&line)
    }

    /// An edit through a subresource.
    pub(crate) fn update_through(&mut self, sub_resource: &str, user: &str, old: Value, new: Value) -> Verdict {
        let name = old["metadata"]["name"].as_str().unwrap().to_owned();
        let mut line = self.review("UPDATE", user, Some(old), Some(new), Some(&name));
        line["request"]["subResource"] = sub_resource.into();
        self.verdict(&line)
    }

    /// The findings about a write of an object, one sentence each, whether it is admitted or not.
    pub(crate) fn findings(&mut self, user: &str, old: Option<Value>, new: Option<Value>) -> Vec<String> {
        let operation = match (&old, &new) {
            (None, _) => "CREATE",
            (_, None) => "DELETE",
            _ => "UPDATE",
        };
        let name = new.as_ref().or(old.as_ref()).unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
        self.send(&self.review(operation, user, old, new, Some(&name))).messages().map(str::to_owned).collect()
    }

    /// The messages to the user about an edit, from refusals and warnings.
    pub(crate) fn messages_for(&mut self, user: &str, old: Value, new: Value) -> String {
        let name = old["metadata"]["name"].as_str().unwrap().to_owned();
        self.send(&self.review("UPDATE", user, Some(old), Some(new), Some(&name))).messages().collect()
    }

    /// The result of a write of an object.
    pub(crate) fn judged(&mut self, user: &str, old: Option<Value>, new: Value) -> Judged {
        let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
        let name = new["metadata"]["name"].as_str().unwrap().to_owned();
        self.send(&self.review(operation, user, old, Some(new), Some(&name)))
    }

    /// Judges a review like a cluster: stamps it first, and applies it if it is admitted.
    fn send(&mut self, review: &Value) -> Judged {
        let text = review.to_string();
        let review = Review::parse(text.as_bytes()).unwrap();
        let restored = self.stamped_before(&review.request);
        let old_object = restored.as_deref().map(RawObject::from).or(review.request.old_object);
        let sent = Request { old_object, ..review.request };
        let patch = self.patch(&sent);
        let stamped = patch.as_ref().and_then(|patch| recording::patched(sent.object?, patch));
        let request = Request { object: stamped.as_deref().map(RawObject::from).or(sent.object), ..sent };
        let judged = self.validated(&request);
        if judged.allowed {
            self.objects.apply(&request);
        }
        Judged { patch, ..judged }
    }

    /// The stored record with stamps, as the cluster has it. Tests write records without stamps.
    fn stamped_before(&self, request: &Request<'_>) -> Option<Box<RawValue>> {
        storing_kind(request)?;
        recording::restored(request.old_object?, &self.objects.get(&ObjectKey::of_request(request)?)?)
    }

    fn patch(&self, request: &Request<'_>) -> Option<Patch> {
        self.with_facts(request, |facts, policy| {
            let driver = driver(facts, policy, |records, matches| {
                self.objects.helm_releases(|it| it.drives(&records.namespace, &records.name) && matches(it))
            });
            let inherited = inherits_protector(facts).and_then(|(storage, ReleaseRef { namespace, name })| {
                self.objects.protector_of(storage, &namespace, &name)
            });
            let known = ClusterStamps { driver, protected_by: inherited };
            stamp(facts, policy, overrides::void(facts, policy, self.now).as_deref(), known, self.now)
        })
    }

    fn validated(&self, request: &Request<'_>) -> Judged {
        let outcome = self.with_facts(request, |facts, policy| {
            let mut evidence = Evidence::default();
            loop {
                match self.outcome(facts, policy, &evidence) {
                    Ok(outcome) => {
                        if let Some((loss, known)) = evidence.loss() {
                            assert!(self.objects.note_loss(loss, known, outcome.allowed, self.now));
                        }
                        return outcome;
                    }
                    Err(query) => {
                        let answer = self.objects.answer(&query, facts.effort);
                        evidence.add(query, answer);
                    }
                }
            }
        });
        let findings = outcome.violations.iter().map(|it| (it.violation.rule.as_str(), it.violation.message()));
        let findings = findings.collect();
        Judged { allowed: outcome.allowed, findings, warnings: outcome.warnings, patch: None }
    }

    fn outcome(&self, facts: &Facts<'_>, policy: &Policy, evidence: &Evidence) -> Result<Outcome, Query> {
        if let Subject::Own(write) = &facts.subject {
            return freezes::outcome(write, &facts.actor, policy, evidence, self.now);
        }
        match decide(facts, policy, evidence, self.now) {
            Step::Done(judged) => Ok(Outcome::of(policy, judged)),
            Step::Ask(query) => Err(query),
        }
    }

    fn with_facts<T>(&self, request: &Request<'_>, then: impl FnOnce(&Facts<'_>, &Policy) -> T) -> T {
        with_facts(request, &self.policies.clone().knowing(self.objects.namespace_labels().into()), then)
    }
}

/// Calls a function with the facts of a request, and the policy of its namespace.
pub(crate) fn with_facts<T>(
    request: &Request<'_>,
    policies: &Policies,
    then: impl FnOnce(&Facts<'_>, &Policy) -> T,
) -> T {
    let effort = Effort::of_review();
    let objects = RequestObjects::read(request).unwrap();
    let bodies = objects.payloads(request.operation).inflate(&effort);
    let facts = Facts::of(request, &objects, &bodies, &effort);
    let facts = Facts { actor: policies.accounts().recognise(facts.actor), ..facts };
    then(&facts, policies.of(request.namespace()))
}

/// Judges a request at the start of the scenario, and answers all queries.
pub(crate) fn decided(
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
