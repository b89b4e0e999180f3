//! Commits of Sveltos in pull mode: what a group may leave out.

mod claims;
mod conflicts;
mod departures;
mod freezes;
mod kustomize;
mod numbers;
mod protected;
mod references;
mod rows;
mod shapes;
mod stops;
mod wipes;

use std::path::Path;

use serde_json::{Value, json};

use crate::decision::{Decision, ReviewRun};
use crate::effort::Effort;
use crate::evidence::Query;
use crate::facts::{Facts, RecordBodies, RequestObjects};
use crate::memory::Objects;
use crate::object::ObjectKey;
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::review::{Operation, Review};
use crate::rules::tests::scenario::decided;

const LIB: &str = "lib.projectsveltos.io";
const CONFIG: &str = "config.projectsveltos.io";
const CONTROLLER: &str = "system:serviceaccount:projectsveltos:addon-controller";
const SUMMARY: &str = "shop-sveltos-prod";

/// The result of a write, and its queries.
struct ReviewedCommit {
    outcome: Outcome,
    decision: Decision,
    asked: Vec<Query>,
}

impl ReviewedCommit {
    #[track_caller]
    fn admitted(&self) -> &Self {
        assert!(self.outcome.violations.is_empty(), "expected no finding: {:?}", self.outcome.violations);
        self
    }

    #[track_caller]
    fn without_a_read(&self) {
        assert_eq!(self.asked, []);
    }

