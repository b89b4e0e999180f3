//! The writes of Argo CD's applicationset-controller, as recorded: Applications with an owner reference, the list of them in the status,
//! and in each round one deletion after the other, also after a refusal.

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::harness::clients::Kubectl;
use crate::harness::controllers::account;
use crate::harness::managed_fields::set_times_of_fields;
use crate::harness::namespace::Namespace;
use crate::harness::process::Output;

/// The ApplicationSet `shops` of a namespace, whose spec nobody has changed for a long time.
pub(crate) struct ApplicationSet<'n> {
    namespace: &'n Namespace<'n>,
    controller: Kubectl,
}

impl<'n> ApplicationSet<'n> {
    /// Bob creates it, and it generates these Applications.
    #[track_caller]
    pub(crate) fn new(namespace: &'n Namespace<'n>, applications: &[&str]) -> Self {
        let generators =
            json!([{"git": {"repoURL": "https://example.com/shops", "directories": [{"path": "apps/*"}]}}]);
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "shops"},
            "spec": {"generators": generators},
        });
        namespace.kubectl("bob").with_file("create", &object, &[]).expect_success();
        let controller = account(namespace.plane(), "argocd", "argocd-applicationset-controller");
        let set = Self { namespace, controller: namespace.kubectl_as(&controller) };
        let uid = namespace.kubectl("bob").get(&["applicationset/shops"])["metadata"]["uid"].clone();
        applications.iter().for_each(|name| set.generate(name, &uid));
        set.list(applications);
        set_times_of_fields(&namespace.kubectl("bob"), "applicationset/shops", SignedDuration::from_hours(1));
        set
    }

    #[track_caller]
    fn generate(&self, name: &str, uid: &Value) {
        let reference = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "shops", "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        });
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "ownerReferences": [reference]}, "spec": {"project": "default"},
        });
        self.controller.with_file("create", &object, &[]).expect_success();
    }

    /// The controller lists its Applications.
    #[track_caller]
    pub(crate) fn list(&self, applications: &[&str]) {
        let resources: Vec<_> = applications
            .iter()
            .map(|name| json!({"group": "argoproj.io", "kind": "Application", "name": name}))
            .collect();
        let condition = json!({"type": "ErrorOccurred", "status": "False", "reason": "ApplicationSetUpToDate"});
        let status = json!({"resources": resources, "resourcesCount": resources.len(), "conditions": [condition]});
        let patch = json!({"status": status}).to_string();
        self.controller.ok(&["patch", "applicationset/shops", "--subresource=status", "--type=merge", "-p", &patch]);
    }

    /// The controller deletes an Application that is generated no longer.
    pub(crate) fn drop(&self, application: &str) -> Output {
        self.controller.run(&["delete", &format!("applications.argoproj.io/{application}")])
    }

    /// The names of the Applications that there are.
    pub(crate) fn applications(&self) -> Vec<String> {
        let listed = self.namespace.kubectl("bob").get(&["applications.argoproj.io"]);
        let names = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
        names.collect()
    }
}
