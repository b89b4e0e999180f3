//! The rights of Interlock's account: everything that it needs and nothing else, for some namespaces and for the whole
//! cluster.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::assets::interlock;
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion, Identity, Kubectl};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};
use crate::harness::records::V1;
use crate::harness::rendered::{chart, kustomize, object, of_kind, strings};
use crate::harness::webhook::Webhook;

const ACCOUNT: &str = "system:serviceaccount:interlock-system:interlock";
const DEADLINE: Duration = Duration::from_secs(90);

/// Every request of Interlock to the API server: group, resource, name if only one is needed, verbs. In each guarded
/// namespace, or cluster-scoped.
const USED: [(&str, &str, &str, &str); 37] = [
    ("", "secrets", "", "get list watch patch"),
    ("", "configmaps", "", "get list watch patch"),
    ("", "namespaces", "", "get list watch"),
    ("", "pods", "", "get"),
    ("", "replicationcontrollers", "", "get list watch"),
    ("", "serviceaccounts", "addon-controller", "get"),
    ("", "serviceaccounts", "helm-controller", "get"),
    ("", "serviceaccounts", "kustomize-controller", "get"),
    ("", "serviceaccounts", "operator-controller-controller-manager", "get"),
    ("apps", "deployments", "", "get list watch"),
    ("apps", "statefulsets", "", "get list watch"),
    ("apps", "replicasets", "", "get list watch"),
    ("apps", "daemonsets", "", "get"),
    ("argoproj.io", "applications", "", "get list"),
    ("argoproj.io", "applicationsets", "", "get"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "helmreleases.helm.toolkit.fluxcd.io", "list watch"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "releaseoverrides.interlock.dev", "list watch"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "freezes.interlock.dev", "list watch"),
    ("batch", "jobs", "", "get"),
    ("config.projectsveltos.io", "clusterconfigurations", "", "get"),
    ("config.projectsveltos.io", "clusterprofiles", "", "get"),
    ("config.projectsveltos.io", "clustersummaries", "", "get"),
    ("config.projectsveltos.io", "profiles", "", "get"),
    ("discovery.k8s.io", "endpointslices", "kubernetes", "get"),
    ("events.k8s.io", "events", "", "create patch list watch"),
    ("helm.toolkit.fluxcd.io", "helmreleases", "", "get list watch"),
    ("interlock.dev", "releaseoverrides", "", "get list watch delete"),
    ("interlock.dev", "freezes", "", "get list watch delete"),
    ("kustomize.toolkit.fluxcd.io", "kustomizations", "", "get list"),
    ("lib.projectsveltos.io", "configurationbundles", "", "get list"),
    ("lib.projectsveltos.io", "configurationgroups", "", "list"),
    ("lib.projectsveltos.io", "sveltosclusters", "", "get"),
    ("olm.operatorframework.io", "clusterextensions", "", "get list"),
    ("openreports.io", "reports", "", "list create patch delete"),
    ("wgpolicyk8s.io", "policyreports", "", "list create patch delete"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "interlock", "get list watch patch"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "interlock", "get list watch patch"),
];

/// Requests in Interlock's own namespace.
const USED_AT_HOME: [(&str, &str, &str, &str); 10] = [
    ("", "configmaps", "", "create"),
    ("", "configmaps", "interlock-losses", "get patch"),
    ("", "secrets", "", "create"),
    ("", "secrets", "interlock-ca", "get list watch update"),
    ("coordination.k8s.io", "leases", "", "create"),
    ("coordination.k8s.io", "leases", "interlock-leader", "get patch"),
    ("discovery.k8s.io", "endpointslices", "", "list"),
    ("apps", "deployments", "interlock", "get"),
    ("events.k8s.io", "events", "", "create"),
    ("interlock.dev", "releaseoverrides", "", "create"),
];

