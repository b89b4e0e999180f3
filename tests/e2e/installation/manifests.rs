//! `manifests/`: base, overlays and chart are equivalent, and follow good practice for webhooks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::clients::HelmVersion;
use crate::harness::plane::Plane;
use crate::harness::rendered::{OVERLAYS, REGISTRY, chart, helm, kustomize, object, of_kind, strings};
use crate::harness::webhook::OPEN_UNTIL_CALLED;

/// Without hooks, which no kustomization has.
const NO_HOOKS: &str = "--no-hooks";

/// Every way to install Interlock, with its namespace.
fn installations() -> Vec<(String, &'static str, Vec<Value>)> {
    let mut all = vec![("base".to_owned(), "interlock-system", kustomize("base"))];
    for (overlay, _) in OVERLAYS {
        let path = format!("overlays/{overlay}");
        all.push((path.clone(), "interlock-system", kustomize(&path)));
    }
    all.push(("chart".to_owned(), "platform", chart(HelmVersion::V4, "platform", &[])));
    all
}

#[test]
fn the_chart_renders_what_the_kustomizations_do() {
    for version in HelmVersion::ALL {
        same("base", &kustomize("base"), &chart(version, "interlock-system", &[NO_HOOKS]));
    }
    for (overlay, values) in OVERLAYS {
        let rendered = chart(HelmVersion::V4, "interlock-system", &[NO_HOOKS, values]);
        same(overlay, &kustomize(&format!("overlays/{overlay}")), &rendered);
    }
}

#[track_caller]
fn same(what: &str, expected: &[Value], rendered: &[Value]) {
    let by_name = |objects: &[Value]| -> BTreeMap<String, Value> {
        let named = objects.iter().map(|object| {
            let metadata = &object["metadata"];
            (format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"]), comparable(object))
        });
        named.collect()
    };
    let (mut expected, rendered) = (by_name(expected), by_name(rendered));
    // helm creates the namespace itself, with `--create-namespace`.
    expected.retain(|_, object| object["kind"] != "Namespace");
    assert_eq!(expected.keys().collect::<Vec<_>>(), rendered.keys().collect::<Vec<_>>(), "{what}");
    for (name, object) in &expected {
        let shown = |object: &Value| serde_json::to_string_pretty(object).unwrap();
        assert!(object == &rendered[name], "{what}: {name}\n{}\n{}", shown(object), shown(&rendered[name]));
    }
}

/// Removes helm's own metadata and the registry, reads the policy, whose text may differ, and sorts lists by name.
fn comparable(object: &Value) -> Value {
    let mut object = sorted(object);
    if let Some(Value::String(policy)) = object.pointer_mut("/data/cluster.yaml") {
        object["data"]["cluster.yaml"] = serde_saphyr::from_str(policy).unwrap();
    }
    if let Some(Value::String(image)) = object.pointer_mut("/spec/template/spec/containers/0/image") {
        *image = image.replace(REGISTRY, "");
    }
    // The base has the generated definition, which has no labels.
    let is_definition = object["kind"] == "CustomResourceDefinition";
    let metadata = object["metadata"].as_object_mut().unwrap();
    if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
        for ours in ["app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"] {
            labels.remove(ours);
        }
        labels.retain(|name, _| !is_definition || name != "app.kubernetes.io/name");
        if labels.is_empty() {
            metadata.remove("labels");
        }
    }
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove("helm.sh/resource-policy");
        // Flux installs charts.
        annotations.remove("helm.toolkit.fluxcd.io/driftDetection");
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), sorted(value))).collect(),
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(sorted).collect();
            if items.iter().all(|item| item["name"].is_string()) {
                items.sort_by_key(|item| item["name"].as_str().map(str::to_owned));
            }
            Value::Array(items)
        }
        other => other.clone(),
    }
}

