//! Admission from files of the API server: the guard that is left when an administrator removes the registration.

use std::fs;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Kubectl};
use crate::harness::eventually::eventually;
use crate::harness::forging;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records::V1;
use crate::harness::webhook::{Webhook, register};

/// The API server looks at its files when they change, and at the latest after a minute.
const RELOADED: Duration = Duration::from_secs(90);

const NOT_YOURS: &str = "may not change what Interlock depends on";
const CLOSED: &str = "failed calling webhook \"create-delete.records.interlock.dev\"";
const REGISTERED: [&str; 2] = ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"];

/// The files of `manifests/static` in a directory of the test.
struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let files = Self { dir: tempfile::tempdir().unwrap() };
        let [webhooks, policies] = ["webhooks", "policies"].map(|name| files.dir.path().join(name));
        fs::create_dir(&webhooks).unwrap();
        fs::create_dir(&policies).unwrap();
        fs::write(policies.join("interlock.yaml"), shipped("policies/interlock.yaml")).unwrap();
        let directory = files.dir.path().to_str().unwrap();
        let configuration = shipped("admission.yaml").replace("/etc/kubernetes/interlock", directory);
        fs::write(files.dir.path().join("admission.yaml"), configuration).unwrap();
        // Nobody listens on port 9, which is reserved for the discard protocol.
        files.point("127.0.0.1:9", "");
        files
    }

    fn flags(&self) -> [String; 2] {
        let configuration = self.dir.path().join("admission.yaml");
        [
            "--feature-gates=ManifestBasedAdmissionControlConfig=true".to_owned(),
            format!("--admission-control-config-file={}", configuration.display()),
        ]
    }

    /// Sends reviews to this address, where this CA is trusted.
    fn point(&self, address: &str, ca: &str) {
        let mut webhook: Value = serde_saphyr::from_str(&shipped("webhooks/interlock.yaml")).unwrap();
        for entry in webhook["webhooks"].as_array_mut().unwrap() {
            let url = entry["clientConfig"]["url"].as_str().unwrap().replace("INTERLOCK_ADDRESS", address);
            entry["clientConfig"] = json!({"url": url, "caBundle": STANDARD.encode(ca)});
        }
        // Replaced atomically.
        let new = self.dir.path().join("new");
        fs::write(&new, webhook.to_string()).unwrap();
        fs::rename(new, self.dir.path().join("webhooks/interlock.yaml")).unwrap();
    }
}

fn shipped(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/static").join(file)).unwrap()
}

#[test]
fn nobody_switches_interlock_off_and_files_guard_where_a_manager_does() {
    let files = Files::new();
    let plane = Plane::with_api_server("hard", &files.flags());
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let webhook = Webhook::replica(&plane, &policies, "replica", &[]).unwrap();
    let (url, ca) = (webhook.url(), fs::read_to_string(webhook.ca()).unwrap());
    register(&plane, &url, webhook.ca()).unwrap();
    let admin = plane.kubectl(&plane.admin());

    // Nobody listens at the static address yet: the gates are closed, whatever the registered webhook says.
    let namespace = Namespace::new(&plane, "hard");
    let chart = Chart::new("demo");
    let helm = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
    helm.fails(&["install", "demo", chart.path()], &[CLOSED, "127.0.0.1:9"]);
    namespace.kubectl("alice").ok(&["create", "configmap", "ordinary"]);

    // The API server takes the file up without a restart, and the webhook judges.
    files.point(url.trim_start_matches("https://"), &ca);
    eventually(RELOADED, "the API server takes the file up", || {
        helm.run(&["install", "demo", chart.path()]).into_result()
    });

    not_even_system_masters_takes_it_away(&admin);
    other_configurations_and_namespaces_are_free(&admin);

    // A manager may remove the registration; the files still judge.
    let manager = ["--as=admin", "--as-group=system:masters", "--as-group=interlock:managers"];
    for kind in REGISTERED {
        admin.ok(&[&["delete", kind, "interlock"], &manager[..]].concat());
    }
    let kubectl = namespace.kubectl("alice");
    kubectl.fails(&["delete", "secret", V1], &["denied the request", "[record-deletion]"]);
    let mut record = kubectl.get(&["secret", V1]);
    forging::copy(&mut record, Driver::Secret, 2, "deployed");
    kubectl.with_file("create", &record, &[]).expect_failure(&["denied the request", "[unusual-create]"]);
    helm.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
    // They refuse while nobody answers.
    webhook.kill();
    helm.fails(&["upgrade", "demo", chart.path()], &[CLOSED]);
    admin.ok(&["delete", "namespace", namespace.name(), "--timeout=60s"]);
}

/// Neither by name, nor all of a kind, nor as a collection, nor by an edit.
#[track_caller]
fn not_even_system_masters_takes_it_away(admin: &Kubectl) {
    for kind in REGISTERED {
        admin.fails(&["delete", kind, "interlock"], &[NOT_YOURS, "admin"]);
        admin.fails(&["delete", kind, "--all"], &[NOT_YOURS]);
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}s");
        admin.fails(&["delete", "--raw", &path], &[NOT_YOURS]);
        let ignore = r#"[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]"#;
        admin.fails(&["patch", kind, "interlock", "--type=json", "-p", ignore], &[NOT_YOURS]);
    }
    admin.fails(&["delete", "namespace", "interlock-system"], &[NOT_YOURS]);
    for definition in [
        concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/base/releaseoverrides.yaml"),
        concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/base/freezes.yaml"),
    ] {
        admin.ok(&["apply", "-f", definition]);
        admin.ok(&["wait", "--for=condition=Established", "--timeout=60s", "-f", definition]);
        admin.fails(&["delete", "-f", definition], &[NOT_YOURS]);
    }
}

/// Interlock's own account may change its registration too. Nobody puts a file's name into the API.
#[track_caller]
fn other_configurations_and_namespaces_are_free(admin: &Kubectl) {
    let other = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "other"}, "webhooks": [],
    });
    admin.with_file("create", &other, &[]).expect_success();
    admin.ok(&["delete", "validatingwebhookconfiguration", "other"]);
    admin.ok(&["create", "namespace", "passing"]);
    admin.ok(&["delete", "namespace", "passing", "--wait=false"]);
    let label = ["label", "validatingwebhookconfiguration", "interlock", "team=platform"];
    admin.fails(&label, &[NOT_YOURS]);
    let ours = "--as=system:serviceaccount:interlock-system:interlock";
    admin.ok(&[&label[..], &[ours, "--as-group=system:masters"]].concat());
    let mut forged = other;
    forged["metadata"]["name"] = "interlock.static.k8s.io".into();
    admin.with_file("create", &forged, &[]).expect_failure(&["reserved"]);
}
