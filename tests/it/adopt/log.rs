//! Audit logs of a cluster with three releases, as its API server would write them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::fixtures::gzip;

/// The name and the namespace of a release. Each has a Deployment, an Ingress and a ConfigMap of its name.
pub(super) const WEB: (&str, &str) = ("web", "shop");
pub(super) const API: (&str, &str) = ("api", "shop");
pub(super) const CART: (&str, &str) = ("cart", "bank");
pub(super) const RELEASES: [(&str, &str); 3] = [WEB, API, CART];

/// 2026-11-21T10:00:00Z, a Saturday.
const START: i64 = 1_795_255_200;

/// The lines of a log so far, and the objects of the cluster.
pub(super) struct Log {
    lines: Vec<Value>,
    second: i64,
    /// By resource and path.
    objects: BTreeMap<(String, String), Value>,
}

/// A resource: its name, group, version and kind.
type Resource = (&'static str, &'static str, &'static str, &'static str);

pub(super) const DEPLOYMENT: Resource = ("deployments", "apps", "v1", "Deployment");
pub(super) const INGRESS: Resource = ("ingresses", "networking.k8s.io", "v1", "Ingress");
pub(super) const CONFIG: Resource = ("configmaps", "", "v1", "ConfigMap");
const SECRET: Resource = ("secrets", "", "v1", "Secret");

impl Log {
    /// A cluster in which the releases are deployed.
    pub(super) fn new() -> Self {
        let mut log = Self { lines: Vec::new(), second: 0, objects: BTreeMap::new() };
        for (name, namespace) in RELEASES {
            for (resource, object) in objects_of(name, namespace) {
                log.know(resource, object);
            }
            log.know(SECRET, record(name, namespace, 1, "deployed"));
        }
        log.lines = log.objects.values().map(|object| json!({"object": object})).collect();
        log
    }

    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Lets time go by.
    pub(super) fn after(&mut self, seconds: i64) -> &mut Self {
        self.second += seconds;
        self
    }

    fn know(&mut self, resource: Resource, object: Value) {
        self.objects.insert(key(resource, &object), object);
    }

    /// A change of one field of an object.
    pub(super) fn edit(&mut self, user: &str, resource: Resource, path: &str, field: &str, value: Value) -> &mut Self {
        let mut object = self.objects[&(resource.0.to_owned(), path.to_owned())].clone();
        let (parent, member) = field.rsplit_once('/').unwrap();
        if parent.ends_with("annotations") && object.pointer(parent).is_none() {
            object["metadata"]["annotations"] = json!({});
        }
        object.pointer_mut(parent).unwrap()[member.replace("~1", "/")] = value;
        self.write(user, "update", resource, object)
    }

    /// Another image of the container that a chart declares.
    pub(super) fn set_image(&mut self, user: &str, path: &str, image: &str) -> &mut Self {
        self.edit(user, DEPLOYMENT, path, "/spec/template/spec/containers/0/image", image.into())
    }

    pub(super) fn write(&mut self, user: &str, verb: &str, resource: Resource, object: Value) -> &mut Self {
        self.event(user, verb, resource, "", &object, Some(&object));
        self.know(resource, object);
        self
    }

    pub(super) fn delete(&mut self, user: &str, resource: Resource, path: &str) -> &mut Self {
        let object = self.objects.remove(&(resource.0.to_owned(), path.to_owned())).unwrap();
        self.event(user, "delete", resource, "", &object, None);
        self
    }

