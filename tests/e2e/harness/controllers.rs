//! Flux's helm-controller and kustomize-controller, and OLM's operator-controller, one reconcile at a time.
//!
//! Each reconcile gets a chart's directory and values; the version is in its `Chart.yaml`.

use std::collections::HashSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::harness::assets::assets;
use crate::harness::chart::Chart;
use crate::harness::clients::{Identity, client_environment};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, Running, run};

/// A reconcile that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// The exit code of a reconcile that acted and did not reach the desired state.
const FAILED: i32 = 1;

/// What a reconcile did.
#[derive(Debug, Deserialize)]
pub(crate) struct Report {
    pub(crate) actions: Vec<Action>,
    #[serde(skip)]
    shown: String,
}

/// One thing that the reconcile did, or failed to do.
#[derive(Debug, Deserialize)]
pub(crate) struct Action {
    action: String,
    /// Of the newest record afterwards.
    #[serde(default)]
    revision: u32,
    #[serde(default)]
    status: String,
    /// The objects that were corrected, as `Kind/name`.
    #[serde(default)]
    pub(crate) objects: Vec<String>,
    #[serde(default)]
    error: String,
}

impl Report {
    /// `unlock 2 failed, upgrade 3 deployed`: every action with the newest record after it, if there is one.
    pub(crate) fn summary(&self) -> String {
        let one = |Action { action, revision, status, .. }: &Action| {
            if *revision == 0 { action.clone() } else { format!("{action} {revision} {status}") }
        };
        self.actions.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn errors(&self) -> String {
        self.actions.iter().map(|action| action.error.as_str()).filter(|error| !error.is_empty()).collect()
    }
}

/// A reconcile that reached the desired state by these actions.
#[track_caller]
pub(crate) fn reached(output: Output, actions: &str) -> Report {
    let report = report(output.expect_success());
    assert_eq!(report.summary(), actions, "{}", report.shown);
    report
}

/// A reconcile that failed after these actions, with all of these texts in its errors.
#[track_caller]
pub(crate) fn failed(output: Output, actions: &str, texts: &[&str]) -> Report {
    assert_eq!(output.status.code(), Some(FAILED), "expected a failed action\n{output}");
    let report = report(output);
    assert_eq!(report.summary(), actions, "{}", report.shown);
    for text in texts {
        assert!(report.errors().contains(text), "expected {text:?} in the errors\n{}", report.shown);
    }
    report
}

#[track_caller]
fn report(output: Output) -> Report {
    let report: Report =
        serde_json::from_value(output.json()).unwrap_or_else(|e| panic!("expected a report: {e}\n{output}"));
    Report { shown: output.to_string(), ..report }
}

/// The account that Flux's helm-controller ships with, a manager in the shipped policy.
#[track_caller]
pub(crate) fn helm_controller(plane: &Plane) -> Identity {
    account(plane, "flux-system", "helm-controller")
}

/// The account that OLM's operator-controller ships with, a manager in the shipped policy.
#[track_caller]
pub(crate) fn operator_controller(plane: &Plane) -> Identity {
    account(plane, "olmv1-system", "operator-controller-controller-manager")
}

/// The service account of a controller in its usual namespace, with every right.
#[track_caller]
pub(crate) fn account(plane: &Plane, namespace: &str, name: &str) -> Identity {
    let made = plane.kubectl(&plane.admin()).run(&["create", "namespace", namespace]);
    assert!(made.success() || made.stderr.contains("already exists"), "expected a namespace\n{made}");
    plane.service_account(namespace, name)
}

/// Installs the kinds of Flux, OLM and Sveltos, once for each plane.
#[track_caller]
pub(crate) fn establish_kinds(plane: &Plane) {
    static DONE: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    // Held until the kinds are served: a second caller needs them too.
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    let done = done.get_or_insert_default();
    if done.contains(plane.dir()) {
        return;
    }
    let admin = plane.kubectl(&plane.admin());
    let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/harness/crds");
    let kinds = kinds.to_str().expect("the sources have a plain path");
    admin.ok(&["apply", "--server-side", "-f", kinds]);
    admin.ok(&["wait", "--for=condition=Established", "--timeout=60s", "-f", kinds]);
    done.insert(plane.dir().to_owned());
}

/// helm-controller and one HelmRelease, by default with `RetryOnFailure` and without waiting for objects.
#[derive(Debug, Clone)]
pub(crate) struct Flux(Controller);

impl Flux {
    /// Drives a release as this account, records and objects in one namespace.
    pub(crate) fn new(who: &Identity, namespace: &Namespace<'_>, release: &str) -> Self {
        let flux = Self(Controller::new("flux", who, namespace.plane()));
        flux.flag("release", release).flag("storage-namespace", namespace.name()).flag("strategy", "RetryOnFailure")
    }

    /// Keeps the objects in another namespace than the records.
    #[must_use]
    pub(crate) fn target(self, namespace: &Namespace<'_>) -> Self {
        self.flag("target-namespace", namespace.name())
    }

    /// Writes records and objects under another account, as with `spec.serviceAccountName`.
    #[must_use]
    pub(crate) fn impersonating(self, tenant: &Identity) -> Self {
        self.flag("as", tenant.user())
    }

