//! The acts in every state: for each column of the table an allowed one and one that a rule refuses, as dry runs so
//! that they can be repeated. Only the clean-up by controllers is real.

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::harness::addon_controller::{AddonController, install, managing};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Kubectl};
use crate::harness::controllers::establish_kinds;
use crate::harness::eventually::eventually;
use crate::harness::forging;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::Output;
use crate::harness::records::{V1, V2};

/// Messages of an act that failed closed: the API server's without an answer, and Interlock's if it could not judge.
const CLOSED: [&str; 2] = ["failed calling webhook", "Could not check"];

/// An act of one column.
enum Act {
    /// kubectl with these arguments.
    Run(Vec<String>),
    /// kubectl with this verb and object.
    With(&'static str, Value),
}

/// How a column is read.
enum Column {
    /// Judged if the second is refused, open if it is admitted, closed if even the first is refused.
    Pair(Act, Act),
    /// Judged if this causes a rule's warning, open if not.
    Warned(Act, &'static str),
    /// Judged if the record still has its holder after this write.
    Stamp(Act),
}

pub(super) struct Columns<'p> {
    plane: &'p Plane,
    namespace: Namespace<'p>,
    columns: Vec<(&'static str, Column)>,
    /// The namespaces that are to be cleaned up, by state.
    doomed: Mutex<HashMap<String, Namespace<'p>>>,
    transcript: Mutex<Vec<String>>,
}

impl<'p> Columns<'p> {
    /// Creates the objects for all acts, while all is well.
    #[track_caller]
    pub(super) fn new(plane: &'p Plane) -> Self {
        establish_kinds(plane);
        plane.define("manifests/base/releaseoverrides.yaml");
        let namespace = Namespace::new(plane, "failure");
        let helm = namespace.helm(HelmVersion::V3, Driver::Secret, "alice");
        let chart = Chart::new("demo");
        helm.ok(&["install", "demo", chart.path()]);
        helm.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
        let columns = vec![
            ("record CREATE", created(&namespace)),
            (
                "record UPDATE",
                pair(&["label", "secret", V2, "team=shop"], &["label", "--overwrite", "secret", V2, "status=failed"]),
            ),
            ("record DELETE", pair(&["delete", "secret", V1], &["delete", "secret", V2])),
            ("stamp", Column::Stamp(run(&["annotate", "secret", V2, "interlock.dev/holder-", "-o", "json"]))),
            ("object", pair(&["label", "configmap", "demo", "team=shop"], &["delete", "configmap", "demo"])),
            (
                "scale",
                pair(
                    &["scale", "deployment", "demo", "--replicas=1"],
                    &["scale", "deployment", "demo", "--replicas=3"],
                ),
            ),
            ("HelmRelease", helm_releases(&namespace)),
            ("ConfigurationGroup", commits(plane, &namespace)),
            ("ClusterExtension", Column::Warned(extension(), "[extension-safety]")),
            ("override", Column::Pair(overriding(&namespace, "2h"), overriding(&namespace, "90h"))),
        ];
        Self { plane, namespace, columns, doomed: Mutex::default(), transcript: Mutex::default() }
    }

    /// An error until the first column's allowed act shows this sign of the state.
    pub(super) fn heard_of(&self, sign: Option<&str>) -> Result<(), String> {
        let (_, Column::Pair(good, _)) = &self.columns[0] else { return Err("no pair to try".to_owned()) };
        let output = good.run(&self.namespace.kubectl("alice"));
        let heard = sign.map_or(output.success(), |sign| !output.success() && output.stderr.contains(sign));
        if heard { Ok(()) } else { Err(output.to_string()) }
    }

    /// The current value of each column.
    #[track_caller]
    pub(super) fn all(&self) -> Vec<String> {
        self.transcript.lock().unwrap().clear();
        let kubectl = self.namespace.kubectl("alice");
        let (kubectl, this) = (&kubectl, self);
        std::thread::scope(|scope| {
            let tried: Vec<_> = self
                .columns
                .iter()
                .map(|(name, column)| scope.spawn(move || this.look(kubectl, name, column)))
                .collect();
            tried.into_iter().map(|tried| tried.join().expect("an act ends").to_owned()).collect()
        })
    }

    /// The last output of the clients.
    pub(super) fn transcript(&self) -> String {
        self.transcript.lock().unwrap().join("\n\n")
    }

    fn look(&self, kubectl: &Kubectl, name: &str, column: &Column) -> &'static str {
        let act = |act: &Act| {
            let output = act.run(kubectl);
            self.transcript.lock().unwrap().push(format!("{name}: {output}"));
            output
        };
        // For an invalid object kubectl does not print who rejected it.
        let denied =
            |output: &Output| ["denied the request", "[dropped-bundles]"].iter().any(|it| output.stderr.contains(it));
        let closed = |output: &Output| !output.success() && CLOSED.iter().any(|text| output.stderr.contains(text));
        match column {
            Column::Pair(good, bad) => match (act(good), act(bad)) {
                (good, _) if closed(&good) => "closed",
                (good, bad) if good.success() && bad.success() => "open",
                (good, bad) if good.success() && !bad.success() && denied(&bad) => "judged",
                _ => "neither",
            },
            Column::Warned(warned, rule) => match act(warned) {
                output if closed(&output) => "closed",
                output if output.success() && output.stderr.contains(rule) => "judged",
                output if output.success() => "open",
                _ => "neither",
            },
            Column::Stamp(write) => match act(write) {
                output if closed(&output) => "closed",
                output if output.success() => match &output.json()["metadata"]["annotations"]["interlock.dev/holder"] {
                    Value::String(holder) if holder == "alice" => "judged",
                    Value::Null => "open",
                    _ => "neither",
                },
                _ => "neither",
            },
        }
    }

