//! What `manual-edit` takes for a change of a declared field, held against the API server's own answer: server-side apply of
//! the manifest, under helm's name, conflicts with such an edit or would take it back.
//!
//! Two namespaces have the same objects. In one they belong to a release, and a dry run shows what the webhook says of an
//! edit. In the other they have no marks: the edit is made there, the manifest applied as a dry run, and the edit undone.

mod edits;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use edits::Random;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Identity};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

/// Kinds, and where they are served.
const KINDS: [(&str, &str, &str); 13] = [
    ("ConfigMap", "api/v1", "configmaps"),
    ("CronJob", "apis/batch/v1", "cronjobs"),
    ("DaemonSet", "apis/apps/v1", "daemonsets"),
    ("Deployment", "apis/apps/v1", "deployments"),
    ("HorizontalPodAutoscaler", "apis/autoscaling/v2", "horizontalpodautoscalers"),
    ("Ingress", "apis/networking.k8s.io/v1", "ingresses"),
    ("NetworkPolicy", "apis/networking.k8s.io/v1", "networkpolicies"),
    ("PodDisruptionBudget", "apis/policy/v1", "poddisruptionbudgets"),
    ("Role", "apis/rbac.authorization.k8s.io/v1", "roles"),
    ("Secret", "api/v1", "secrets"),
    ("Service", "api/v1", "services"),
    ("ServiceAccount", "api/v1", "serviceaccounts"),
    ("StatefulSet", "apis/apps/v1", "statefulsets"),
];

/// Objects with values that are easy to overlook: empty ones, unions, octal numbers, lists with and without keys.
const OBJECTS: &str = include_str!("declared_comparison/objects.yaml");

/// How many edits are tried of each chart. An edit that the API server rejects, or that changes nothing, is none.
const EDITS: usize = 100;
const SEED: u64 = 0x1F00_D5EE_D000_0001;

/// Where the webhook and the API server disagree, and why that stays so: the verdict of the webhook, and a part of the place.
const KEPT: &[(&str, &str, &str)] = &[
    ("refused", "/volumes/", "a volume is a union, and its source is one value"),
    ("not set back", "/volumes/", "nothing tells a default inside of one value from another value"),
    ("not set back", "/containerPort = ", "of two items with one key, removing either counts"),
    (
        "refused",
        "/spec/ingress = ",
        "a NetworkPolicy that leaves a direction out declares that it admits nothing there",
    ),
    ("refused", "/spec/egress = ", "a NetworkPolicy that leaves a direction out declares that it admits nothing there"),
];

