//! The contract of worlds: the cluster and the memory answer every question about the same objects in the same way.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interlock_engine::json::RawObject;
use interlock_engine::losses::Loss;
use interlock_engine::object::PROTECTED;
use interlock_engine::release::Stamps;
use interlock_engine::release::manifest::WorkloadKind;
use interlock_engine::release::record::fixtures::{manifest, stored};
use interlock_engine::{freeze_resource, owners, release_override};

use super::*;
use crate::world::memory::Memory;

/// The apiVersions, kinds and resources of the objects.
const KINDS: [(&str, &str, &str); 12] = [
    ("v1", "Secret", "secrets"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Namespace", "namespaces"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease", "helmreleases"),
    ("interlock.dev/v1alpha1", "ReleaseOverride", "releaseoverrides"),
    ("interlock.dev/v1alpha1", "Freeze", "freezes"),
    ("lib.projectsveltos.io/v1beta1", "ConfigurationBundle", "configurationbundles"),
    ("config.projectsveltos.io/v1beta1", "ClusterSummary", "clustersummaries"),
    ("olm.operatorframework.io/v1", "ClusterExtension", "clusterextensions"),
];

fn root(api_version: &str) -> String {
    if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") }
}

/// An API server that serves these kinds, without objects.
fn served() -> Fake {
    let fake = Fake::default();
    let mut groups = Vec::new();
    for versions in KINDS.chunk_by(|one, other| one.0 == other.0) {
        let api_version = versions[0].0;
        let resource = |(_, kind, plural): &(&str, &str, &str)| json!({"name": plural, "singularName": "", "kind": kind, "namespaced": true, "verbs": ["get", "list"]});
        let resources: Vec<_> = versions.iter().map(resource).collect();
        fake.put(
            &root(api_version),
            json!({"kind": "APIResourceList", "groupVersion": api_version, "resources": resources}),
        );
        if let Some((group, version)) = api_version.split_once('/') {
            let version = json!({"groupVersion": api_version, "version": version});
            groups.push(json!({"name": group, "versions": [version], "preferredVersion": version}));
        }
    }
    fake.put("/api", json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}));
    fake.put("/apis", json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}));
    let definitions = [owners::HELM_RELEASE_DEFINITION, release_override::DEFINITION, freeze_resource::DEFINITION];
    let definitions = definitions.map(|name| json!({"metadata": {"name": name, "uid": "d"}}));
    fake.put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definitions.to_vec().into());
    fake
}

/// Stores objects in both worlds.
fn store(fake: &Fake, memory: &Memory, objects: &[Value]) {
    let mut collections: HashMap<String, Vec<Value>> = HashMap::new();
    for object in objects {
        let field = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind, namespace) = (field("/apiVersion"), field("/kind"), field("/metadata/namespace"));
        let (root, (_, _, plural)) = (root(api_version), KINDS.iter().find(|it| it.1 == kind).unwrap());
        let everywhere = format!("{root}/{plural}");
        let here = if namespace.is_empty() {
            everywhere.clone()
        } else {
            collections.entry(everywhere).or_default().push(object.clone());
            format!("{root}/namespaces/{namespace}/{plural}")
        };
        fake.put(&format!("{here}/{}", field("/metadata/name")), object.clone());
        collections.entry(here).or_default().push(object.clone());
        let text = object.to_string();
        memory.put(ObjectKey::of_object(RawObject::delimited(&text)).unwrap(), text);
    }
    for (path, objects) in collections {
        fake.put(&path, objects.into());
    }
}

fn object(api_version: &str, kind: &str, namespace: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {
        "name": name, "namespace": namespace, "uid": format!("{kind}-{name}"), "resourceVersion": "7",
        "creationTimestamp": "2026-11-21T10:00:00Z",
    }});
    for (field, value) in rest.as_object().unwrap() {
        match field.as_str() {
            "labels" | "annotations" | "managedFields" | "generation" => object["metadata"][field] = value.clone(),
            _ => object[field] = value.clone(),
        }
    }
    object
}

fn helm(storage: Storage, namespace: &str, revision: u64, target_namespace: Option<&str>) -> Value {
    stored(storage, namespace, revision, target_namespace, &manifest(revision))
}

/// A record that OLM has split.
fn chunked(revision: u64, parts: &[&str]) -> Value {
    let mut index = helm(Storage::Index, "olm", revision, None);
    let chunk = index["data"]["chunk"].as_str().unwrap().to_owned();
    let (first, _) = chunk.split_at(40);
    index["data"] = json!({"chunk": first, "extraChunks": STANDARD.encode(json!(parts).to_string())});
    index
}