    /// A number of replicas, through the scale subresource.
    pub(super) fn scale(&mut self, user: &str, path: &str, replicas: u32) -> &mut Self {
        let key = (DEPLOYMENT.0.to_owned(), path.to_owned());
        let (namespace, name) = path.split_once('/').unwrap();
        let scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": name, "namespace": namespace},
            "spec": {"replicas": replicas}});
        self.event(user, "update", DEPLOYMENT, "scale", &scale, Some(&scale));
        self.objects.get_mut(&key).unwrap()["spec"]["replicas"] = replicas.into();
        self
    }

    /// The start of an upgrade.
    pub(super) fn start(&mut self, user: &str, release: (&str, &str), revision: u32) -> &mut Self {
        self.write(user, "create", SECRET, record(release.0, release.1, revision, "pending-upgrade"))
    }

    /// A new status of a record.
    pub(super) fn status(&mut self, user: &str, release: (&str, &str), revision: u32, status: &str) -> &mut Self {
        self.write(user, "update", SECRET, record(release.0, release.1, revision, status))
    }

    /// An upgrade from start to end.
    pub(super) fn upgrade(&mut self, user: &str, release: (&str, &str), revision: u32) -> &mut Self {
        self.start(user, release, revision).after(20);
        self.status(user, release, revision - 1, "superseded").status(user, release, revision, "deployed").after(1)
    }

    /// A record as a backup has it.
    pub(super) fn restore(&mut self, user: &str, release: (&str, &str), revision: u32, status: &str) -> &mut Self {
        self.write(user, "create", SECRET, record(release.0, release.1, revision, status))
    }

    /// The deletion of a record.
    pub(super) fn delete_record(&mut self, user: &str, release: (&str, &str), revision: u32) -> &mut Self {
        let path = format!("{}/sh.helm.release.v1.{}.v{revision}", release.1, release.0);
        self.delete(user, SECRET, &path)
    }

    fn event(&mut self, user: &str, verb: &str, resource: Resource, sub: &str, sent: &Value, answered: Option<&Value>) {
        self.second += 1;
        let at = jiff::Timestamp::from_second(START + self.second).unwrap().to_string();
        let code = if verb == "create" { 201 } else { 200 };
        let (plural, group, version, _) = resource;
        self.lines.push(json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": format!("a{}", self.second),
            "stage": "ResponseComplete", "verb": verb, "requestURI": "/", "user": {"username": user, "groups": groups(user)},
            "objectRef": {"resource": plural, "subresource": sub, "apiGroup": group, "apiVersion": version,
                "namespace": sent["metadata"]["namespace"].as_str().unwrap_or_default(), "name": sent["metadata"]["name"]},
            "responseStatus": {"code": code}, "requestObject": answered, "responseObject": answered,
            "requestReceivedTimestamp": at, "stageTimestamp": at,
        }));
    }
}

fn key(resource: Resource, object: &Value) -> (String, String) {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap();
    let path =
        metadata["namespace"].as_str().map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"));
    (resource.0.to_owned(), path)
}

fn groups(user: &str) -> Vec<String> {
    let account = user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    let own = account.map(|(namespace, _)| format!("system:serviceaccounts:{namespace}"));
    let job = user.starts_with("gitlab:ci_job:").then(|| "gitlab:project:7".to_owned());
    own.into_iter().chain(job).chain(["system:authenticated".to_owned()]).collect()
}

/// The objects that a release declares, as the cluster has them.
fn objects_of(name: &str, namespace: &str) -> Vec<(Resource, Value)> {
    let marked = |mut object: Value| {
        object["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
        object["metadata"]["annotations"] =
            json!({"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace});
        object
    };
    let documents = documents(name, namespace).into_iter().map(|(resource, document)| (resource, marked(document)));
    documents.collect()
}

/// The documents of a manifest.
fn documents(name: &str, namespace: &str) -> Vec<(Resource, Value)> {
    let labels = json!({"app": name});
    let container = json!({"name": "app", "image": "shop/app:1"});
    vec![
        (
            DEPLOYMENT,
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace}, "spec": {
                "replicas": 2, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            }}),
        ),
        (
            INGRESS,
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name, "namespace": namespace},
                "spec": {"ingressClassName": "gce"}}),
        ),
        (
            CONFIG,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": {"ca": ""}}),
        ),
    ]
}

/// The Secret of a revision.
pub(super) fn record(name: &str, namespace: &str, revision: u32, status: &str) -> Value {
    let manifest: String =
        documents(name, namespace).iter().map(|(_, document)| format!("---\n{document}\n")).collect();
    let body = json!({
        "name": name, "version": revision, "namespace": namespace, "manifest": manifest, "info": {"status": status},
        "chart": {"metadata": {"name": "shop", "version": "1.0.0"}},
    });
    let release = STANDARD.encode(STANDARD.encode(gzip(body.to_string().as_bytes())));
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": {"release": release},
        "metadata": {
            "name": format!("sh.helm.release.v1.{name}.v{revision}"), "namespace": namespace,
            "labels": {"name": name, "owner": "helm", "status": status, "version": revision.to_string()},
        },
    })
}
