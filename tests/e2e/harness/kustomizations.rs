//! kustomize-controller's writes, as recorded: a dry run and a server-side apply of each object, and the inventory at the end.

use std::sync::OnceLock;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::harness::clients::{Identity, Kubectl};
use crate::harness::controllers::account;
use crate::harness::managed_fields::set_times_of_fields;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::Output;

const APPLY: [&str; 3] = ["--server-side", "--force-conflicts", "--field-manager=kustomize-controller"];

/// Installs the definition of Kustomizations.
#[track_caller]
pub(crate) fn define(plane: &Plane) {
    plane.define("tests/e2e/harness/crds/kustomizations.yaml");
}

/// The shared plane, with Kustomizations defined.
pub(crate) fn shared() -> &'static Plane {
    static DEFINED: OnceLock<()> = OnceLock::new();
    DEFINED.get_or_init(|| define(Plane::shared()));
    Plane::shared()
}

/// The account of the controller.
pub(crate) fn kustomize_controller(plane: &Plane) -> Identity {
    account(plane, "flux-system", "kustomize-controller")
}

/// The Kustomization `shop` of a namespace.
pub(crate) struct Kustomization<'n> {
    namespace: &'n Namespace<'n>,
    /// What applies its objects: the controller, or the account of a tenant.
    applier: Kubectl,
    /// The namespace of its objects.
    home: String,
}

impl<'n> Kustomization<'n> {
    /// Bob creates it.
    #[track_caller]
    pub(crate) fn new(namespace: &'n Namespace<'n>, spec: Value) -> Self {
        let object = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "shop"},
            "spec": {"interval": "10m", "path": "./", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "shop"}},
        });
        let bob = namespace.kubectl("bob");
        bob.with_file("create", &object, &[]).expect_success();
        bob.ok(&["patch", "kustomization/shop", "--type=merge", "-p", &json!({"spec": spec}).to_string()]);
        let home = spec["targetNamespace"].as_str().unwrap_or(namespace.name()).to_owned();
        Self { namespace, applier: namespace.kubectl_as(&kustomize_controller(namespace.plane())), home }
    }

    /// The same, where the account of a tenant applies the objects.
    pub(crate) fn under(self, tenant: &Identity) -> Self {
        Self { applier: self.namespace.kubectl_as(tenant), ..self }
    }

    /// An object with the labels of this Kustomization.
    pub(crate) fn labelled(&self, mut object: Value) -> Value {
        let labels = &mut object["metadata"]["labels"];
        labels["kustomize.toolkit.fluxcd.io/name"] = "shop".into();
        labels["kustomize.toolkit.fluxcd.io/namespace"] = self.namespace.name().into();
        object
    }

    /// Applies an object of the source.
    pub(crate) fn apply(&self, object: &Value) -> Output {
        let object = self.labelled(object.clone());
        let dry_run = self.applier.apply(&object, &[&APPLY[..], &["--dry-run=server"]].concat());
        if dry_run.success() { self.applier.apply(&object, &APPLY) } else { dry_run }
    }

    /// The controller deletes an object that the source has no longer.
    pub(crate) fn prune(&self, object: &str) -> Output {
        self.applier.run(&["delete", object])
    }

    /// Nobody has changed the spec for an hour.
    #[track_caller]
    pub(crate) fn changed_long_ago(&self) {
        set_times_of_fields(&self.namespace.kubectl("bob"), "kustomization/shop", SignedDuration::from_hours(1));
    }

    /// Writes the inventory: the kinds with their groups, and the names.
    #[track_caller]
    pub(crate) fn list(&self, objects: &[(&str, &str, &str)]) {
        let place = &self.home;
        let id = |(group, kind, name): &(&str, &str, &str)| json!({"id": format!("{place}_{name}_{group}_{kind}"), "v": "v1"});
        let entries: Vec<_> = objects.iter().map(id).collect();
        let status = json!({"status": {"inventory": {"entries": entries}}}).to_string();
        let controller = self.namespace.kubectl_as(&kustomize_controller(self.namespace.plane()));
        controller.ok(&["patch", "kustomization/shop", "--subresource=status", "--type=merge", "-p", &status]);
    }
}

/// A Deployment whose source declares one container and the number of replicas.
pub(crate) fn deployment(image: &str, replicas: u32) -> Value {
    let pod = json!({"containers": [{"name": "app", "image": image}]});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "demo"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "demo"}},
            "template": {"metadata": {"labels": {"app": "demo"}}, "spec": pod},
        },
    })
}
