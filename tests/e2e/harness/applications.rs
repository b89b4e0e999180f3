//! The writes of Argo CD's application-controller, as recorded: objects with a tracking-id, and the status of the Application.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::harness::clients::Kubectl;
use crate::harness::controllers::account;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::Output;

/// How a sync applies objects: on the side of the client, which leaves the annotation of kubectl, or on the side of the server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sync {
    Client,
    Server,
}

/// Installs the definitions of Applications and ApplicationSets.
#[track_caller]
pub(crate) fn define(plane: &Plane) {
    plane.define("tests/e2e/harness/crds/applications.yaml");
    plane.define("tests/e2e/harness/crds/applicationsets.yaml");
}

/// The shared plane, with Applications defined.
pub(crate) fn shared() -> &'static Plane {
    static DEFINED: OnceLock<()> = OnceLock::new();
    DEFINED.get_or_init(|| define(Plane::shared()));
    Plane::shared()
}

/// An Application of a namespace of its own, which the marks on its objects name.
pub(crate) struct Application<'n> {
    namespace: &'n Namespace<'n>,
    controller: Kubectl,
    sync: Sync,
}

impl<'n> Application<'n> {
    /// Bob creates it.
    #[track_caller]
    pub(crate) fn new(namespace: &'n Namespace<'n>, spec: Value, sync: Sync) -> Self {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"},
            "spec": {"project": "default", "destination": {"namespace": namespace.name()}},
        });
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        namespace.kubectl("bob").with_file("create", &object, &[]).expect_success();
        let controller = account(namespace.plane(), "argocd", "argocd-application-controller");
        Self { namespace, controller: namespace.kubectl_as(&controller), sync }
    }

    /// An object with the mark of this Application.
    pub(crate) fn tracked(&self, mut object: Value) -> Value {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let place = self.namespace.name();
        let id = format!("{place}_shop:{group}/{kind}:{place}/{name}");
        object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = id.into();
        object
    }

    /// Applies an object of the source.
    pub(crate) fn apply(&self, object: &Value) -> Output {
        let way: &[&str] = match self.sync {
            Sync::Client => &["--field-manager=argocd-controller"],
            Sync::Server => &["--server-side", "--force-conflicts", "--field-manager=argocd-controller"],
        };
        self.controller.apply(&self.tracked(object.clone()), way)
    }

    /// A merge patch of the Application, by somebody.
    pub(crate) fn patch(&self, who: &Kubectl, patch: &Value) -> Output {
        who.run(&["patch", "applications.argoproj.io/shop", "--type=merge", "-p", &patch.to_string()])
    }

    /// The controller has begun the operation that somebody has asked for, and goes on with its copy.
    #[track_caller]
    pub(crate) fn begins(&self) {
        let started = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap().to_string();
        let operation = self.controller.get(&["applications.argoproj.io/shop"])["operation"].clone();
        let state = json!({"phase": "Running", "startedAt": started, "operation": operation});
        self.patch(&self.controller, &json!({"status": {"operationState": state}})).expect_success();
    }

    /// The controller, which is exempt, leaves a running operation behind as a removed `operation` does.
    #[track_caller]
    pub(crate) fn orphan(&self) {
        self.patch(&self.controller, &json!({"operation": null})).expect_success();
    }

    pub(crate) fn namespace(&self) -> &'n Namespace<'n> {
        self.namespace
    }

    /// The controller ends the operation, in one write.
    pub(crate) fn ends(&self) -> Output {
        self.patch(&self.controller, &json!({"operation": null, "status": {"operationState": {"phase": "Succeeded"}}}))
    }

    /// The controller starts a sync by itself, as soon as it sees a new revision.
    pub(crate) fn autosyncs(&self) -> Output {
        self.patch(&self.controller, &json!({"operation": null, "status": {"operationState": null}})).expect_success();
        self.patch(&self.controller, &json!({"operation": {"sync": {"revision": "main"}}}))
    }

    /// Writes the status: the groups, kinds and names of the objects that a source declares.
    #[track_caller]
    pub(crate) fn list(&self, objects: &[(&str, &str, &str)]) {
        let place = self.namespace.name();
        let listed = |(group, kind, name): &(&str, &str, &str)| json!({"group": group, "kind": kind, "namespace": place, "name": name, "status": "Synced", "version": "v1"});
        let resources: Vec<_> = objects.iter().map(listed).collect();
        let status = json!({"status": {"resources": resources}}).to_string();
        self.controller.ok(&["patch", "applications.argoproj.io/shop", "--type=merge", "-p", &status]);
    }
}