/// Requests that an attacker with the account would make: group, resource with subresource, name, verb, namespace.
const FORBIDDEN: [(&str, &str, &str, &str, &str); 28] = [
    ("", "secrets", "", "create", "shop"),
    ("", "secrets", "", "update", "shop"),
    ("", "secrets", "", "delete", "shop"),
    ("", "secrets", "", "deletecollection", "shop"),
    ("", "configmaps", "", "create", "shop"),
    ("", "configmaps", "", "delete", "shop"),
    ("", "secrets", "interlock-ca", "delete", "interlock-system"),
    ("coordination.k8s.io", "leases", "interlock-leader", "delete", "interlock-system"),
    ("coordination.k8s.io", "leases", "another", "patch", "interlock-system"),
    ("coordination.k8s.io", "leases", "kube-scheduler", "patch", "kube-system"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "create", ""),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "interlock", "delete", ""),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "another", "patch", ""),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "another", "patch", ""),
    ("rbac.authorization.k8s.io", "clusterroles", "", "escalate", ""),
    ("rbac.authorization.k8s.io", "clusterroles", "", "bind", ""),
    ("rbac.authorization.k8s.io", "clusterrolebindings", "", "create", ""),
    ("", "users", "", "impersonate", ""),
    ("", "serviceaccounts/token", "", "create", "interlock-system"),
    ("", "pods", "", "create", "interlock-system"),
    ("", "pods/exec", "", "create", "shop"),
    ("", "nodes", "", "get", ""),
    ("", "namespaces", "", "patch", ""),
    ("apps", "deployments", "", "patch", "shop"),
    ("apps", "deployments/scale", "", "patch", "shop"),
    ("interlock.dev", "releaseoverrides", "", "create", "shop"),
    ("interlock.dev", "freezes", "", "create", "interlock-system"),
    ("*", "*", "", "*", ""),
];

#[test]
fn the_account_has_exactly_the_rights_that_interlock_uses_and_a_removal_leaves_nothing_behind() {
    let files = tempfile::tempdir().unwrap();
    let audit = Audit::new(files.path());
    let plane = Plane::with_api_server("rights", &audit.flags());
    let admin = plane.kubectl(&plane.admin());
    admin.ok(&["create", "namespace", "shop"]);
    in_named_namespaces(&plane, &audit, files.path());
    everywhere(&plane, &audit);
    removed(&plane, files.path());
}

/// Interlock limited to the namespace `shop`, with the rights of the overlay.
fn in_named_namespaces(plane: &Plane, audit: &Audit, files: &Path) {
    let (account, webhook) = start_in_named_namespaces(plane, files);
    let other = Namespace::new(plane, "other");
    expect_guarded(plane, "shop");
    expect_unguarded(plane, other.name());
    eventually(DEADLINE, "the leader has scanned", || {
        if webhook.log().contains("scanned") { Ok(()) } else { Err(webhook.log()) }
    });
    webhook.stop();
    let asked = audit.of_account(plane);
    let refused: Vec<_> = asked.iter().filter(|it| it.code == 403).collect();
    assert!(refused.is_empty(), "asked for what it may not: {refused:?}\n{}", webhook.log());
    let of_api_servers = |it: &&Asked| it.namespace == "default" && it.resource == "endpointslices";
    let strangers: Vec<_> = asked
        .iter()
        .filter(|it| !["", "shop", "interlock-system"].contains(&it.namespace.as_str()) && !of_api_servers(it))
        .collect();
    assert!(strangers.is_empty(), "{strangers:?}");
    let wide: Vec<_> = asked.iter().filter(|it| it.namespace.is_empty() && it.resource == "secrets").collect();
    assert!(wide.is_empty(), "{wide:?}");
    let secrets = ["shop", other.name(), ""].map(|namespace| Access {
        verb: "get",
        group: "",
        resource: "secrets",
        name: "",
        namespace,
    });
    assert_eq!(allowed(plane, &account, &secrets), [true, false, false]);
}

/// Installs the overlay's rights and registration, and starts Interlock behind them.
fn start_in_named_namespaces(plane: &Plane, files: &Path) -> (Identity, Webhook) {
    let admin = plane.kubectl(&plane.admin());
    let objects = kustomize("overlays/namespaced");
    let kinds = ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
    install(&admin, objects.iter().filter(|it| kinds.contains(&it["kind"].as_str().unwrap())));
    for definition in ["releaseoverrides.interlock.dev", "freezes.interlock.dev"] {
        install(&admin, [object(&objects, "CustomResourceDefinition", definition)]);
    }
    let account = plane.account("interlock-system", "interlock").unwrap();
    let policies = files.join("policies");
    fs::create_dir_all(&policies).unwrap();
    fs::write(policies.join("cluster.yaml"), include_str!("../../../policies/cluster.yaml")).unwrap();
    let webhook = Webhook::of(plane, &account, &policies, "named", &["--namespaces", "shop"]).unwrap();
    webhook.register_by(plane, &objects).unwrap();
    webhook.await_ready();
    (account, webhook)
}