    /// Asserts that exactly these rules refuse, with these texts in the message.
    #[track_caller]
    fn refused(&self, rules: &[&'static str], texts: &[&str]) -> &Self {
        self.with_code(rules, 422, texts)
    }

    /// Like [`Self::refused`], with another status code.
    #[track_caller]
    fn with_code(&self, rules: &[&'static str], code: u16, texts: &[&str]) -> &Self {
        let refusing: Vec<_> = self.outcome.refusals().map(|judged| judged.violation.rule.as_str()).collect();
        assert_eq!((refusing.as_slice(), self.outcome.code), (rules, code), "{}", self.outcome.message);
        for text in texts {
            assert!(self.outcome.message.contains(text), "expected {text:?} in {}", self.outcome.message);
        }
        self
    }

    /// Asserts that the write is admitted, with these texts in a warning.
    #[track_caller]
    fn warned(&self, rule: &'static str, texts: &[&str]) -> &Self {
        let rules: Vec<_> = self.outcome.violations.iter().map(|judged| judged.violation.rule.as_str()).collect();
        assert_eq!((self.outcome.allowed, rules), (true, vec![rule]), "{}", self.outcome.message);
        let warnings = self.outcome.warnings.join(" ").replace(" interlock: ", " ");
        for text in texts {
            assert!(warnings.contains(text), "expected {text:?} in {warnings}");
        }
        self
    }

    fn asked_for(&self, kind: &str) -> bool {
        self.asked.iter().any(|query| matches!(query, Query::Object(it) if it.0.kind == kind))
    }
}

/// A profile `shop` with the charts web, cache and db, all delivered to the cluster `civ/prod` earlier.
struct Shop {
    objects: Objects,
    policy: Policy,
    summary: Value,
}

impl Shop {
    fn new() -> Self {
        Self::under("")
    }

    /// A shop with these settings of `dropped-bundles`.
    fn under(settings: &str) -> Self {
        let separator = if settings.is_empty() { "" } else { ", " };
        let text = format!(
            "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nrules:\n  \
             dropped-bundles: {{mode: enforce{separator}{settings}}}\n  remove-while-live: {{mode: enforce}}\n"
        );
        let shop = Self {
            objects: Objects::new(1 << 20),
            policy: Policy::parse(&text, Path::new("test")).unwrap(),
            summary: json!({
                "apiVersion": "config.projectsveltos.io/v1beta1", "kind": "ClusterSummary",
                "metadata": {"name": SUMMARY, "namespace": "civ"},
                "spec": {
                    "clusterNamespace": "civ", "clusterName": "prod", "clusterType": "Sveltos",
                    "clusterProfileSpec": {"helmCharts": [chart("web"), chart("cache"), chart("db")]},
                },
                "status": {
                    "featureSummaries": [{"featureID": "Helm", "status": "Provisioning"}],
                    "helmReleaseSummaries": [managing("web"), managing("cache"), managing("db")],
                },
            }),
        };
        shop.put(&shop.summary);
        shop.put(&json!({
            "apiVersion": "lib.projectsveltos.io/v1beta1", "kind": "SveltosCluster",
            "metadata": {"name": "prod", "namespace": "civ"}, "spec": {"pullMode": true},
        }));
        shop
    }

    fn put(&self, object: &Value) {
        self.objects.put(key(object), object.to_string());
    }

    fn remove(&self, group: &str, kind: &str, name: &str) {
        self.objects.remove(&ObjectKey::new(group, kind, "civ", name));
    }

    /// Changes the ClusterSummary.
    fn change(&mut self, pointer: &str, value: Value) {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let parent = self.summary.pointer_mut(parent).unwrap();
        match parent {
            Value::Array(items) => items[field.parse::<usize>().unwrap()] = value,
            parent => parent[field.replace("~1", "/")] = value,
        }
        self.put(&self.summary);
    }

    fn releases(&mut self, entries: Value) {
        self.change("/status/helmReleaseSummaries", entries);
    }

    fn charts(&mut self, charts: Value) {
        self.change("/spec/clusterProfileSpec/helmCharts", charts);
    }

    /// The agent's report of what it delivered.
    fn delivered(&self, features: Value) {
        self.delivered_by(json!([{"clusterProfileName": "shop", "Features": features}]));
    }

    fn delivered_by(&self, profiles: Value) {
        self.put(&json!({
            "apiVersion": "config.projectsveltos.io/v1beta1", "kind": "ClusterConfiguration",
            "metadata": {"name": "sveltos--prod", "namespace": "civ"},
            "status": {"clusterProfileResources": profiles},
        }));
    }

    fn annotate_profile(&self, releases: &str) {
        self.annotate_profile_with("interlock.dev/may-render-nothing", releases);
    }

    fn annotate_profile_with(&self, annotation: &str, releases: &str) {
        let annotations = json!({annotation: releases});
        let metadata = json!({"name": "shop", "annotations": annotations});
        let profile =
            json!({"apiVersion": "config.projectsveltos.io/v1beta1", "kind": "ClusterProfile", "metadata": metadata});
        self.objects.put(ObjectKey::new(CONFIG, "ClusterProfile", "", "shop"), profile.to_string());
    }

    /// Writes all bundles of a release, with a mark on the last one, and returns their names.
    fn stage(&self, release: &str, bundles: usize) -> Vec<String> {
        self.stage_some(release, bundles, bundles)
    }

    /// Writes only the first bundles of a release.
    fn stage_some(&self, release: &str, written: usize, of: usize) -> Vec<String> {
        let stage = |index: usize| {
            self.indexed(
                &format!("{release}-{index}"),
                Some(&format!("shop-{release}-charts-{index}")),
                json!({
                    "helmReleaseNamespace": "shop", "helmReleaseName": release, "helmReleaseUninstall": false,
                    "isLastHelmReleaseBundle": index + 1 == of, "resources": ["kind: Deployment\n"],
                }),
            )
        };
        (0..written).map(stage).collect()
    }

    fn bundle(&self, name: &str, spec: Value) -> String {
        self.indexed(name, None, spec)
    }

    /// A bundle with an index.
    fn indexed(&self, name: &str, index: Option<&str>, spec: Value) -> String {
        let name = format!("config-{name}");
        let annotations = index.map(|index| json!({"pullmode.projectsveltos.io/index": index}));
        let metadata = json!({"name": name, "namespace": "civ", "annotations": annotations});
        self.put(&json!({
            "apiVersion": "lib.projectsveltos.io/v1beta1", "kind": "ConfigurationBundle", "metadata": metadata, "spec": spec,
        }));
        name
    }

    /// Writes the bundles of every release, and returns the group that lists them.
    fn complete(&self) -> Value {
        group(&[self.stage("web", 1), self.stage("cache", 2), self.stage("db", 3)].concat())
    }

    fn create(&self, group: &Value) -> ReviewedCommit {
        self.create_as(CONTROLLER, group)
    }

    fn create_as(&self, user: &str, group: &Value) -> ReviewedCommit {
        self.judge(user, "CREATE", None, Some(group))
    }

    fn update(&self, old: &Value, new: &Value) -> ReviewedCommit {
        self.judge(CONTROLLER, "UPDATE", Some(old), Some(new))
    }

    fn judge(&self, user: &str, operation: &str, old: Option<&Value>, new: Option<&Value>) -> ReviewedCommit {
        let object = new.or(old).unwrap();
        let kind = object["kind"].as_str().unwrap();
        let resource = format!("{}s", kind.to_lowercase());
        let text = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "operation": operation, "name": object["metadata"]["name"], "namespace": "civ",
                "kind": {"group": LIB, "version": "v1beta1", "kind": kind},
                "resource": {"group": LIB, "version": "v1beta1", "resource": resource},
                "userInfo": {"username": user}, "object": new, "oldObject": old,
            },
        })
        .to_string();
        let review = Review::parse(text.as_bytes()).unwrap();
        let objects = RequestObjects::read(&review.request).unwrap();
        let bodies = RecordBodies::default();
        let effort = Effort::of_review();
        let facts = Facts::of(&review.request, &objects, &bodies, &effort);
        assert!(objects.declaration.is_none() || review.request.operation != Operation::Delete);
        let mut asked = Vec::new();
        let judged = decided(&facts, &self.policy, |query| {
            assert!(!asked.contains(query), "asked twice: {query:?}");
            // Freezes come from a cache.
            if !matches!(query, Query::Freezes(_)) {
                asked.push(query.clone());
            }
            self.objects.answer(query, &Effort::of_review())
        });
        let outcome = Outcome::of(&self.policy, judged);
        let decision = Decision::of(&review.request, &facts, &outcome, ReviewRun::default());
        ReviewedCommit { outcome, decision, asked }
    }
}

