//! The writes of Argo CD's application-controller: objects with a tracking-id, by the library that it syncs with (`tests/argo`),
//! and the status of the Application, by kubectl as recorded.

use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::assets::assets;
use crate::harness::clients::{Identity, Kubectl, client_environment};
use crate::harness::controllers::account;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};

/// A sync that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// The namespace of Argo CD.
pub(crate) const ARGOCD: &str = "argocd";

/// The name of the controller's account there.
pub(crate) const CONTROLLER: &str = "argocd-application-controller";

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

/// An Application that deploys to a test's namespace. It is there too, and the marks on its objects say so, or in Argo CD's own namespace.
pub(crate) struct Application<'n> {
    namespace: &'n Namespace<'n>,
    /// Its own namespace and name.
    place: String,
    name: String,
    account: Identity,
    controller: Kubectl,
    sync: Sync,
    /// The namespace of its objects.
    home: String,
}

impl<'n> Application<'n> {
    /// Bob creates it.
    #[track_caller]
    pub(crate) fn new(namespace: &'n Namespace<'n>, spec: Value, sync: Sync) -> Self {
        Self::create(namespace, (namespace.name(), "shop"), spec, sync)
    }

    /// Bob creates it in Argo CD's own namespace, with the name of the test's namespace.
    #[track_caller]
    pub(crate) fn in_argocd(namespace: &'n Namespace<'n>, spec: Value, sync: Sync) -> Self {
        Self::create(namespace, (ARGOCD, namespace.name()), spec, sync)
    }

    #[track_caller]
    fn create(namespace: &'n Namespace<'n>, (place, name): (&str, &str), spec: Value, sync: Sync) -> Self {
        let account = account(namespace.plane(), ARGOCD, CONTROLLER);
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name, "namespace": place},
            "spec": {"project": "default", "destination": {"namespace": namespace.name()}},
        });
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        namespace.kubectl("bob").with_file("create", &object, &["-n", place]).expect_success();
        let home = object["spec"]["destination"]["namespace"].as_str().unwrap().to_owned();
        Self { place: place.to_owned(), name: name.to_owned(), home, ..Self::existing(namespace, &account, sync) }
    }

    /// The Application `shop` of a namespace, which is there already.
    pub(crate) fn existing(namespace: &'n Namespace<'n>, account: &Identity, sync: Sync) -> Self {
        let (place, name, home) = (namespace.name().to_owned(), "shop".to_owned(), namespace.name().to_owned());
        Self { namespace, place, name, controller: namespace.kubectl_as(account), account: account.clone(), sync, home }
    }

    /// The same with the sync option `ServerSideApply=true`.
    pub(crate) fn server_side(self) -> Self {
        Self { sync: Sync::Server, ..self }
    }

    /// An object with the mark of this Application.
    pub(crate) fn tracked(&self, mut object: Value) -> Value {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let id = format!("{}:{group}/{kind}:{}/{name}", self.mark(), self.namespace.name());
        object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = id.into();
        object
    }

    /// Its name in marks.
    fn mark(&self) -> String {
        if self.place == ARGOCD { self.name.clone() } else { format!("{}_{}", self.place, self.name) }
    }

    /// Applies an object of the source.
    #[track_caller]
    pub(crate) fn apply(&self, object: &Value) -> Output {
        self.synced(std::slice::from_ref(object), false)
    }

    /// Applies a source that has only these objects, and deletes the others.
    #[track_caller]
    pub(crate) fn prune(&self, left: &[Value]) -> Output {
        self.synced(left, true)
    }

    #[track_caller]
    fn synced(&self, objects: &[Value], prune: bool) -> Output {
        let objects: Vec<_> = objects.iter().map(|object| self.tracked(object.clone())).collect();
        let place = self.namespace.name();
        let mut command = Command::new(&assets().argo);
        command.arg(format!("--application={}", self.mark())).arg(format!("--namespace={place}"));
        command.arg(format!("--objects={}", Value::from(objects))).arg(format!("--prune={prune}"));
        command.arg(format!("--server-side={}", matches!(self.sync, Sync::Server)));
        client_environment(&mut command, &self.account, &self.namespace.plane().dir().join("argo"));
        run(command, DEADLINE)
    }

    /// A merge patch of the Application, by somebody.
    pub(crate) fn patch(&self, who: &Kubectl, patch: &Value) -> Output {
        who.run(&["patch", &self.object(), "-n", &self.place, "--type=merge", "-p", &patch.to_string()])
    }

    fn object(&self) -> String {
        format!("applications.argoproj.io/{}", self.name)
    }

    /// The controller has begun the operation that somebody has asked for, and goes on with its copy.
    #[track_caller]
    pub(crate) fn begins(&self) {
        let started = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap().to_string();
        let operation = self.controller.get(&[&self.object(), "-n", &self.place])["operation"].clone();
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
        let place = &self.home;
        let listed = |(group, kind, name): &(&str, &str, &str)| json!({"group": group, "kind": kind, "namespace": place, "name": name, "status": "Synced", "version": "v1"});
        let resources: Vec<_> = objects.iter().map(listed).collect();
        self.patch(&self.controller, &json!({"status": {"resources": resources}})).expect_success();
    }
}