fn records() -> Vec<Value> {
    let whole = helm(Storage::Index, "olm", 1, None);
    let rest = &whole["data"]["chunk"].as_str().unwrap()[40..];
    let mut of_api = helm(Storage::Secret, "shop", 9, None);
    of_api["metadata"]["name"] = "sh.helm.release.v1.api.v9".into();
    of_api["metadata"]["labels"]["name"] = "api".into();
    let mut broken = helm(Storage::Secret, "broken", 1, None);
    broken["data"]["release"] = "%".into();
    broken["metadata"]["resourceVersion"] = "6".into();
    vec![
        helm(Storage::Secret, "shop", 1, None),
        helm(Storage::Secret, "shop", 2, None),
        of_api,
        broken,
        helm(Storage::ConfigMap, "bar", 3, None),
        helm(Storage::Secret, "elsewhere", 4, Some("bar")),
        helm(Storage::Secret, "elsewhere-too", 5, Some("nowhere")),
        chunked(1, &["rest"]),
        chunked(2, &["rest", "gone"]),
        object("v1", "Secret", "olm", "rest", json!({"data": {"chunk": rest}})),
    ]
}

fn other_objects() -> Vec<Value> {
    let workload = json!({
        "generation": 2, "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
        "managedFields": [{"manager": "helm", "operation": "Apply"}], "spec": {"replicas": 3},
        "status": {"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 1, "conditions": [
            {"type": "Available", "status": "True"}]},
    });
    let flux = json!({"spec": {"releaseName": "web", "storageNamespace": "bar", "targetNamespace": "bar"}, "status": {
        "storageNamespace": "bar", "history": [{"name": "web", "namespace": "bar", "status": "deployed"}]}});
    let allowed = json!({"spec": {
        "release": "web", "rules": ["manual-edit"], "reason": "r", "expiresAt": "2026-11-21T18:00:00Z"}});
    let mut other = allowed.clone();
    other["spec"]["release"] = "api".into();
    let freeze = json!({"spec": {
        "reason": "incident", "timeZone": "UTC", "from": "2026-11-21T10:00", "to": "2026-11-21T18:00"}});
    let bundle =
        json!({"spec": {"helmReleaseNamespace": "shop", "helmReleaseName": "web", "resources": ["kind: A\n"]}});
    let (sveltos, ours) = (KINDS[9].0, KINDS[7].0);
    vec![
        object("v1", "ConfigMap", "shop", WERF_LEASES, json!({"annotations": {"lockgate.io/web": "{}"}})),
        object("v1", "ConfigMap", "bar", WERF_LEASES, json!({})),
        object("v1", "Namespace", "", "shop", json!({"annotations": {PROTECTED: "true"}})),
        object("apps/v1", "Deployment", "shop", "web", workload),
        object("apps/v1", "Deployment", "shop", "free", json!({"spec": {}})),
        object(KINDS[6].0, "HelmRelease", "bar", "web", flux),
        object(ours, "ReleaseOverride", "shop", "one", allowed),
        object(ours, "ReleaseOverride", "shop", "two", other),
        object(ours, "Freeze", "shop", "one", freeze.clone()),
        object(ours, "Freeze", "bar", "two", freeze),
        object(sveltos, "ConfigurationBundle", "civ", "one", bundle),
        object("v1", "ServiceAccount", "shop", "robot", json!({})),
        object(KINDS[10].0, "ClusterSummary", "civ", "one", json!({"spec": {}, "status": {}})),
        object(KINDS[11].0, "ClusterExtension", "", "here", json!({"spec": {"namespace": "shop"}})),
        object(KINDS[11].0, "ClusterExtension", "", "there", json!({"spec": {"namespace": "bar"}})),
    ]
}

fn body(storage: Storage, namespace: &str, revision: u64) -> Query {
    let object = format!("sh.helm.release.v1.web.v{revision}");
    question::Body { storage, namespace: namespace.to_owned(), object }.into()
}

fn document_in(namespace: &str, revision: u64, resource_version: &str, object: &str) -> Query {
    let Query::Document(mut it) = document("u", resource_version, object) else { panic!("another question") };
    it.record.namespace = namespace.to_owned();
    it.record.name = format!("sh.helm.release.v1.web.v{revision}");
    it.into()
}

fn release_in(target_namespace: &str, origin: Option<&str>) -> Query {
    let origin = origin.map(|namespace| Origin { namespace: namespace.to_owned(), name: "web".to_owned() });
    let target_namespace = target_namespace.to_owned();
    question::Release { name: "web".to_owned(), target_namespace, origin, freshness: Freshness::Live }.into()
}

fn scaled(name: &str) -> Query {
    let Query::Parent(mut it) = parent("apps", "deployments", Freshness::Live) else { panic!("another question") };
    it.object.kind = "Deployment".to_owned();
    it.object.name = name.to_owned();
    it.into()
}

fn overrides(namespace: &str, freshness: Freshness) -> Query {
    question::Overrides { namespace: namespace.to_owned(), release: "web".to_owned(), freshness }.into()
}

fn workloads() -> Query {
    let named =
        [(WorkloadKind::Deployment, "web"), (WorkloadKind::StatefulSet, "web"), (WorkloadKind::Deployment, "../x")];
    let references =
        named.map(|(kind, name)| WorkloadRef { kind, namespace: "shop".to_owned(), name: name.to_owned() });
    question::Workloads(references.into()).into()
}

