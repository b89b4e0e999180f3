//! The chart as helm renders it: values, policies, and presets for platforms.

mod openapi;
mod policies;
mod presets;
mod schema;

use std::fs;
use std::process::Command;

use regex::Regex;
use serde_json::Value;

use crate::harness::binary::{repository, stderr, stdout};
use crate::programs::assets;

/// Every preset in `manifests/chart/platforms`, and the component and the overlay of the same name.
pub(crate) const PRESETS: [&str; 5] = ["aks", "eks", "gke", "host-network", "openshift"];

/// Set to write generated files instead of comparing them.
const WRITE: &str = "INTERLOCK_WRITE_MANIFESTS";

/// The rendered objects, or what helm says.
fn rendered(arguments: &[&str]) -> Result<Vec<Value>, String> {
    rendered_for("1.36.0", &[&["--set=image.registry=registry.invalid"][..], arguments].concat())
}

fn rendered_for(kubernetes: &str, arguments: &[&str]) -> Result<Vec<Value>, String> {
    let helm = assets::helm4().unwrap_or_else(|error| panic!("{error}"));
    let mut helm = Command::new(helm);
    helm.current_dir(repository("")).args(["template", "interlock", "manifests/chart", "--namespace=interlock-system"]);
    let output = helm.args(["--kube-version", kubernetes]).args(arguments).output().unwrap();
    if output.status.success() { Ok(documents(stdout(&output))) } else { Err(stderr(&output).to_owned()) }
}

/// The objects of a stream of YAML documents.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").map(|document| document.trim_start_matches("---\n"));
    let parsed = documents.map(|document| serde_saphyr::from_str::<Option<Value>>(document).unwrap());
    parsed.flatten().filter(|document| !document.is_null()).collect()
}

#[track_caller]
fn object<'o>(objects: &'o [Value], kind: &str, name: &str) -> &'o Value {
    let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("expected {kind} {name}"))
}

fn preset(name: &str) -> String {
    format!("--values=manifests/chart/platforms/{name}.yaml")
}

#[track_caller]
fn expect_refused(arguments: &[&str], sentence: &str) {
    let error = rendered(arguments).expect_err("the chart was rendered");
    assert!(error.contains(sentence), "expected {sentence:?}\n{error}");
}

