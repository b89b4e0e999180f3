//! Sveltos' addon-controller in pull mode, played by kubectl under its account: the writes for one profile on one
//! cluster, in the order of the real controller.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::harness::clients::{Identity, Kubectl};
use crate::harness::controllers::{account, establish_kinds};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::Output;

const LIB: &str = "lib.projectsveltos.io/v1beta1";
const CONFIG: &str = "config.projectsveltos.io/v1beta1";

/// The kinds of Sveltos on a plane, and the account of its controller.
#[track_caller]
pub(crate) fn install(plane: &Plane) -> Identity {
    establish_kinds(plane);
    account(plane, "projectsveltos", "addon-controller")
}

/// Installs it on the shared plane, once.
#[track_caller]
pub(crate) fn shared() -> &'static Identity {
    static ACCOUNT: OnceLock<Identity> = OnceLock::new();
    ACCOUNT.get_or_init(|| install(Plane::shared()))
}

/// The rollout of a profile with the namespace's name on its cluster `prod`.
pub(crate) struct AddonController<'a> {
    namespace: &'a Namespace<'a>,
    kubectl: Kubectl,
    feature: &'static str,
    /// Bundles staged since the last discard, in order: index and name.
    staged: Vec<(String, String)>,
}

impl<'a> AddonController<'a> {
    /// Registers the cluster and creates the profile with these charts.
    #[track_caller]
    pub(crate) fn new(namespace: &'a Namespace<'a>, account: &Identity, charts: &[&str]) -> Self {
        let kubectl = namespace.kubectl_as(account);
        let controller = Self { namespace, kubectl, feature: "Helm", staged: Vec::new() };
        let cluster = json!({"kind": "SveltosCluster", "metadata": {"name": "prod"}, "spec": {"pullMode": true}});
        controller.put(LIB, cluster);
        controller.put(CONFIG, json!({"kind": "ClusterProfile", "metadata": {"name": namespace.name()}, "spec": {}}));
        let spec = json!({
            "clusterNamespace": namespace.name(), "clusterName": "prod", "clusterType": "Sveltos",
            "clusterProfileSpec": {"helmCharts": charts.iter().map(|chart| chart_of(chart)).collect::<Vec<_>>()},
        });
        controller.put(CONFIG, json!({"kind": "ClusterSummary", "metadata": {"name": "summary"}, "spec": spec}));
        controller
    }

    /// The rollout of another feature of the same profile.
    pub(crate) fn of_feature(&self, feature: &'static str) -> Self {
        Self { namespace: self.namespace, kubectl: self.kubectl.clone(), feature, staged: Vec::new() }
    }

    #[track_caller]
    fn put(&self, api_version: &str, mut object: Value) {
        object["apiVersion"] = api_version.into();
        self.kubectl.apply(&object, &[]).expect_success();
    }

    /// Changes the profile's desired state.
    #[track_caller]
    pub(crate) fn want(&self, spec: &Value) {
        let patch = json!({"spec": {"clusterProfileSpec": spec}}).to_string();
        self.kubectl.ok(&["patch", "clustersummary/summary", "--type=merge", "-p", &patch]);
    }

    /// Reports the releases' status, as the controller does just before each commit.
    #[track_caller]
    pub(crate) fn report(&self, releases: &[Value]) {
        let patch = json!({"status": {"helmReleaseSummaries": releases}}).to_string();
        self.kubectl.ok(&["patch", "clustersummary/summary", "--subresource=status", "--type=merge", "-p", &patch]);
    }

    /// The group of the feature, while a rollout is in flight, and all bundles.
    #[track_caller]
    fn pulled(&self) -> (Option<Value>, Vec<Value>) {
        let selector = format!("pullmode.projectsveltos.io/requestorfeature={}", self.feature);
        let list = self.kubectl.get(&["configurationgroups,configurationbundles", "-l", &selector]);
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let (groups, bundles): (Vec<_>, Vec<_>) =
            items.into_iter().partition(|item| item["kind"] == "ConfigurationGroup");
        (groups.into_iter().next(), bundles)
    }