#[test]
fn an_edit_is_refused_exactly_if_applying_the_manifest_would_take_it_back() {
    let (mut lab, shop) = (Lab::new(), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/harness/charts/shop"));
    let odd = Chart::new("odd").template("objects", OBJECTS);
    let mut report = String::new();
    for (release, chart) in [("base", odd.path()), ("shop", shop.to_str().expect("the repository has a plain name"))] {
        lab.compare(release, chart, &mut report);
    }
    println!("seed {SEED:#x}: {} edits, {} refused\n{report}", lab.tried.len(), lab.refused);
    assert!(lab.tried.len() >= 2 * EDITS && lab.wrong.is_empty(), "{}", lab.wrong.join("\n"));
}

struct Lab {
    runtime: tokio::runtime::Runtime,
    random: Random,
    /// The edits that changed something.
    tried: HashSet<String>,
    refused: usize,
    wrong: Vec<String>,
}

/// An object in both namespaces.
struct Twin {
    kind: String,
    name: String,
    /// As the manifest declares it, in YAML.
    document: String,
    guarded: String,
    free: String,
}

type Sent = Result<Value, (u16, String)>;

impl Lab {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        Self { runtime, random: Random(SEED), tried: HashSet::new(), refused: 0, wrong: Vec::new() }
    }

    /// Installs a chart, and tries edits of its objects.
    fn compare(&mut self, release: &str, chart: &str, report: &mut String) {
        let guarded = Namespace::new(Plane::shared(), "declared");
        let free = Namespace::new(Plane::shared(), "undeclared");
        free.hang_pods();
        let helm = guarded.helm(HelmVersion::V4, Driver::Secret, "alice");
        helm.ok(&["install", release, chart]);
        // Its hooks have run.
        guarded.hang_pods();
        let manifest = helm.ok(&["get", "manifest", release]).stdout;
        let bob = self.client(&Plane::shared().person("bob"));
        let bot = self.client(&guarded.service_account("bot"));
        let twins = twins(&manifest, &guarded, &free);
        for twin in &twins {
            self.apply(&bob, twin, "force=true").unwrap_or_else(|error| panic!("{}: {error:?}", twin.name));
        }
        let before = self.tried.len();
        for _ in 0..EDITS * 20 {
            if self.tried.len() == before + EDITS {
                break;
            }
            let twin = &twins[self.random.below(twins.len())];
            self.try_edit(&bob, &bot, twin, report);
        }
    }

    fn client(&self, who: &Identity) -> Client {
        self.runtime.block_on(async {
            let read = Kubeconfig::read_from(who.kubeconfig()).expect("a kubeconfig of the plane");
            let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
            Client::try_from(config.expect("a configuration")).expect("a client")
        })
    }

    fn send(&self, client: &Client, method: &str, uri: &str, content: &str, body: Vec<u8>) -> Sent {
        let request = Request::builder().method(method).uri(uri).header("Content-Type", content).body(body);
        match self.runtime.block_on(client.request::<Value>(request.expect("a request"))) {
            Ok(object) => Ok(object),
            Err(kube::Error::Api(status)) => Err((status.code, status.message.clone())),
            Err(error) => panic!("{method} {uri}: {error}"),
        }
    }

    fn get(&self, client: &Client, uri: &str) -> Value {
        let mut object =
            self.send(client, "GET", uri, "application/json", Vec::new()).expect("an object that was applied");
        // Controllers write at the same time.
        object["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
        object
    }

    fn put(&self, client: &Client, uri: &str, object: &Value) -> Sent {
        self.send(client, "PUT", uri, "application/json", object.to_string().into_bytes())
    }

    fn apply(&self, client: &Client, twin: &Twin, options: &str) -> Sent {
        let uri = format!("{}?fieldManager=helm&{options}", twin.free);
        self.send(client, "PATCH", &uri, "application/apply-patch+yaml", twin.document.clone().into_bytes())
    }

    fn try_edit(&mut self, bob: &Client, bot: &Client, twin: &Twin, report: &mut String) {
        let free = self.get(bob, &twin.free);
        let Some(edit) = self.random.edit(&free) else { return };
        let Some(edited) = edit.of(&free) else { return };
        // An edit that the API server rejects, or that a default takes back, is none.
        let Ok(edited) = self.put(bob, &twin.free, &edited) else { return };
        let changes = content(&edited) != content(&free);
        let expected = changes.then(|| self.expected(bob, twin, &edited)).flatten();
        self.put(bob, &twin.free, &free).unwrap_or_else(|error| panic!("{edit} cannot be undone: {error:?}"));
        // bob does not keep the fields.
        self.apply(bob, twin, "force=true").unwrap_or_else(|error| panic!("{}: {error:?}", twin.name));
        let guarded = self.get(bob, &twin.guarded);
        let Some(new) = edit.of(&guarded) else { return };
        let verdict = self.put(bob, &format!("{}?dryRun=All", twin.guarded), &new);
        let what = format!("{} {} {edit}", twin.kind, twin.name);
        let refused = match &verdict {
            Ok(_) => false,
            Err((403, message)) if message.contains("[manual-edit]") => true,
            // It names an address of the other object.
            Err((422, _)) => return,
            Err(error) => panic!("{what}: {error:?}"),
        };
        if changes && !self.tried.insert(what.clone()) {
            return;
        }
        self.refused += usize::from(refused);
        if refused != expected.is_some() {
            let verdict = if refused { "refused" } else { "admitted" };
            let other = expected.as_deref().unwrap_or("applying the manifest keeps it");
            self.disagree(verdict, &what, other, report);
        }
        if refused && let Err(message) = self.set_back(bob, bot, twin, [&guarded, &new]) {
            self.disagree("not set back", &what, &message, report);
        }
    }

    fn disagree(&mut self, verdict: &str, what: &str, other: &str, report: &mut String) {
        let line = format!("{what}: {verdict}; {other}");
        match KEPT.iter().find(|(kept, place, _)| *kept == verdict && what.contains(place)) {
            Some((_, _, why)) => writeln!(report, "kept, {why}: {line}").expect("a text"),
            None => self.wrong.push(line),
        }
    }

    /// Whether applying the manifest reports an edit, and how.
    fn expected(&self, client: &Client, twin: &Twin, edited: &Value) -> Option<String> {
        if let Err((_, message)) = self.apply(client, twin, "dryRun=All") {
            return Some(message);
        }
        match self.apply(client, twin, "dryRun=All&force=true") {
            Err((_, message)) => Some(message),
            Ok(applied) if content(&applied) != content(edited) => {
                Some("applying the manifest takes it back".to_owned())
            }
            Ok(_) => None,
        }
    }

    /// Lets an account make an edit that was refused, and takes it back as bob: that passes.
    fn set_back(&self, bob: &Client, bot: &Client, twin: &Twin, [old, new]: [&Value; 2]) -> Result<(), String> {
        let by_bot = |object| {
            let Err(error) = self.put(bot, &twin.guarded, object) else { return };
            panic!("{} by an account: {error:?}", twin.guarded);
        };
        by_bot(new);
        let verdict = self.put(bob, &format!("{}?dryRun=All", twin.guarded), old);
        by_bot(old);
        verdict.map(drop).map_err(|(_, message)| message)
    }
}

/// The objects of a manifest that are of the known kinds.
fn twins(manifest: &str, guarded: &Namespace<'_>, free: &Namespace<'_>) -> Vec<Twin> {
    let documents = manifest.split("\n---").filter_map(|document| {
        let document = document.trim_start_matches("---").replace(guarded.name(), free.name());
        let object: Value = serde_saphyr::from_str(&document).ok()?;
        let (kind, name) = (object["kind"].as_str()?.to_owned(), object["metadata"]["name"].as_str()?.to_owned());
        let (_, group, plural) = KINDS.into_iter().find(|(known, _, _)| *known == kind)?;
        let uri = |namespace: &Namespace<'_>| format!("/{group}/namespaces/{}/{plural}/{name}", namespace.name());
        Some(Twin { guarded: uri(guarded), free: uri(free), kind, name, document })
    });
    documents.collect()
}

/// What people write of an object. The order of a list with keys has no meaning.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].take();
    object["metadata"] = json!({"labels": metadata["labels"], "annotations": metadata["annotations"]});
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|name, _| !name.starts_with("deployment.kubernetes.io/"));
    }
    object["status"].take();
    sort_keyed_lists(&mut object);
    object
}

fn sort_keyed_lists(value: &mut Value) {
    const KEYED: [&str; 6] = ["containers", "env", "imagePullSecrets", "ports", "volumeMounts", "volumes"];
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                sort_keyed_lists(value);
                if let Value::Array(items) = value
                    && KEYED.contains(&name.as_str())
                {
                    items.sort_by_key(ToString::to_string);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(sort_keyed_lists),
        _ => {}
    }
}
