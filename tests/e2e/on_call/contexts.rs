//! Several clusters at once: `status` and `changes` over several contexts.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};

const DEADLINE: Duration = Duration::from_secs(60);

/// A kubeconfig with the contexts `eu` and `us` of the plane, and `down`, where nothing listens.
fn kubeconfig(plane: &Plane) -> tempfile::NamedTempFile {
    let mut content: Value = serde_json::from_slice(&fs::read(plane.person("alice").kubeconfig()).unwrap()).unwrap();
    let context = content["contexts"][0]["context"].clone();
    let mut down = context.clone();
    down["cluster"] = "down".into();
    content["clusters"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "down", "cluster": {"server": "https://127.0.0.1:1"}}));
    content["contexts"] = json!([
        {"name": "eu", "context": context}, {"name": "us", "context": context}, {"name": "down", "context": down},
    ]);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), content.to_string()).unwrap();
    file
}

fn clusters(rows: &Value) -> BTreeSet<&str> {
    rows.as_array().unwrap().iter().map(|row| row["cluster"].as_str().unwrap_or("none")).collect()
}

#[test]
fn one_table_has_what_every_context_has_and_one_that_is_down_is_an_error_beside_it() {
    let plane = Plane::shared();
    let namespace = Namespace::new(plane, "contexts");
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", Chart::new("demo").path()]);
    let file = kubeconfig(plane);
    let ask = |command: &str, contexts: &[&str], more: &[&str]| -> Output {
        let named = contexts.iter().flat_map(|context| ["--context", context]);
        let first = [command, "-n", namespace.name(), "--kubeconfig", file.path().to_str().unwrap()];
        let all: Vec<_> = first.into_iter().chain(named).chain(more.iter().copied()).collect();
        run(plane.interlock(&plane.person("alice"), &all), DEADLINE)
    };
    for (command, rows) in [("status", "releases"), ("changes", "changes")] {
        let both = ask(command, &["eu", "us"], &["-o", "json"]).expect_success().json();
        assert_eq!(clusters(&both[rows]), BTreeSet::from(["eu", "us"]), "{both:#}");
        let one = ask(command, &["eu"], &["-o", "json"]).expect_success().json();
        assert_eq!(clusters(&one[rows]), BTreeSet::from(["none"]), "{one:#}");
        assert_eq!(2 * one[rows].as_array().unwrap().len(), both[rows].as_array().unwrap().len(), "{both:#}");

        let partial = ask(command, &["down", "us"], &[]);
        for said in ["CLUSTER", "us", "demo"] {
            assert!(partial.stdout.contains(said), "{said}: {partial}");
        }
        assert!(partial.stderr.contains("context down") && !partial.stderr.contains("context us"), "{partial}");
        let wanted = if command == "status" { 2 } else { 0 };
        assert_eq!(partial.status.code(), Some(wanted), "{partial}");
        ask(command, &["down"], &[]).expect_failure(&["Connection refused"]);
    }
    ask("status", &["eu", "us"], &["--watch"]).expect_failure(&["give one --context"]);
}
