//! A cap: nothing is refused, everything is reported, and an override that is not valid opens nothing later.

use std::fs;
use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::decisions::decisions;
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};

/// Longer than the interval at which the directory is read.
const TAKEN_UP: Duration = Duration::from_secs(45);

/// The shipped policy with protected namespaces, and what a test adds.
fn policy(more: &str) -> String {
    format!("{}protected: {{namespaces: [capped-*]}}\n{more}", include_str!("../../../policies/cluster.yaml"))
}

fn open(namespace: &Namespace<'_>, args: &[&str]) -> Output {
    let (plane, release) = (namespace.plane(), format!("{}/demo", namespace.name()));
    let asked = ["override", &release, "--rule", "manual-edit", "--reason", "incident 7"];
    run(plane.interlock(&plane.person("alice"), &[&asked[..], args].concat()), Duration::from_secs(60))
}

#[test]
fn under_a_cap_everything_passes_and_a_void_override_opens_nothing_once_there_is_none() {
    let plane = Plane::start(&policy("cap: audit\n"));
    plane.define("manifests/base/releaseoverrides.yaml");
    let [namespace, other] = ["capped", "capped-too"].map(|name| Namespace::new(&plane, name));
    for namespace in [&namespace, &other] {
        namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", Chart::new("demo").path()]);
    }
    let image = |person: &str, tag: &str| {
        let image = format!("app={person}:{tag}");
        namespace.kubectl(person).run(&["set", "image", "deployment/demo", &image])
    };
    image("bob", "1").expect_success();
    namespace.kubectl("bob").ok(&["delete", "service/demo"]);
    namespace.kubectl("bob").ok(&["delete", "secret/sh.helm.release.v1.demo.v1", "--dry-run=server"]);
    other.kubectl("bob").ok(&["delete", "namespace", other.name(), "--wait=false"]);
    let message =
        |rule: &str| decisions(&namespace).iter().chain(&decisions(&other)).any(|one| one.rules.contains(rule));
    for rule in ["manual-edit=audit", "manual-delete=audit", "record-deletion=audit", "protected-release=audit"] {
        assert!(message(rule), "{rule}: {:?}", decisions(&namespace));
    }

    let long = open(&namespace, &["--for", "5h", "--user", "bob"]).expect_success();
    assert!(long.stderr.contains("the override opens nothing: The override would be open for"), "{long}");
    open(&namespace, &["--for", "30m", "--user", "alice"]).expect_success();
    let stored = namespace.kubectl("alice").get(&["releaseoverrides"]);
    let voided = stored["items"].as_array().unwrap().iter().map(|it| {
        let mark = it["metadata"]["annotations"].get("interlock.dev/void");
        (it["spec"]["users"][0].as_str().unwrap(), mark.is_some())
    });
    let mut voided: Vec<_> = voided.collect();
    voided.sort_unstable();
    assert_eq!(voided, [("alice", false), ("bob", true)]);

    fs::write(plane.webhook().policies().join("cluster.yaml"), policy("")).unwrap();
    // An image that is set already would be no edit.
    let mut tags = (2..).map(|tag: usize| tag.to_string());
    eventually(TAKEN_UP, "the cap is gone", || match image("bob", &tags.next().unwrap()) {
        refused if refused.stderr.contains("[manual-edit]") => Ok(()),
        output => Err(output.to_string()),
    });
    image("alice", "1").expect_success();
}