fn key(object: &Value) -> ObjectKey {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
    let group = text("/apiVersion").split_once('/').unwrap().0.to_owned();
    ObjectKey::new(&group, &text("/kind"), &text("/metadata/namespace"), &text("/metadata/name"))
}

fn chart(release: &str) -> Value {
    json!({"chartName": release, "releaseName": release, "releaseNamespace": "shop", "helmChartAction": "Install"})
}

fn uninstall(release: &str) -> Value {
    let mut chart = chart(release);
    chart["helmChartAction"] = "Uninstall".into();
    chart
}

fn managing(release: &str) -> Value {
    json!({"releaseName": release, "releaseNamespace": "shop", "status": "Managing", "valuesHash": "aGFzaA=="})
}

fn never_staged(release: &str) -> Value {
    json!({"releaseName": release, "releaseNamespace": "shop", "status": "Managing"})
}

fn failed(release: &str, message: &str) -> Value {
    let mut entry = managing(release);
    entry["failureMessage"] = message.into();
    entry
}

fn conflict(release: &str) -> Value {
    let message = "ClusterProfile rival manages it";
    json!({"releaseName": release, "releaseNamespace": "shop", "status": "Conflict", "conflictMessage": message})
}

/// A Ready group of the feature Helm. Without bundles the key is absent, because Go omits it.
fn group(bundles: &[String]) -> Value {
    let item = |name: &String| {
        json!({
            "contentRef": {"apiVersion": "lib.projectsveltos.io/v1beta1", "kind": "ConfigurationBundle", "namespace": "civ", "name": name},
            "hash": "aGFzaA==",
        })
    };
    let mut group = json!({
        "apiVersion": "lib.projectsveltos.io/v1beta1", "kind": "ConfigurationGroup",
        "metadata": {
            "name": "config-g", "namespace": "civ",
            "labels": {
                "pullmode.projectsveltos.io/clustername": "prod", "pullmode.projectsveltos.io/requestorfeature": "Helm",
                "pullmode.projectsveltos.io/requestorkind": "ClusterSummary",
            },
            "annotations": {"pullmode.projectsveltos.io/requestorname": SUMMARY},
        },
        "spec": {
            "action": "Deploy", "updatePhase": "Ready", "sourceStatus": "Active", "dryRun": false, "tier": 100,
            "deployedGroupVersionKind": ["Deployment.v1.apps"], "requestorHash": "aGFzaA==",
            "sourceRef": {"apiVersion": "config.projectsveltos.io/v1beta1", "kind": "ClusterProfile", "name": "shop"},
        },
    });
    if !bundles.is_empty() {
        group["spec"]["configurationItem"] = bundles.iter().map(item).collect();
    }
    group
}

fn with(group: &Value, field: &str, value: impl Into<Value>) -> Value {
    let mut group = group.clone();
    group["spec"][field] = value.into();
    group
}

fn of_feature(mut group: Value, feature: &str) -> Value {
    group["metadata"]["labels"]["pullmode.projectsveltos.io/requestorfeature"] = feature.into();
    group
}

/// The same group with a finalizer, which only the agent sets.
fn with_finalizer(group: &Value) -> Value {
    let mut group = group.clone();
    group["metadata"]["finalizers"] = json!(["agent"]);
    group
}