/// A pod on the host network shares no node with another replica, and no NetworkPolicy is rendered for it.
#[track_caller]
fn check_network(what: &str, is_on_host: bool, spec: &Value, objects: &[Value]) {
    let pod = &spec["template"]["spec"];
    assert_eq!(pod.get("hostNetwork"), is_on_host.then_some(&json!(true)), "{what}");
    if is_on_host {
        assert_eq!(of_kind(objects, "NetworkPolicy").count(), 0, "{what}: it would have no effect");
        let apart = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
        assert_eq!(apart["topologyKey"], "kubernetes.io/hostname", "{what}");
        assert_eq!(apart["labelSelector"]["matchLabels"], spec["selector"]["matchLabels"], "{what}");
    } else {
        let policy = object(objects, "NetworkPolicy", "interlock");
        assert_eq!(policy["spec"]["podSelector"]["matchLabels"], spec["selector"]["matchLabels"], "{what}");
        assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]), "{what}");
    }
}

/// The only container of a pod.
#[track_caller]
fn check_container(what: &str, pod: &Value) {
    let containers = pod["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1, "{what}");
    let container = &containers[0];
    assert_eq!(
        (&pod["securityContext"], &container["securityContext"]),
        (&if what == "overlays/openshift" { ANY_ACCOUNT.value() } else { POD.value() }, &CONTAINER.value()),
        "{what}"
    );
    assert!(container["resources"]["requests"]["memory"].is_string(), "{what}");
    assert!(container["resources"]["limits"]["memory"].is_string(), "{what}");
    assert_eq!(container["resources"]["limits"].get("cpu"), None, "{what}");
    for (probe, path) in [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        assert_eq!(container[probe]["httpGet"], json!({"path": path, "port": "admin"}), "{what}");
    }
    let image = container["image"].as_str().unwrap();
    assert_eq!(image.replace(REGISTRY, ""), format!("interlock:{}", env!("CARGO_PKG_VERSION")), "{what}");
    // Every variable is one that `serve` knows, and there are no flags.
    assert_eq!(container["args"], json!(["serve"]), "{what}");
    let mounted: Vec<_> = container["volumeMounts"].as_array().unwrap().iter().collect();
    assert!(mounted.iter().all(|mount| mount["readOnly"] == true && mount.get("subPath").is_none()), "{what}");
}

#[test]
fn every_installation_survives_the_loss_of_a_replica_and_runs_restricted() {
    for (what, namespace, objects) in installations() {
        let spec = &object(&objects, "Deployment", "interlock")["spec"];
        assert!(spec["replicas"].as_u64().unwrap() >= 2, "{what}");
        // On the host network a surge pod may find no node.
        let is_on_host = what == "overlays/host-network";
        assert_eq!(spec["strategy"]["rollingUpdate"]["maxUnavailable"], u64::from(is_on_host), "{what}");
        assert_eq!(spec["strategy"]["rollingUpdate"]["maxSurge"], u64::from(!is_on_host), "{what}");
        let labels = &spec["template"]["metadata"]["labels"];
        for (key, value) in spec["selector"]["matchLabels"].as_object().unwrap() {
            assert_eq!(&labels[key], value, "{what}");
        }
        let budget = object(&objects, "PodDisruptionBudget", "interlock");
        assert_eq!(budget["spec"]["selector"]["matchLabels"], spec["selector"]["matchLabels"], "{what}");
        let pod = &spec["template"]["spec"];
        check_network(&what, is_on_host, spec, &objects);
        let spread: Vec<_> = pod["topologySpreadConstraints"].as_array().unwrap().iter().collect();
        assert_eq!(spread.len(), 2, "{what}");
        assert!(
            spread.iter().all(|it| it["labelSelector"]["matchLabels"] == spec["selector"]["matchLabels"]),
            "{what}"
        );
        // Longer than the server's drain and the end of its connections.
        let limits = release_interlock::serve::https::Limits::default();
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(grace > (limits.drain_delay + limits.drain).as_secs() + 4, "{what}");
        assert_eq!(pod["priorityClassName"], "interlock", "{what}");
        assert_eq!(pod["automountServiceAccountToken"], true, "{what}");
        assert_eq!(pod["enableServiceLinks"], false, "{what}");
        check_container(&what, pod);
        let profile = if is_on_host { "privileged" } else { "restricted" };
        assert!(
            of_kind(&objects, "Namespace")
                .all(|it| { it["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == profile })
        );
        for object in &objects {
            let lies_in = object["metadata"].get("namespace");
            let elsewhere = object["kind"] == "RoleBinding" && what == "overlays/namespaced";
            assert!(lies_in.is_none_or(|it| it == namespace) || elsewhere, "{what}: {object}");
        }
    }
}

struct Context(&'static str);

impl Context {
    fn value(&self) -> Value {
        serde_json::from_str(self.0).unwrap()
    }
}

const POD: Context = Context(
    r#"{"runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"}}"#,
);
/// OpenShift assigns the account.
const ANY_ACCOUNT: Context = Context(r#"{"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}"#);
const CONTAINER: Context = Context(
    r#"{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}}"#,
);

#[test]
fn every_registration_is_narrow_and_leaves_itself_out() {
    for (what, namespace, objects) in installations() {
        for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
            for entry in object(&objects, kind, "interlock")["webhooks"].as_array().unwrap() {
                let name = format!("{what}: {}", entry["name"]);
                assert!(entry["timeoutSeconds"].as_u64().unwrap() <= 3, "{name}");
                assert_eq!(entry["sideEffects"], "NoneOnDryRun", "{name}");
                assert_eq!(entry["matchPolicy"], "Equivalent", "{name}");
                assert_eq!(entry["admissionReviewVersions"], json!(["v1"]), "{name}");
                let service = &entry["clientConfig"]["service"];
                assert_eq!(
                    (&service["name"], &service["namespace"]),
                    (&json!("interlock"), &json!(namespace)),
                    "{name}"
                );
                assert_eq!(entry["clientConfig"].get("caBundle"), None, "{name}");
                for rule in entry["rules"].as_array().unwrap() {
                    let named = [strings(&rule["apiGroups"]), strings(&rule["resources"])].concat();
                    let never = ["*", "*/*", "leases", "nodes", "events", "coordination.k8s.io", "events.k8s.io"];
                    let has_condition = |name: &str| {
                        entry["matchConditions"].as_array().unwrap().iter().any(|condition| condition["name"] == name)
                    };
                    // Only the marks say what belongs to a release, and only what takes it away is sent.
                    let loses_marks = entry["name"] == "objects.protected.interlock.dev"
                        && has_condition("loses-its-marks")
                        && entry["objectSelector"]["matchLabels"]["app.kubernetes.io/managed-by"] == "Helm";
                    assert!(loses_marks || !named.iter().any(|item| never.contains(item)), "{name}");
                    // A write of the status can remove the annotation of a Namespace.
                    let loses_protection = named == ["", "namespaces", "namespaces/status", "namespaces/finalize"]
                        && has_condition("loses-its-protection");
                    let sends_status = named.iter().any(|item| item.ends_with("/status"));
                    // Nobody but a controller waits for these.
                    let is_forged = entry["name"] == "statuses.interlock.dev" && has_condition("not-by-controllers");
                    assert!(loses_marks || loses_protection || is_forged || !sends_status, "{name}");
                }
                let is_for_probes = entry["name"].as_str().unwrap().ends_with("probes.interlock.dev");
                assert_eq!(
                    entry["failurePolicy"] == "Fail",
                    is_for_probes,
                    "{name}: closed before a review has arrived"
                );
                if is_for_probes {
                    let half = if kind.starts_with('V') { "validating" } else { "mutating" };
                    assert_eq!(
                        entry["objectSelector"],
                        json!({"matchLabels": {"interlock.dev/probe": half}}),
                        "{name}"
                    );
                    assert_eq!(entry["namespaceSelector"], json!({}), "{name}");
                    assert_eq!(entry["matchConditions"][0]["name"], "dry-run", "{name}");
                    continue;
                }
                if open_until_called(&objects).contains(&entry["name"].as_str().unwrap().to_owned()) {
                    assert!(what != "overlays/audit-first", "{name}");
                    let conditions = entry["matchConditions"].as_array().unwrap();
                    assert!(conditions.iter().any(|it| it["name"] == "not-cascading-deletion"), "{name}");
                }
                // Overrides can be in any namespace, and Interlock starts without them.
                if entry["name"].as_str().unwrap().contains("overrides.") && what != "overlays/namespaced" {
                    continue;
                }
                let selector = &entry["namespaceSelector"]["matchExpressions"];
                assert_eq!(selector[0]["key"], "kubernetes.io/metadata.name", "{name}");
                let guarded = if what == "overlays/namespaced" {
                    json!({"operator": "In", "values": ["shop"]})
                } else {
                    json!({"operator": "NotIn", "values": [namespace, "kube-system", "kube-node-lease"]})
                };
                assert_eq!(
                    (&selector[0]["operator"], &selector[0]["values"]),
                    (&guarded["operator"], &guarded["values"]),
                    "{name}"
                );
            }
        }
        let objects_entry =
            object(&objects, "ValidatingWebhookConfiguration", "interlock")["webhooks"].as_array().unwrap();
        let of_releases = objects_entry.iter().find(|entry| entry["name"] == "objects.interlock.dev").unwrap();
        let ours = format!("['meta.helm.sh/release-namespace'] == '{namespace}'");
        assert!(of_releases["matchConditions"][0]["expression"].as_str().unwrap().contains(&ours), "{what}");
    }
}

#[test]
fn no_installation_grants_dangerous_rights() {
    for (what, namespace, objects) in installations() {
        let account = json!({"kind": "ServiceAccount", "name": "interlock", "namespace": namespace});
        for kind in ["ClusterRole", "Role"] {
            for role in of_kind(&objects, kind) {
                for rule in role["rules"].as_array().unwrap() {
                    let said =
                        [strings(&rule["apiGroups"]), strings(&rule["resources"]), strings(&rule["verbs"])].concat();
                    let never = ["*", "escalate", "bind", "impersonate", "deletecollection", "nodes", "pods/exec"];
                    assert!(
                        !said.iter().any(|word| never.contains(word) || word.ends_with("/token")),
                        "{what}: {rule}"
                    );
                    if said.contains(&"admissionregistration.k8s.io") && said.contains(&"patch") {
                        assert_eq!(rule["resourceNames"], json!(["interlock"]), "{what}");
                    }
                }
            }
        }
        for kind in ["ClusterRoleBinding", "RoleBinding"] {
            for binding in of_kind(&objects, kind).filter(|it| it["metadata"].get("annotations").is_none()) {
                assert_eq!(binding["subjects"], json!([account]), "{what}");
                let role = binding["roleRef"]["name"].as_str().unwrap();
                assert!(!["interlock-reader", "interlock-breakglass"].contains(&role), "{what}: {role} is for people");
                let secrets = ["interlock", "interlock-leader"].contains(&role) && kind == "ClusterRoleBinding";
                assert!(!secrets || what != "overlays/namespaced", "{what}: {role}");
            }
        }
        let certificates = objects.iter().any(|it| it["metadata"]["name"] == "interlock-certificates");
        assert_eq!(certificates, what != "overlays/cert-manager", "{what}");
        let flow = object(&objects, "FlowSchema", "interlock");
        assert_eq!(flow["spec"]["rules"][0]["subjects"][0]["serviceAccount"]["namespace"], namespace, "{what}");
    }
}

#[test]
fn the_chart_lints_and_rejects_wrong_values_with_a_message() {
    for version in HelmVersion::ALL {
        helm(version, "lint", "interlock-system", &["--strict"]).expect_success();
        let wrong = [
            ("mode=careful", "'/mode': value must be one of"),
            ("replica=3", "additional properties 'replica' not allowed"),
            ("replicas=-1", "'/replicas': minimum: got -1, want 0"),
            ("image.registri=x", "'/image': additional properties 'registri' not allowed"),
            ("failurePolicy=Fail", "'/failurePolicy': value must be one of"),
            ("namespaces={Shop}", "'/namespaces/0'"),
            ("clientAuthentication.names={one\\,two}", "'/clientAuthentication/names/0'"),
            (
                "namespaces={interlock-system}",
                "interlock-system cannot be guarded, because an outage of Interlock would block its own repair",
            ),
            ("networkPolicy.reviewsFrom[0].cidr=10.0.0.0/8", "additional properties 'cidr' not allowed"),
            ("priorityClass.value=2000000000", "'/priorityClass/value': maximum: got 2"),
            ("image.registry=", "image.registry: there is no default"),
            ("hostNetwork=true,ports.webhook=10250", "on the host network 10250 is the kubelet's"),
            ("policies.cluster.rules.manual-edits.mode=off", "additional properties 'manual-edits' not allowed"),
            (
                "policies.namespaces.shop=kind: NamespacePolicy",
                "policies.namespaces.shop: the key apiVersion is missing",
            ),
        ];
        for (values, sentence) in wrong {
            helm(version, "template", "interlock-system", &["--set", values]).expect_failure(&[sentence]);
        }
    }
}

#[test]
fn each_value_of_the_chart_reaches_its_object() {
    let values = [
        "image.registry=registry.invalid/team",
        "image.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
        "failurePolicy=Ignore",
        "exemptNamespaces={calico-system,longhorn-system}",
        "guardedResources[0].group=example.com",
        "guardedResources[0].versions={v1}",
        "guardedResources[0].resources={widgets}",
        "guardedResources[0].scale=true",
        "policies.namespaces.shop.rules.freeze.mode=enforce",
        "certificates.mode=secret",
        "certificates.secretName=ours",
        "clientAuthentication.configMapName=callers",
        "clientAuthentication.names={apiserver,other}",
        "monitoring.serviceMonitor.enabled=true",
        "extraEnv[0].name=INTERLOCK_LOG",
        "extraEnv[0].value=debug",
    ];
    let arguments: Vec<_> = values.iter().flat_map(|value| ["--set", value]).collect();
    let objects = chart(HelmVersion::V4, "platform", &arguments);
    let pod = &object(&objects, "Deployment", "interlock")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let digest = "0".repeat(64);
    assert_eq!(container["image"], format!("registry.invalid/team/interlock@sha256:{digest}"));
    let environment: BTreeMap<_, _> =
        container["env"].as_array().unwrap().iter().map(|it| (it["name"].as_str().unwrap(), &it["value"])).collect();
    assert_eq!(environment["INTERLOCK_TLS_CERT_FILE"], "/etc/interlock/tls/tls.crt");
    assert_eq!(environment["INTERLOCK_CLIENT_CA_FILE"], "/etc/interlock/client-ca/ca.crt");
    assert_eq!(environment["INTERLOCK_CLIENT_NAME"], "apiserver,other");
    assert_eq!(environment["INTERLOCK_LOG"], "debug");
    let volumes = pod["volumes"].as_array().unwrap();
    assert!(volumes.iter().any(|it| it["secret"]["secretName"] == "ours"));
    assert_eq!(
        object(&objects, "ConfigMap", "interlock-namespace-policies")["data"]["shop.yaml"].as_str().unwrap().trim(),
        "apiVersion: interlock.dev/v1alpha1\nkind: NamespacePolicy\nrules:\n  freeze:\n    mode: enforce"
    );
    let entries = object(&objects, "ValidatingWebhookConfiguration", "interlock")["webhooks"].as_array().unwrap();
    assert_eq!((open_until_called(&objects).len(), closed(entries)), (0, vec!["probes.interlock.dev"]));
    let exempt = json!(["platform", "kube-system", "kube-node-lease", "calico-system", "longhorn-system"]);
    let selectors: Vec<_> =
        entries.iter().filter_map(|entry| entry.pointer("/namespaceSelector/matchExpressions")).collect();
    assert!(
        selectors.len() > 5 && selectors.iter().all(|expressions| expressions[0]["values"] == exempt),
        "{selectors:?}"
    );
    for (name, resource) in [
        ("objects.interlock.dev", "widgets"),
        ("sveltos-objects.interlock.dev", "widgets"),
        ("scale.interlock.dev", "widgets/scale"),
    ] {
        let rules = entries.iter().find(|entry| entry["name"] == name).unwrap()["rules"].as_array().unwrap();
        assert_eq!(rules.last().unwrap()["resources"], json!([resource]), "{name}");
    }
    let rules = object(&objects, "ClusterRole", "interlock")["rules"].as_array().unwrap();
    let widgets = json!({"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]});
    assert!(rules.contains(&widgets));
    object(&objects, "ServiceMonitor", "interlock");
    // The namespace of the release sets these values.
    let plain = chart(HelmVersion::V4, "platform", &[]);
    assert!(plain.iter().all(|object| !object.to_string().contains("interlock-system")));
}

/// The names of the entries that fail closed.
fn closed(entries: &[Value]) -> Vec<&str> {
    let closed = entries.iter().filter(|entry| entry["failurePolicy"] != "Ignore");
    closed.filter_map(|entry| entry["name"].as_str()).collect()
}

/// The names in the annotation of the validating half.
fn open_until_called(objects: &[Value]) -> Vec<String> {
    let metadata = &object(objects, "ValidatingWebhookConfiguration", "interlock")["metadata"];
    let names = metadata["annotations"][OPEN_UNTIL_CALLED].as_str().into_iter().flat_map(|names| names.split(','));
    names.map(str::to_owned).collect()
}

/// Rendered without a cluster, by kubectl, Argo CD or `helm template`.
#[test]
fn what_fails_closed_is_open_and_named_until_a_review_has_arrived() {
    let closing = [
        "create-delete.records.interlock.dev",
        "commits.sveltos.interlock.dev",
        "overrides.interlock.dev",
        "statuses.interlock.dev",
    ];
    let protected =
        ["uninstalls", "objects", "namespaces", "declarations"].map(|it| format!("{it}.protected.interlock.dev"));
    for (what, _, objects) in installations() {
        let mut expected: Vec<_> = closing.map(str::to_owned).to_vec();
        match what.as_str() {
            "overlays/audit-first" => expected.clear(),
            "overlays/protected-releases" => expected.extend(protected.clone()),
            _ => {}
        }
        assert_eq!(open_until_called(&objects), expected, "{what}");
    }
}

/// Agents send reviews; they are not the API server to which Interlock connects.
#[test]
fn reviews_come_from_addresses_and_peers_of_the_network_policy() {
    let policy = |values: &[&str]| {
        let arguments: Vec<_> = values.iter().flat_map(|value| ["--set", value]).collect();
        let objects = chart(HelmVersion::V4, "platform", &arguments);
        object(&objects, "NetworkPolicy", "interlock")["spec"].clone()
    };
    let cidrs = "networkPolicy.apiServerCidrs={10.0.0.0/8}";
    let peers = "networkPolicy.reviewsFrom[0].podSelector.matchLabels.k8s-app=konnectivity-agent";
    let block = json!({"ipBlock": {"cidr": "10.0.0.0/8"}});
    let agent = json!({"podSelector": {"matchLabels": {"k8s-app": "konnectivity-agent"}}});
    for (values, from, to) in [
        (vec![cidrs], Some(json!([block])), Some(json!([block]))),
        (vec![peers], Some(json!([agent])), None),
        (vec![cidrs, peers], Some(json!([block, agent])), Some(json!([block]))),
        (vec![], None, None),
    ] {
        let policy = policy(&values);
        let shown = (policy["ingress"][0].get("from"), policy["egress"][0].get("to"));
        assert_eq!(shown, (from.as_ref(), to.as_ref()), "{values:?}");
    }
}

/// The definitions are deleted with the chart only on request, and the registration is removed before anything else.
#[test]
fn an_uninstall_removes_the_registration_first_and_keeps_the_definitions() {
    let objects = chart(HelmVersion::V3, "platform", &[]);
    for definition in ["releaseoverrides.interlock.dev", "freezes.interlock.dev"] {
        let definition = object(&objects, "CustomResourceDefinition", definition);
        assert_eq!(definition["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    }
    let hooks: Vec<_> =
        objects.iter().filter(|it| it["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete").collect();
    assert_eq!(hooks.len(), 6);
    let weight =
        |object: &Value| object["metadata"]["annotations"]["helm.sh/hook-weight"].as_str().unwrap().parse::<i32>();
    for hook in &hooks {
        let policy = hook["metadata"]["annotations"]["helm.sh/hook-delete-policy"].as_str().unwrap();
        assert_eq!(policy, "before-hook-creation,hook-succeeded");
        assert!(hook["kind"] == "Job" || weight(hook).unwrap() < 0, "{hook}");
    }
    let job = &object(&objects, "Job", "interlock-uninstall")["spec"]["template"];
    let replicas = &object(&objects, "Deployment", "interlock")["spec"]["selector"]["matchLabels"];
    assert_ne!(job["metadata"]["labels"]["app.kubernetes.io/component"], replicas["app.kubernetes.io/component"]);
    assert_eq!(job["spec"]["containers"][0]["args"], json!(["registration", "remove", "--purge"]));
    assert_eq!(
        (&job["spec"]["securityContext"], &job["spec"]["containers"][0]["securityContext"]),
        (&POD.value(), &CONTAINER.value())
    );
}

/// The API server checks fields, and Pod Security warns of pods of workloads that break the profile of the namespace.
#[test]
fn the_api_server_accepts_every_installation_and_all_but_the_host_network_are_restricted() {
    let plane = Plane::without_webhook();
    let admin = plane.kubectl(&plane.admin());
    // A dry run does not create the namespace for the objects inside it.
    for namespace in ["interlock-system", "platform", "shop"] {
        let made = admin.run(&["create", "namespace", namespace]);
        assert!(made.success() || made.stderr.contains("already exists"), "{made}");
        admin.ok(&["label", "namespace", namespace, "--overwrite", "pod-security.kubernetes.io/warn=restricted"]);
    }
    for (what, _, objects) in installations() {
        // Their definitions are not installed here.
        let known = objects.into_iter().filter(|it| it["apiVersion"] != "cert-manager.io/v1");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": known.collect::<Vec<_>>()});
        let checked = admin.with_file("create", &list, &["--dry-run=server"]);
        let there = |line: &str| line.contains("already exists");
        let (warnings, complaints): (Vec<_>, Vec<_>) = checked
            .stderr
            .lines()
            .filter(|line| !there(line))
            .partition(|line| line.contains("would violate PodSecurity \"restricted:latest\""));
        assert!(complaints.is_empty(), "{what}\n{checked}");
        let is_on_host = what == "overlays/host-network";
        assert_eq!(warnings.len(), usize::from(is_on_host), "{what}\n{checked}");
        assert!(warnings.iter().all(|warning| warning.contains("host namespaces")), "{what}\n{checked}");
    }
}