const EDIT: [&str; 6] = ["patch", "configmap", "demo", "--type=merge", "-p", r#"{"data":{"note":"bob"}}"#];

#[track_caller]
fn expect_guarded(plane: &Plane, namespace: &str) {
    let (helm, bob, chart) = install_release(plane, namespace, true);
    bob.fails(&EDIT, &["[manual-edit]", "release shop/demo"]);
    bob.ok(&["label", "configmap", "demo", "team=blue"]);
    bob.fails(&["scale", "deployment", "demo", "--replicas=3"], &["[manual-scale]"]);
    bob.fails(&["delete", "secret", V1], &["[record-deletion]"]);
    helm.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
}

#[track_caller]
fn expect_unguarded(plane: &Plane, namespace: &str) {
    let (helm, bob, chart) = install_release(plane, namespace, false);
    helm.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
    bob.ok(&EDIT);
}

/// Alice's release `demo`, installed again until its record has a holder, or has none where Interlock guards nothing.
#[track_caller]
fn install_release(plane: &Plane, namespace: &str, guarded: bool) -> (Helm, Kubectl, Chart) {
    let helm = Helm::new(HelmVersion::V4, Driver::Secret, &plane.person("alice"), namespace, plane.dir());
    let bob = Kubectl::new(&plane.person("bob"), Some(namespace), plane.dir());
    let chart = Chart::new("demo");
    eventually(DEADLINE, "the registration is in force", || {
        helm.run(&["install", "demo", chart.path()]).into_result()?;
        let record = bob.get(&["secret", V1]);
        if record["metadata"]["annotations"]["interlock.dev/holder"].is_string() == guarded {
            return Ok(());
        }
        helm.ok(&["uninstall", "demo"]);
        Err(record["metadata"].to_string())
    });
    (helm, bob, chart)
}

/// Interlock for the whole cluster, with the rights of the base.
fn everywhere(plane: &Plane, audit: &Audit) {
    // The base does not grant these.
    plane.kubectl(&plane.admin()).ok(&["delete", "rolebinding", "interlock", "interlock-leader", "-n", "shop"]);
    run_interlock_everywhere(plane);
    expect_grants_and_requests_as_in_the_tables(plane, audit);
    expect_accesses_as_in_the_tables(plane);
}

/// A release's life with refusals and Events, so that Interlock sends each kind of request.
fn run_interlock_everywhere(plane: &Plane) {
    let policies = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("policies");
    let webhook = Webhook::start(plane, &policies, &["--page"]).unwrap();
    webhook.await_ready();
    let namespace = Namespace::new(plane, "everywhere");
    let helm = namespace.helm(HelmVersion::V4, Driver::ConfigMap, "alice");
    let chart = Chart::new("demo");
    helm.ok(&["install", "demo", chart.path()]);
    let bob = namespace.kubectl("bob");
    bob.fails(&["scale", "deployment", "demo", "--replicas=3"], &["[manual-scale]"]);
    bob.fails(&["delete", "configmap", "demo"], &["[manual-delete]"]);
    eventually(DEADLINE, "the refusals are reported as Events", || {
        let events = bob.get(&["events.events.k8s.io"])["items"].to_string();
        if events.contains("interlock") { Ok(()) } else { Err(events) }
    });
    for path in ["/", &format!("/changes/{}/demo", namespace.name())] {
        let (status, html) = webhook.admin(path);
        assert!(status == 200 && !html.contains("forbidden"), "{path}: {html}");
    }
    helm.ok(&["uninstall", "demo"]);
    webhook.stop();
}

/// The manifests grant exactly the tables, and Interlock has asked for nothing else.
#[track_caller]
fn expect_grants_and_requests_as_in_the_tables(plane: &Plane, audit: &Audit) {
    let table = |used: &[(&str, &str, &str, &str)]| -> BTreeSet<String> {
        let each = used.iter().flat_map(|(group, resource, name, verbs)| {
            verbs.split(' ').map(move |verb| format!("{verb} {resource}.{group} {name}"))
        });
        each.collect()
    };
    let (used, at_home) = (table(&USED), table(&USED_AT_HOME));
    let objects = kustomize("base");
    assert_eq!(granted(&objects, "ClusterRole"), used, "the manifests and the table differ");
    assert_eq!(granted(&objects, "Role"), at_home, "the manifests and the table differ");
    let (everyone_s, mut asked) = (["selfsubjectreviews", "selfsubjectaccessreviews"], audit.of_account(plane));
    asked.retain(|it| !it.resource.is_empty() && !everyone_s.contains(&it.resource.as_str()));
    for Asked { verb, group, resource, name, namespace, .. } in &asked {
        let names = [name.as_str(), ""];
        let is_used = names.iter().any(|name| {
            let act = format!("{verb} {resource}.{group} {name}");
            used.contains(&act) || namespace == "interlock-system" && at_home.contains(&act)
        });
        assert!(is_used, "not in the table: {verb} {resource}.{group} {namespace}/{name}");
    }
    // An empty log would prove nothing.
    for seen in
        ["watch secrets.", "list configmaps.", "patch leases.coordination.k8s.io", "create events.events.k8s.io"]
    {
        let is_there = |it: &Asked| format!("{} {}.{}", it.verb, it.resource, it.group) == seen;
        assert!(asked.iter().any(is_there), "{seen} was not asked");
    }
}

/// The API server allows the account everything in the tables, and nothing that is forbidden.
#[track_caller]
fn expect_accesses_as_in_the_tables(plane: &Plane) {
    let account = plane.account("interlock-system", "interlock").unwrap();
    let mut accesses = Vec::new();
    for (used, namespace) in [(&USED[..], "shop"), (&USED_AT_HOME[..], "interlock-system")] {
        for (group, resource, name, verbs) in used {
            accesses.extend(verbs.split(' ').map(|verb| Access { verb, group, resource, name, namespace }));
        }
    }
    let may = allowed(plane, &account, &accesses);
    assert!(may.iter().all(|may| *may), "{:?}", accesses.iter().zip(may).filter(|(_, may)| !may).collect::<Vec<_>>());
    let forbidden: Vec<_> = FORBIDDEN
        .iter()
        .map(|(group, resource, name, verb, namespace)| Access { verb, group, resource, name, namespace })
        .collect();
    let may = allowed(plane, &account, &forbidden);
    assert!(may.iter().all(|may| !may), "{:?}", forbidden.iter().zip(may).filter(|(_, may)| *may).collect::<Vec<_>>());
}

/// The commands of the chart's uninstall Job, with the Job's rights.
fn removed(plane: &Plane, files: &Path) {
    let admin = plane.kubectl(&plane.admin());
    let rendered = chart(HelmVersion::V4, "interlock-system", &[]);
    let hooks = rendered.iter().filter(|it| it["metadata"]["name"] == "interlock-uninstall" && it["kind"] != "Job");
    let replicas = of_kind(&rendered, "Deployment").chain(of_kind(&rendered, "PriorityClass"));
    install(&admin, hooks.chain(replicas));
    admin.ok(&["create", "secret", "generic", "interlock-ca", "-n", "interlock-system"]);
    let job = plane.account("interlock-system", "interlock-uninstall").unwrap();
    let remove = |arguments: &[&str]| -> Output {
        let mut interlock = Command::new(interlock().unwrap());
        interlock.args(["registration", "remove", "--kubeconfig"]).arg(job.kubeconfig()).args(arguments);
        interlock.current_dir(files).env_remove("INTERLOCK_NAMESPACE");
        run(interlock, DEADLINE)
    };
    let there = || {
        let registration = admin.get(&["validatingwebhookconfigurations,mutatingwebhookconfigurations"]);
        let kept = ["secret/interlock-ca", "lease/interlock-leader"];
        let kept = kept.iter().filter(|object| admin.find(&[object, "-n", "interlock-system"]).is_some()).count();
        (registration["items"].as_array().unwrap().len(), kept)
    };
    assert_eq!(there(), (2, 2));
    let would = remove(&["--purge", "--dry-run"]).expect_success();
    assert!(would.stdout.contains("ValidatingWebhookConfiguration interlock would be removed"), "{would}");
    assert_eq!(there(), (2, 2));
    let done = remove(&["--purge"]).expect_success();
    for line in [
        "MutatingWebhookConfiguration interlock removed",
        "Deployment interlock stopped",
        "Lease interlock-leader removed",
    ] {
        assert!(done.stdout.contains(line), "{done}");
    }
    assert_eq!(there(), (0, 0));
    let pods = admin.get(&["pods", "-n", "interlock-system", "-l", "app.kubernetes.io/component=webhook"]);
    assert_eq!(pods["items"], json!([]));
    // A second run finds nothing to remove.
    let again = remove(&[]).expect_success();
    assert!(again.stdout.contains("MutatingWebhookConfiguration interlock does not exist"), "{again}");
    // Without registrations, writes pass although no replica is left.
    let after = Namespace::new(plane, "after");
    after.helm(HelmVersion::V3, Driver::Secret, "alice").ok(&["install", "demo", Chart::new("demo").path()]);
    // An account without rights gets an error that names the object.
    let mut powerless = Command::new(interlock().unwrap());
    let account = plane.account("interlock-system", "powerless").unwrap();
    powerless.args(["registration", "remove", "--kubeconfig"]).arg(account.kubeconfig());
    let refused =
        run(powerless, DEADLINE).expect_failure(&["failed to remove ValidatingWebhookConfiguration interlock"]);
    assert_eq!(refused.status.code(), Some(2), "{refused}");
}

#[track_caller]
fn install<'o>(admin: &Kubectl, objects: impl IntoIterator<Item = &'o Value>) {
    let items: Vec<_> = objects.into_iter().collect();
    admin.apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}), &[]).expect_success();
}