    /// Labels the objects with the HelmRelease that they come from.
    #[must_use]
    pub(crate) fn origin(self, namespace: &Namespace<'_>, name: &str) -> Self {
        self.flag("origin", &format!("{}/{name}", namespace.name()))
    }

    /// Rolls a failed upgrade back and uninstalls a failed install, instead of trying again.
    #[must_use]
    pub(crate) fn remediating(self) -> Self {
        self.flag("strategy", "RemediateOnFailure")
    }

    /// Waits up to `timeout` until the objects are ready.
    #[must_use]
    pub(crate) fn waiting(self, timeout: Duration) -> Self {
        self.flag("timeout", &format!("{}s", timeout.as_secs())).flag("wait", "true")
    }

    /// Corrects objects that differ from the release.
    #[must_use]
    pub(crate) fn correcting_drift(self) -> Self {
        self.flag("correct-drift", "true")
    }

    fn flag(self, name: &str, value: &str) -> Self {
        Self(self.0.flag(name, value))
    }
}

/// operator-controller and one ClusterExtension.
#[derive(Debug, Clone)]
pub(crate) struct Olm(Controller);

impl Olm {
    /// Drives an extension as this account: records in the system's namespace, objects in the other.
    pub(crate) fn new(who: &Identity, system: &Namespace<'_>, namespace: &Namespace<'_>, extension: &str) -> Self {
        let olm = Self(Controller::new("olm", who, system.plane()));
        olm.flag("extension", extension).flag("system-namespace", system.name()).flag("namespace", namespace.name())
    }

    /// Cuts records into Secrets of this many bytes.
    #[must_use]
    pub(crate) fn chunk_size(self, bytes: usize) -> Self {
        self.flag("chunk-size", &bytes.to_string())
    }

    /// Makes the ClusterExtension with this uid the owner of records and objects.
    #[must_use]
    pub(crate) fn owned_by(self, uid: &str) -> Self {
        self.flag("uid", uid)
    }

    fn flag(self, name: &str, value: &str) -> Self {
        Self(self.0.flag(name, value))
    }
}

impl Deref for Flux {
    type Target = Controller;

    fn deref(&self) -> &Controller {
        &self.0
    }
}

impl Deref for Olm {
    type Target = Controller;

    fn deref(&self) -> &Controller {
        &self.0
    }
}

/// kustomize-controller and one Kustomization.
#[derive(Debug, Clone)]
pub(crate) struct Kustomize(Controller);

impl Kustomize {
    /// Applies the objects of a Kustomization as the controller's account.
    pub(crate) fn new(who: &Identity, namespace: &Namespace<'_>, name: &str) -> Self {
        let controller = Controller::new("kustomize", who, namespace.plane());
        Self(controller.flag("namespace", namespace.name()).flag("name", name))
    }

    /// Writes objects under another account, as with `spec.serviceAccountName`.
    #[must_use]
    pub(crate) fn impersonating(self, tenant: &Identity) -> Self {
        Self(self.0.flag("as", tenant.user()))
    }

    /// Runs one reconcile of a revision that renders to these objects.
    #[track_caller]
    pub(crate) fn reconcile(&self, revision: &str, objects: &[Value]) -> Output {
        let mut command = self.0.command();
        command.arg(format!("--revision={revision}")).arg(format!("--objects={}", Value::from(objects)));
        run(command, DEADLINE)
    }
}

/// The program in one of its roles, under an account, and what it drives.
#[derive(Debug, Clone)]
pub(crate) struct Controller {
    role: &'static str,
    who: Identity,
    home: PathBuf,
    flags: Vec<String>,
}

impl Controller {
    fn new(role: &'static str, who: &Identity, plane: &Plane) -> Self {
        Self { role, who: who.clone(), home: plane.dir().join(role), flags: Vec::new() }
    }

    fn flag(mut self, name: &str, value: &str) -> Self {
        // A later one of the same name wins.
        self.flags.push(format!("--{name}={value}"));
        self
    }

    /// Runs one reconcile to its end. OLM upgrades only if the rendered objects differ, whatever the chart's version
    /// is.
    #[track_caller]
    pub(crate) fn reconcile(&self, chart: &Chart, values: &Value) -> Output {
        run(self.toward(chart, values), DEADLINE)
    }

    /// Starts a reconcile and returns at once.
    #[track_caller]
    pub(crate) fn spawn(&self, chart: &Chart, values: &Value) -> Running {
        Running::spawn(self.toward(chart, values))
    }

    /// The reconcile of a HelmRelease that is being deleted; for OLM, Helm's uninstall on its records, which OLM itself leaves
    /// to the garbage collector.
    #[track_caller]
    pub(crate) fn uninstall(&self) -> Output {
        let mut command = self.command();
        command.arg("--uninstall");
        run(command, DEADLINE)
    }

    fn toward(&self, chart: &Chart, values: &Value) -> Command {
        let mut command = self.command();
        command.args(["--chart", chart.path()]).arg(format!("--values={values}"));
        command
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&assets().controllers);
        command.arg(self.role).args(&self.flags);
        client_environment(&mut command, &self.who, &self.home);
        command
    }
}
