//! The files of the hard mode: the static webhook has the same gates as the registered one.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::binary::repository;

/// Set to write the file instead of comparing it.
const WRITE: &str = "INTERLOCK_WRITE_MANIFESTS";

const HEAD: &str = "\
# The entries of manifests/base/validating-webhooks.yaml that fail closed, as a file of the API server: no API call can switch
# them off. Fill in the address, which the API server's host must reach and the certificate must contain, and the CA. See
# docs/hard-mode.md. Generated from the base: `INTERLOCK_WRITE_MANIFESTS=1 cargo test --test it hard_mode`.
";

fn path(file: &str) -> PathBuf {
    repository("manifests").join(file)
}

/// The documents of a file.
fn documents(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(path(file)).unwrap();
    text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

/// The gates, with an address instead of a Service.
fn made() -> Value {
    let base = documents("base/validating-webhooks.yaml").remove(0);
    let gates = base["metadata"]["annotations"]["interlock.dev/open-until-called"].as_str().unwrap();
    let is_gate = |entry: &&Value| gates.split(',').any(|name| entry["name"] == name);
    let gates = base["webhooks"].as_array().unwrap().iter().filter(is_gate).map(|entry| {
        let mut entry = entry.clone();
        // Nobody probes a static webhook.
        entry["failurePolicy"] = "Fail".into();
        entry["matchConditions"].as_array_mut().unwrap().retain(|condition| condition["name"] != "not-a-probe");
        entry["clientConfig"] = json!({"url": "https://INTERLOCK_ADDRESS/validate", "caBundle": ""});
        entry
    });
    json!({
        "apiVersion": base["apiVersion"], "kind": base["kind"], "metadata": {"name": "interlock.static.k8s.io"},
        "webhooks": gates.collect::<Vec<_>>(),
    })
}

#[test]
fn the_static_webhook_has_the_gates_of_the_base() {
    let made = made();
    assert_eq!(made["webhooks"].as_array().unwrap().len(), 4);
    let file = "static/webhooks/interlock.yaml";
    if std::env::var_os(WRITE).is_some() {
        fs::write(path(file), format!("{HEAD}{}", serde_saphyr::to_string(&made).unwrap())).unwrap();
    }
    let committed = documents(file);
    assert!(committed == [made], "{file} is old; {WRITE}=1 cargo test --test it hard_mode writes it");
}

#[test]
fn names_end_as_files_of_the_api_server_must() {
    for file in ["static/webhooks/interlock.yaml", "static/policies/interlock.yaml"] {
        for document in documents(file) {
            let name = document["metadata"]["name"].as_str().unwrap();
            assert!(name.ends_with(".static.k8s.io"), "{name}");
        }
    }
    let directories = documents("static/admission.yaml").remove(0)["plugins"].to_string();
    assert!(directories.contains("interlock/webhooks") && directories.contains("interlock/policies"), "{directories}");
}