    /// The group of the feature, while a rollout is in flight.
    #[track_caller]
    pub(crate) fn group(&self) -> Option<Value> {
        self.pulled().0
    }

    /// The bundles that the group names.
    #[track_caller]
    pub(crate) fn listed(&self) -> Vec<String> {
        self.group().map_or_else(Vec::new, |group| names_of(&group))
    }

    /// Starts a rollout, or ends it after a failure: deletes the bundles that the group does not name.
    #[track_caller]
    pub(crate) fn discard(&mut self) {
        self.staged.clear();
        let (group, bundles) = self.pulled();
        self.delete(&bundles, &group.map_or_else(Vec::new, |group| names_of(&group)));
    }

    #[track_caller]
    fn delete(&self, bundles: &[Value], but: &[String]) {
        let names = bundles.iter().filter_map(|bundle| bundle["metadata"]["name"].as_str());
        let names: Vec<_> = names.filter(|name| !but.iter().any(|kept| kept == name)).collect();
        if !names.is_empty() {
            self.kubectl.ok(&[&["delete", "configurationbundle"], names.as_slice()].concat());
        }
    }

    /// Stages the first `written` of the `of` bundles of a release.
    #[track_caller]
    pub(crate) fn stage_some(&mut self, release: &str, written: usize, of: usize) {
        for index in 0..written {
            let spec = json!({
                "resources": [format!("kind: ConfigMap\nmetadata:\n  name: {release}-{index}\n")],
                "helmReleaseNamespace": "shop", "helmReleaseName": release, "helmReleaseUninstall": false,
                "isLastHelmReleaseBundle": index + 1 == of,
            });
            self.stage_bundle(&format!("shop-{release}-charts-{index}"), &spec);
        }
    }

    /// Stages all bundles of a release.
    #[track_caller]
    pub(crate) fn stage(&mut self, release: &str, bundles: usize) {
        self.stage_some(release, bundles, bundles);
    }

    /// Stages one bundle: marks an existing group as Preparing, then creates or replaces the bundle.
    #[track_caller]
    pub(crate) fn stage_bundle(&mut self, index: &str, spec: &Value) {
        let (group, bundles) = self.pulled();
        if let Some(mut group) = group {
            group["spec"]["updatePhase"] = "Preparing".into();
            self.kubectl.with_file("replace", &group, &[]).expect_success();
        }
        let known = bundles
            .iter()
            .find(|bundle| bundle["metadata"]["annotations"]["pullmode.projectsveltos.io/index"] == index);
        let (verb, name) = match known {
            Some(bundle) => ("replace", bundle["metadata"]["name"].as_str().unwrap_or_default().to_owned()),
            None => ("create", random_name()),
        };
        let mut metadata = self.metadata(&name);
        metadata["annotations"]["pullmode.projectsveltos.io/index"] = index.into();
        let bundle = json!({"apiVersion": LIB, "kind": "ConfigurationBundle", "metadata": metadata, "spec": spec});
        self.kubectl.with_file(verb, &bundle, &[]).expect_success();
        self.staged.push((index.to_owned(), name));
    }

    /// Commits exactly the staged bundles. If the commit is admitted, deletes the others.
    #[track_caller]
    pub(crate) fn commit(&self) -> Output {
        self.commit_with(&json!({}))
    }

    /// Like `commit`, with other values for some fields.
    #[track_caller]
    pub(crate) fn commit_with(&self, fields: &Value) -> Output {
        let staged: Vec<_> = self.staged.iter().map(|(_, name)| name.clone()).collect();
        let output = self.write_group(&staged, fields);
        if output.success() {
            self.delete(&self.pulled().1, &staged);
        }
        output
    }

    /// Creates the group under a new name, or replaces its specification.
    #[track_caller]
    pub(crate) fn write_group(&self, bundles: &[String], fields: &Value) -> Output {
        let new = self.new_group(bundles, fields);
        match self.group() {
            Some(mut group) => {
                group["spec"] = new["spec"].clone();
                self.kubectl.with_file("replace", &group, &[])
            }
            None => self.kubectl.with_file("create", &new, &[]),
        }
    }