    /// Creates a namespace to be cleaned up in a state: a record with an owner, as operators make them, and an object of a
    /// release.
    #[track_caller]
    pub(super) fn prepare(&self, state: &str) {
        let namespace = Namespace::new(self.plane, "failure-clean");
        let operator = namespace.service_account("operator");
        let kubectl = namespace.kubectl_as(&operator);
        let helm = namespace.helm_as(HelmVersion::V4, Driver::ConfigMap, &operator);
        helm.ok(&["install", "demo", Chart::new("demo").path()]);
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}});
        let owner = kubectl.with_file("create", &owner, &["-o", "json"]).expect_success().json();
        let owners =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
        let patch = json!({"metadata": {"ownerReferences": owners}}).to_string();
        kubectl.ok(&["patch", "configmap", V1, "--type=merge", "-p", &patch]);
        self.doomed.lock().unwrap().insert(state.to_owned(), namespace);
    }

    /// Deletes the owner, then the namespace. An error until everything is deleted with them.
    pub(super) fn clean_up(&self, state: &str) -> Result<(), String> {
        let doomed = self.doomed.lock().unwrap();
        let namespace = doomed.get(state).ok_or("nothing was prepared")?;
        let kubectl = namespace.kubectl("admin");
        kubectl.run(&["delete", "configmap", "owner", "--ignore-not-found"]).into_result()?;
        let left = kubectl.run(&["get", "configmap", V1, "--ignore-not-found", "-o", "name"]).into_result()?.stdout;
        if !left.is_empty() {
            return Err(format!("the record is still there: {left}"));
        }
        let admin = self.plane.kubectl(&self.plane.admin());
        admin.run(&["delete", "namespace", namespace.name(), "--ignore-not-found", "--timeout=30s"]).into_result()?;
        Ok(())
    }
}

impl Act {
    fn run(&self, kubectl: &Kubectl) -> Output {
        match self {
            Self::Run(args) => kubectl.run(&args.iter().map(String::as_str).collect::<Vec<_>>()),
            Self::With(verb, object) => kubectl.with_file(verb, object, &["--dry-run=server"]),
        }
    }
}

fn run(args: &[&str]) -> Act {
    Act::Run(args.iter().chain(&["--dry-run=server"]).map(|&arg| arg.to_owned()).collect())
}

fn pair(good: &[&str], bad: &[&str]) -> Column {
    Column::Pair(run(good), run(bad))
}

/// CREATE of the next record, as helm does it and in a status that no client uses.
fn created(namespace: &Namespace<'_>) -> Column {
    let newest = namespace.kubectl("admin").get(&["secret", V2]);
    let [good, bad] = ["pending-upgrade", "deployed"].map(|status| {
        let mut record = newest.clone();
        forging::copy(&mut record, Driver::Secret, 3, status);
        Act::With("create", record)
    });
    Column::Pair(good, bad)
}

/// A new HelmRelease, and a second one for the same release.
fn helm_releases(namespace: &Namespace<'_>) -> Column {
    let release = |name: &str, drives: &str| {
        json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": name},
            "spec": {"interval": "10m", "chartRef": {"kind": "OCIRepository", "name": "shop"}, "releaseName": drives},
        })
    };
    namespace.kubectl("admin").with_file("create", &release("first", "cart"), &[]).expect_success();
    Column::Pair(Act::With("create", release("other", "other")), Act::With("create", release("second", "cart")))
}

/// An unchanged commit, and one that drops the bundles of a live release.
#[track_caller]
fn commits(plane: &Plane, namespace: &Namespace<'_>) -> Column {
    let account = install(plane);
    let mut controller = AddonController::new(namespace, &account, &["web"]);
    controller.report(&[managing("web")]);
    controller.stage("web", 1);
    eventually(super::HEARD, "the first commit is admitted", || controller.commit().into_result());
    let [mut good, mut bad] = [(); 2].map(|()| controller.group().expect("a rollout is in flight"));
    good["spec"]["tier"] = 7.into();
    bad["spec"]["configurationItem"] = json!([]);
    Column::Pair(Act::With("replace", good), Act::With("replace", bad))
}

fn extension() -> Act {
    let catalog = json!({"packageName": "demo", "version": "1.0.0", "upgradeConstraintPolicy": "SelfCertified"});
    let spec = json!({"namespace": "default", "source": {"sourceType": "Catalog", "catalog": catalog}});
    let head = json!({"name": "failure"});
    let api = "olm.operatorframework.io/v1";
    Act::With("create", json!({"apiVersion": api, "kind": "ClusterExtension", "metadata": head, "spec": spec}))
}

/// The CREATE of an override for this time.
fn overriding(namespace: &Namespace<'_>, open_for: &str) -> Act {
    let open_for: jiff::SignedDuration = open_for.parse().expect("a duration");
    let expires = (jiff::Timestamp::now() + open_for).to_string();
    let spec = json!({"release": "demo", "rules": ["manual-edit"], "reason": "incident 7", "expiresAt": expires});
    let head = json!({"name": "failure", "namespace": namespace.name()});
    let api = "interlock.dev/v1alpha1";
    Act::With("create", json!({"apiVersion": api, "kind": "ReleaseOverride", "metadata": head, "spec": spec}))
}