/// `VERB RESOURCE.GROUP NAME` of the rules that the account is bound to.
fn granted(objects: &[Value], kind: &str) -> BTreeSet<String> {
    let bound = of_kind(objects, if kind == "Role" { "RoleBinding" } else { "ClusterRoleBinding" });
    let roles = bound.map(|binding| object(objects, kind, binding["roleRef"]["name"].as_str().unwrap()));
    let rules: Vec<_> = roles.flat_map(|role| role["rules"].as_array().unwrap()).collect();
    let mut granted = BTreeSet::new();
    for rule in rules {
        let mut names = strings(&rule["resourceNames"]);
        if names.is_empty() {
            names.push("");
        }
        for (group, resource) in strings(&rule["apiGroups"])
            .iter()
            .flat_map(|group| strings(&rule["resources"]).into_iter().map(move |resource| (*group, resource)))
        {
            for (verb, name) in
                strings(&rule["verbs"]).iter().flat_map(|verb| names.iter().map(move |name| (*verb, *name)))
            {
                granted.insert(format!("{verb} {resource}.{group} {name}"));
            }
        }
    }
    granted
}

/// A request for which the API server checks a right.
#[derive(Debug)]
struct Access<'a> {
    verb: &'a str,
    group: &'a str,
    resource: &'a str,
    name: &'a str,
    namespace: &'a str,
}