    /// A group with these bundles, under a name that was never used.
    pub(crate) fn new_group(&self, bundles: &[String], fields: &Value) -> Value {
        let mut spec = json!({
            "action": "Deploy", "updatePhase": "Ready", "sourceStatus": "Active", "dryRun": false, "tier": 100,
            "deployedGroupVersionKind": ["ConfigMap.v1."], "requestorHash": "aGFzaA==",
            "sourceRef": {"apiVersion": CONFIG, "kind": "ClusterProfile", "name": self.namespace.name()},
        });
        if !bundles.is_empty() {
            let reference = |name: &String| json!({"apiVersion": LIB, "kind": "ConfigurationBundle", "namespace": self.namespace.name(), "name": name});
            spec["configurationItem"] =
                bundles.iter().map(|name| json!({"contentRef": reference(name), "hash": "aGFzaA=="})).collect();
        }
        for (field, value) in fields.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        json!({"apiVersion": LIB, "kind": "ConfigurationGroup", "metadata": self.metadata(&random_name()), "spec": spec})
    }

    /// Deletes the ClusterSummary, as after the deletion of the profile. It stays until the teardown has ended.
    #[track_caller]
    pub(crate) fn start_teardown(&self) {
        let finalizer = r#"{"metadata":{"finalizers":["clustersummaryfinalizer.projectsveltos.io/e2e"]}}"#;
        self.kubectl.ok(&["patch", "clustersummary/summary", "--type=merge", "-p", finalizer]);
        self.kubectl.ok(&["delete", "clustersummary/summary", "--wait=false"]);
    }

    /// Ends the teardown: the ClusterSummary is gone.
    #[track_caller]
    pub(crate) fn end_teardown(&self) {
        self.kubectl.ok(&[
            "patch",
            "clustersummary/summary",
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":null}}"#,
        ]);
    }

    /// Ends a rollout that the agent has completed: deletes the bundles, then the group.
    #[track_caller]
    pub(crate) fn terminate(&mut self) {
        self.staged.clear();
        let (group, bundles) = self.pulled();
        self.delete(&bundles, &[]);
        let group = group.expect("a rollout is in flight");
        let name = group["metadata"]["name"].as_str().unwrap_or_default();
        self.kubectl.ok(&["delete", "configurationgroup", name, "--wait=false"]);
    }

    fn metadata(&self, name: &str) -> Value {
        json!({
            "name": name, "namespace": self.namespace.name(),
            "labels": {
                "pullmode.projectsveltos.io/clustername": "prod",
                "pullmode.projectsveltos.io/requestorkind": "ClusterSummary",
                "pullmode.projectsveltos.io/requestorfeature": self.feature,
            },
            "annotations": {"pullmode.projectsveltos.io/requestorname": "summary"},
        })
    }
}

/// A chart of a profile.
pub(crate) fn chart_of(release: &str) -> Value {
    json!({"chartName": release, "releaseName": release, "releaseNamespace": "shop", "helmChartAction": "Install"})
}

/// The status of a release that was rendered at least once.
pub(crate) fn managing(release: &str) -> Value {
    json!({"releaseName": release, "releaseNamespace": "shop", "status": "Managing", "valuesHash": "aGFzaA=="})
}

/// The status of a release after its chart failed.
pub(crate) fn failed(release: &str, message: &str) -> Value {
    let mut entry = managing(release);
    entry["failureMessage"] = message.into();
    entry
}

fn names_of(group: &Value) -> Vec<String> {
    let items = group["spec"]["configurationItem"].as_array();
    let name = |item: &Value| item["contentRef"]["name"].as_str().map(str::to_owned);
    items.into_iter().flatten().filter_map(name).collect()
}

fn random_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("config-{:020}", COUNT.fetch_add(1, Ordering::Relaxed))
}