/// The oldest supported helm, 3.4, has the functions of Sprig 3.1. `.ci/versions` installs with it; this says so sooner.
#[test]
fn no_template_calls_a_function_that_the_oldest_helm_lacks() {
    let newer =
        Regex::new(r"\{\{[^}]*\b(dig|chunk|addf|subf|mulf|divf|add1f|maxf|minf|osBase|osDir|osExt|randInt)\s").unwrap();
    for file in fs::read_dir(repository("manifests/chart/templates")).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(newer.find(&text).map(|found| found.as_str()), None, "{}", path.display());
    }
    assert!(newer.is_match(r#"{{ dig "a" dict $b }}"#));
}

#[test]
fn an_image_without_a_registry_is_an_error_with_the_way_out() {
    let error = rendered_for("1.36.0", &[]).unwrap_err();
    assert!(
        error.contains("image.registry: there is no default") && error.contains("--set image.registry="),
        "{error}"
    );
    let objects = rendered(&[]).unwrap();
    let image = &object(&objects, "Deployment", "interlock")["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, &format!("registry.invalid/interlock:{}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn ports_that_cannot_work_are_refused_with_the_reason() {
    expect_refused(&["--set=ports.webhook=8081"], "ports: webhook and admin are both 8081; choose two");
    expect_refused(&["--set=ports.webhook=443"], "'/ports/webhook': minimum");
    expect_refused(
        &["--set=hostNetwork=true", "--set=ports.webhook=10250"],
        "on the host network 10250 is the kubelet's",
    );
    expect_refused(&["--set=hostNetwork=true", "--set=page=true"], "every process of the node could open it");
    let objects = rendered(&["--set=hostNetwork=true", "--set=ports.webhook=9443", "--set=service.port=8443"]).unwrap();
    for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        for entry in object(&objects, kind, "interlock")["webhooks"].as_array().unwrap() {
            assert_eq!(entry["clientConfig"]["service"]["port"], 8443, "{}", entry["name"]);
        }
    }
    let service = &object(&objects, "Service", "interlock")["spec"]["ports"][0];
    assert_eq!((&service["port"], &service["targetPort"]), (&8443.into(), &"https".into()));
    let pod = &object(&objects, "Deployment", "interlock")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!((&pod["hostNetwork"], &pod["dnsPolicy"]), (&true.into(), &"ClusterFirstWithHostNet".into()));
    assert_eq!(container["ports"][0]["containerPort"], 9443);
    let listens = container["env"].as_array().unwrap().iter().find(|it| it["name"] == "INTERLOCK_LISTEN").unwrap();
    assert_eq!(listens["value"], "0.0.0.0:9443");
}

#[test]
fn labels_and_annotations_reach_every_object_and_pod_but_no_selector() {
    let everything = [
        "--set=commonLabels.team=platform,commonLabels.app\\.kubernetes\\.io/version=ours",
        "--set=commonAnnotations.contact=oncall,commonAnnotations.admissions\\.enforcer/disabled=ours",
        "--set=serviceAccount.annotations.role=reader,serviceAccount.annotations.contact=iam",
        "--set=monitoring.serviceMonitor.enabled=true,monitoring.alerts.enabled=true,monitoring.dashboard.enabled=true",
        "--set=certificates.mode=cert-manager,protectedReleases=true",
    ];
    let objects = rendered(&everything).unwrap();
    assert!(objects.len() > 25, "{}", objects.len());
    for object in &objects {
        let (metadata, kind) = (&object["metadata"], &object["kind"]);
        let name = format!("{kind} {}", metadata["name"]);
        assert_eq!(metadata["labels"]["team"], "platform", "{name}");
        assert_eq!(metadata["labels"]["app.kubernetes.io/version"], env!("CARGO_PKG_VERSION"), "{name}");
        let contact = if name == "\"ServiceAccount\" \"interlock\"" { "iam" } else { "oncall" };
        assert_eq!(metadata["annotations"]["contact"], contact, "{name}");
        let pod = &object["spec"]["template"]["metadata"];
        if pod.is_object() {
            assert_eq!(
                (&pod["labels"]["team"], &pod["annotations"]["contact"]),
                (&"platform".into(), &"oncall".into())
            );
        }
        assert!(!object["spec"]["selector"].to_string().contains("platform"), "{name}");
    }
    assert_eq!(object(&objects, "ServiceAccount", "interlock")["metadata"]["annotations"]["role"], "reader");
    assert_eq!(object(&objects, "Job", "interlock-uninstall")["metadata"]["annotations"]["helm.sh/hook"], "pre-delete");
    let registered = object(&objects, "ValidatingWebhookConfiguration", "interlock");
    assert_eq!(registered["metadata"]["annotations"]["admissions.enforcer/disabled"], "true");
    expect_refused(&["--set=commonAnnotations.helm\\.sh/hook=pre-install"], "invalid propertyName 'helm.sh/hook'");
    expect_refused(
        &["--set=commonLabels.app\\.kubernetes\\.io/name=other"],
        "invalid propertyName 'app.kubernetes.io/name'",
    );
}

#[test]
fn the_configurations_keep_aks_from_rewriting_them_unless_the_values_say_otherwise() {
    let enforced = |objects: &[Value]| {
        ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"].map(|kind| {
            object(objects, kind, "interlock")["metadata"]["annotations"]["admissions.enforcer/disabled"].clone()
        })
    };
    assert_eq!(enforced(&rendered(&[]).unwrap()), ["true"; 2]);
    let other = ["--set-string=certificates.webhookAnnotations.admissions\\.enforcer/disabled=false"];
    assert_eq!(enforced(&rendered(&other).unwrap()), ["false"; 2]);
}

#[test]
fn security_contexts_can_be_emptied() {
    let of = |objects: &[Value]| {
        ["Deployment", "Job"].map(|kind| {
            let spec =
                objects.iter().find(|object| object["kind"] == kind).unwrap()["spec"]["template"]["spec"].clone();
            (spec.get("securityContext").cloned(), spec["containers"][0].get("securityContext").cloned())
        })
    };
    let shipped = of(&rendered(&[]).unwrap());
    assert!(shipped.iter().all(|(pod, container)| pod.is_some() && container.is_some()), "{shipped:?}");
    let emptied = of(&rendered(&["--set=podSecurityContext=null,securityContext=null"]).unwrap());
    assert_eq!(emptied, [(None, None), (None, None)]);
}

#[test]
fn the_name_of_the_cluster_reaches_the_replicas_and_the_address_of_the_runbook_the_alerts() {
    let name = "arn:aws:eks:eu-west-1:111122223333:cluster/prod";
    let runbook = "https://book.example.com/runbook.html";
    let objects = rendered(&[
        &format!("--set=clusterName={name}"),
        "--set=monitoring.alerts.enabled=true",
        &format!("--set=monitoring.alerts.runbookUrl={runbook}"),
    ]);
    let objects = objects.unwrap();
    let env = &object(&objects, "Deployment", "interlock")["spec"]["template"]["spec"]["containers"][0]["env"];
    let named = env.as_array().unwrap().iter().find(|variable| variable["name"] == "INTERLOCK_CLUSTER_NAME");
    assert_eq!(named.unwrap()["value"], name);
    let alerts = object(&objects, "PrometheusRule", "interlock").to_string();
    assert!(alerts.contains(&format!("{runbook}#interlockdown")) && !alerts.contains("interlock.dev/docs"), "{alerts}");
    expect_refused(&["--set=clusterName=a b"], "/clusterName");
}