/// Whether an identity has these rights, according to the API server.
#[track_caller]
fn allowed(plane: &Plane, who: &Identity, accesses: &[Access<'_>]) -> Vec<bool> {
    let reviews = accesses.iter().map(|Access { verb, group, resource, name, namespace }| {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource, "name": name, "namespace": namespace,
            }},
        })
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": reviews.collect::<Vec<_>>()});
    let answered = plane.kubectl(who).with_file("create", &list, &["-o", "json", "--validate=false"]).expect_success();
    // kubectl prints one document after the other.
    let answers = serde_json::Deserializer::from_str(&answered.stdout).into_iter::<Value>();
    let answers = answers.map(|it| it.unwrap()).flat_map(|it| match it["items"].as_array() {
        Some(items) => items.clone(),
        None => vec![it],
    });
    let may: Vec<_> = answers.map(|it| it["status"]["allowed"] == true).collect();
    assert_eq!(may.len(), accesses.len(), "{answered}");
    may
}

/// The API server's audit log of the account's requests, without objects.
struct Audit {
    policy: PathBuf,
    log: PathBuf,
}

#[derive(Debug)]
struct Asked {
    verb: String,
    group: String,
    resource: String,
    name: String,
    namespace: String,
    code: u64,
}

impl Audit {
    fn new(files: &Path) -> Self {
        let (policy, log) = (files.join("audit.yaml"), files.join("audit.log"));
        let rules = json!([{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}]);
        let text = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules});
        fs::write(&policy, text.to_string()).unwrap();
        Self { policy, log }
    }

    fn flags(&self) -> Vec<String> {
        let flags = [("audit-policy-file", &self.policy), ("audit-log-path", &self.log)];
        flags.map(|(flag, path)| format!("--{flag}={}", path.display())).to_vec()
    }

    /// All requests so far. Waits until the last one is logged.
    #[track_caller]
    fn of_account(&self, plane: &Plane) -> Vec<Asked> {
        let account = plane.account("interlock-system", "interlock").unwrap();
        let marker = format!("marker-{}", fs::metadata(&self.log).map_or(0, |it| it.len()));
        plane.kubectl(&account).run(&["get", "--raw", &format!("/livez?{marker}")]);
        let text = eventually(DEADLINE, "the last request is logged", || {
            let text = fs::read_to_string(&self.log).map_err(|error| error.to_string())?;
            if text.contains(&marker) { Ok(text) } else { Err(format!("no {marker}")) }
        });
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let events = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let ours = events.filter(|event| !event["userAgent"].as_str().unwrap_or_default().starts_with("kubectl"));
        let message = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        ours.map(|event| {
            let target = &event["objectRef"];
            Asked {
                verb: message(&event["verb"]),
                group: message(&target["apiGroup"]),
                resource: message(&target["resource"]),
                name: message(&target["name"]),
                namespace: message(&target["namespace"]),
                code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
            }
        })
        .collect()
    }
}