fn bundles(names: &[&str]) -> Query {
    let reference = |name: &&str| BundleRef { namespace: "civ".to_owned(), name: (*name).to_owned() };
    question::Bundles(names.iter().map(reference).collect()).into()
}

fn any_account(names: &[&str]) -> Query {
    let accounts = names.iter().map(|name| ObjectKey::new("", "ServiceAccount", "shop", name));
    question::AnyAccount(accounts.collect()).into()
}

/// Neither world notes any here.
fn losses() -> Query {
    let of = ObjectKey::new("argoproj.io", "ApplicationSet", "argocd", "web");
    let (child, state) = (String::new(), String::new());
    question::Losses(Loss { of, child, children: 1, state, is_meant: false }).into()
}

fn summary(name: &str) -> Query {
    question::Object(ObjectKey::new("config.projectsveltos.io", "ClusterSummary", "civ", name)).into()
}

/// The questions about a namespace.
fn of_namespace(namespace: &str) -> [Query; 9] {
    let namespace = || namespace.to_owned();
    [
        question::Namespace { name: namespace() }.into(),
        question::ReleasesIn { namespace: namespace() }.into(),
        question::HelmReleasesIn { namespace: namespace() }.into(),
        question::ExtensionsIn { namespace: namespace() }.into(),
        question::AppliersIn { namespace: namespace(), only_annotated: true }.into(),
        question::AppliersIn { namespace: namespace(), only_annotated: false }.into(),
        question::HelmReleases::of(&namespace(), "web", &Stamps::default()).into(),
        question::FreezesIn { namespace: namespace() }.into(),
        question::Leases { namespace: namespace() }.into(),
    ]
}

fn questions() -> Vec<Query> {
    let mut questions = vec![
        history(Storage::Secret, "shop", Freshness::Live),
        history(Storage::Index, "olm", Freshness::Live),
        history(Storage::ConfigMap, "shop", Freshness::Live),
        body(Storage::Secret, "shop", 2),
        body(Storage::ConfigMap, "bar", 3),
        body(Storage::Index, "olm", 1),
        body(Storage::Index, "olm", 2),
        body(Storage::Index, "olm", 3),
        body(Storage::Secret, "broken", 1),
        document_in("shop", 2, "7", "a"),
        document_in("shop", 2, "7", "b"),
        document_in("shop", 2, "8", "a"),
        document_in("shop", 3, "9", "a"),
        document_in("shop", 2, "", "a"),
        document_in("broken", 1, "6", "a"),
        release_in("bar", None),
        release_in("bar", Some("bar")),
        release_in("shop", None),
        release_in("none", Some("none")),
        scaled("web"),
        scaled("free"),
        scaled("none"),
        any_account(&["none", "robot"]),
        any_account(&["none"]),
        overrides("shop", Freshness::Live),
        overrides("shop", Freshness::Cached),
        overrides("bar", Freshness::Live),
        question::Freezes.into(),
        workloads(),
        bundles(&["one", "none", "../x"]),
        summary("one"),
        summary("none"),
        losses(),
    ];
    for freshness in [Freshness::Cached, Freshness::Live] {
        questions.push(question::Extension { name: "web".to_owned(), freshness }.into());
        questions.push(question::Extension { name: "none".to_owned(), freshness }.into());
    }
    questions.extend(["shop", "bar", "none"].iter().flat_map(|namespace| of_namespace(namespace)));
    questions
}

/// The answer with its parts in one order: no rule depends on the order of releases, records and Freezes.
fn ordered(answer: Answer) -> Answer {
    let Answer::Known(mut known) = answer else { return answer };
    match &mut known {
        Knowledge::Release(found) | Knowledge::Extension(found) => {
            found.sort_by(|one, other| (one.storage, &one.namespace).cmp(&(other.storage, &other.namespace)));
        }
        Knowledge::ReleasesIn(found) => {
            found.sort_by(|(one, here), (other, there)| (one, &here.namespace).cmp(&(other, &there.namespace)))
        }
        Knowledge::Freezes(found) | Knowledge::FreezesIn(found) => {
            let mut sorted = found.to_vec();
            sorted.sort_by(|one, other| (&one.home, &one.name).cmp(&(&other.home, &other.name)));
            *found = sorted.into();
        }
        _ => {}
    }
    Answer::Known(known)
}

#[tokio::test]
async fn both_worlds_answer_alike() {
    let (fake, memory) = (served(), Memory::new(1 << 20));
    store(&fake, &memory, &[records(), other_objects()].concat());
    let (cluster, _watches) = fake.watched().await;
    let (mut differences, mut known) = (Vec::new(), BTreeSet::new());
    for query in questions() {
        let [in_cluster, in_memory] = [cluster.answer(&query).await, memory.answer(&query).await].map(ordered);
        known.extend(matches!(in_memory, Answer::Known(_)).then_some(query.kind()));
        if in_cluster != in_memory {
            differences.push(format!("{query:?}\n  in the cluster: {in_cluster:?}\n  in memory: {in_memory:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // Two pairs of questions have one name.
    assert_eq!(known.len(), 18, "{known:?}");
}
