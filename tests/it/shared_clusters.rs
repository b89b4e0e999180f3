//! `docs/shared-clusters.md` and the API server's half of client authentication: the page shows the shipped files, and
//! they fit the registration and the chart.

use std::fs;

use serde_json::{Value, json};

use crate::harness::binary::repository;

fn text(file: &str) -> String {
    fs::read_to_string(repository(file)).unwrap()
}

fn shipped(name: &str) -> String {
    text(&format!("manifests/shared-cluster/{name}"))
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn the_page_shows_the_shipped_files() {
    let page = text("docs/shared-clusters.md");
    for name in ["admission.yaml", "kubeconfig.yaml"] {
        // Without the comment at the top, which the page says in its own words.
        let file: String =
            shipped(name).lines().skip_while(|line| line.starts_with('#')).map(|it| format!("{it}\n")).collect();
        assert!(page.contains(&format!("```yaml\n{file}```\n")), "{name} differs from the page");
    }
}

#[test]
fn both_webhook_plugins_find_the_certificate_for_the_registered_host() {
    let admission = yaml(&shipped("admission.yaml"));
    assert_eq!(admission["kind"], "AdmissionConfiguration");
    let plugins = admission["plugins"].as_array().unwrap();
    let names: Vec<_> = plugins.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"]);
    for plugin in plugins {
        let configuration = &plugin["configuration"];
        assert_eq!(configuration["kind"], "WebhookAdmissionConfiguration");
        assert_eq!(configuration["kubeConfigFile"], "/etc/kubernetes/interlock/kubeconfig.yaml");
    }
    let users = &yaml(&shipped("kubeconfig.yaml"))["users"];
    let directory = "/etc/kubernetes/interlock";
    let user = json!({"client-certificate": format!("{directory}/client.crt"), "client-key": format!("{directory}/client.key")});
    for half in ["validating", "mutating"] {
        let registration = yaml(&text(&format!("manifests/base/{half}-webhooks.yaml")));
        for entry in registration["webhooks"].as_array().unwrap() {
            let service = &entry["clientConfig"]["service"];
            // The API server looks for the host without its port only if the port is 443.
            assert_eq!(service.get("port").unwrap_or(&json!(443)), 443);
            let host = [&service["name"], &service["namespace"]].map(|it| it.as_str().unwrap()).join(".") + ".svc";
            assert_eq!(users, &json!([{"name": host, "user": user}]));
        }
    }
}

#[test]
fn the_page_is_named_where_operators_look() {
    let page = "docs/shared-clusters.md";
    for file in [
        "src/inspect/doctor/clients.rs",
        "manifests/chart/values.yaml",
        "manifests/base/network-policy.yaml",
        "manifests/shared-cluster/admission.yaml",
    ] {
        assert!(text(file).contains(page), "{file}");
    }
}
