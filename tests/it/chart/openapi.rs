//! Rendered objects are valid for the oldest and the newest supported API server: their kinds and fields are those of the OpenAPI
//! document in the sources of that Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::{PRESETS, preset, rendered_for};
use crate::programs::assets;
use crate::programs::assets::versions::KUBERNETES;

/// Groups of other projects, whose definitions Kubernetes does not have.
const OTHERS: [&str; 2] = ["cert-manager.io/v1", "monitoring.coreos.com/v1"];

struct Server {
    definitions: Value,
    /// Definitions by apiVersion and kind.
    kinds: BTreeMap<(String, String), String>,
}

impl Server {
    fn of(kubernetes: &str) -> Self {
        let file = assets::openapi(kubernetes).unwrap_or_else(|error| panic!("{error}"));
        let mut document: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let definitions = document["definitions"].take();
        let mut kinds = BTreeMap::new();
        for (name, definition) in definitions.as_object().unwrap() {
            for kind in definition["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
                let [group, version, kind] = ["group", "version", "kind"].map(|key| kind[key].as_str().unwrap());
                let version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
                kinds.insert((version, kind.to_owned()), name.clone());
            }
        }
        Self { definitions, kinds }
    }

    /// What an API server with strict validation of fields would refuse.
    fn violations(&self, object: &Value) -> Vec<String> {
        let [version, kind] = ["apiVersion", "kind"].map(|key| object[key].as_str().unwrap_or_default().to_owned());
        let at = format!("{kind} {}", object["metadata"]["name"]);
        match self.kinds.get(&(version.clone(), kind)) {
            Some(name) => self.wrong(&self.definitions[name], object, &at),
            None => vec![format!("{at}: {version} has no such kind")],
        }
    }

    fn wrong(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let schema = match schema["$ref"].as_str() {
            Some(name) => &self.definitions[name.trim_start_matches("#/definitions/")],
            None => schema,
        };
        let fits = match schema["type"].as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") if schema["format"] == "int-or-string" => value.is_string() || value.is_i64(),
            Some("string") => value.is_string(),
            Some("integer") => value.is_i64(),
            Some("number") => value.is_number(),
            Some("boolean") => value.is_boolean(),
            _ => !value.is_null(),
        };
        if !fits {
            return vec![format!("{at}: expected {}, got {value}", schema["type"])];
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut found: Vec<_> = required
            .filter(|key| value.get(key).is_none())
            .map(|key| format!("{at}: the field {key} is missing"))
            .collect();
        let (properties, more) = (&schema["properties"], &schema["additionalProperties"]);
        for (key, value) in value.as_object().into_iter().flatten() {
            let at = format!("{at}.{key}");
            match properties.get(key) {
                Some(schema) => found.extend(self.wrong(schema, value, &at)),
                None if more.is_object() => found.extend(self.wrong(more, value, &at)),
                None if properties.is_object() => found.push(format!("{at}: there is no such field")),
                None => {}
            }
        }
        for item in value.as_array().into_iter().flatten() {
            found.extend(self.wrong(&schema["items"], item, &format!("{at}[]")));
        }
        found
    }
}

/// Values that no preset has and that add or change objects.
const MORE: [&[&str]; 3] = [
    &["--set=monitoring.serviceMonitor.enabled=true,monitoring.alerts.enabled=true,monitoring.dashboard.enabled=true"],
    &[
        "--set=certificates.mode=cert-manager,clientAuthentication.secretName=callers,commonLabels.a=b,commonAnnotations.c=d",
    ],
    &[
        "--set=namespaces={shop},guardedResources[0].group=example.com,guardedResources[0].versions={v1}",
        "--set=guardedResources[0].resources={widgets},page=true,podSecurityContext=null",
    ],
];

#[test]
fn every_preset_is_valid_for_the_oldest_and_the_newest_api_server() {
    let [oldest, .., newest] = KUBERNETES;
    for kubernetes in [oldest, newest] {
        let server = Server::of(kubernetes);
        let mut others = BTreeSet::new();
        let presets = PRESETS.map(|name| vec![preset(name)]);
        let more = MORE.map(|values| values.iter().map(|&value| value.to_owned()).collect());
        for values in [vec![]].into_iter().chain(presets).chain(more) {
            let arguments: Vec<_> =
                values.iter().map(String::as_str).chain(["--set=image.registry=registry.invalid"]).collect();
            let objects = rendered_for(kubernetes, &arguments).unwrap_or_else(|error| panic!("{values:?}: {error}"));
            assert!(objects.len() > 20, "{values:?}: {}", objects.len());
            let (theirs, ours): (Vec<_>, Vec<_>) =
                objects.iter().partition(|object| OTHERS.iter().any(|other| object["apiVersion"] == *other));
            let found: Vec<_> = ours.iter().flat_map(|object| server.violations(object)).collect();
            assert!(found.is_empty(), "Kubernetes {kubernetes}, {values:?}: {found:#?}");
            others.extend(theirs.iter().filter_map(|object| object["kind"].as_str()).map(str::to_owned));
        }
        assert_eq!(
            others,
            BTreeSet::from(["Certificate", "Issuer", "PrometheusRule", "ServiceMonitor"].map(str::to_owned))
        );
    }
}

#[test]
fn a_field_that_an_api_server_does_not_know_is_found() {
    let server = Server::of(KUBERNETES[0]);
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "x", "labels": {"a": "b"}},
        "spec": {"ports": [{"port": 443, "targetPort": "https"}]},
    });
    assert_eq!(server.violations(&service), [""; 0]);
    service["spec"]["ports"][0]["hostPort"] = 1.into();
    service["spec"]["ports"][0]["port"] = "443".into();
    service["metadata"]["labels"]["a"] = 1.into();
    service["spec"]["type"] = Value::Null;
    assert_eq!(server.violations(&service).len(), 4, "{:?}", server.violations(&service));
    service["apiVersion"] = "v2".into();
    assert_eq!(server.violations(&service), ["Service \"x\": v2 has no such kind"]);
}
