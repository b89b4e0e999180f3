//! The cluster behind an API server with a few answers, which remembers its requests.

mod contract;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::ready;
use std::sync::Mutex;

use bytes::Bytes;
use futures_util::stream;
use http::header::ACCEPT;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use interlock_engine::effort::Effort;
use interlock_engine::evidence::{Answer, Knowledge, Query, Question, RecordRef, ScaledRef, question};
use interlock_engine::managed::{Origin, Owner};
use interlock_engine::release::Stamps;
use interlock_engine::release::manifest::DocumentKey;
use interlock_engine::release::record::fixtures::{manifest, stored};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;
use crate::budget::{Flow, Holdings, Peer};
use crate::world::ask;

/// Objects by path; a path with a list of objects is a collection.
#[derive(Clone, Default)]
struct Fake {
    objects: Arc<Mutex<HashMap<String, Value>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn put(&self, path: &str, object: Value) {
        self.objects.lock().unwrap().insert(path.to_owned(), object);
    }

    /// The requests since the last call: path, and query if there is one.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn cluster(&self) -> Cluster {
        Cluster::new(self.client(), Arc::new(Budget::new(1 << 20)))
    }

    fn client(&self) -> Client {
        let fake = self.clone();
        Client::new(service_fn(move |request| ready(Ok::<_, Infallible>(fake.answer(&request)))), "default")
    }

    /// A cluster whose copies are in sync.
    async fn watched(&self) -> (Cluster, Watches) {
        self.watched_by(self.cluster()).await
    }

    async fn watched_by(&self, cluster: Cluster) -> (Cluster, Watches) {
        let readiness = Readiness::new();
        let watches = cluster.watch(&self.client(), &readiness, readiness.gate("the labels of Namespaces"));
        while readiness.check().is_err() || !self.is_quiet() {
            tokio::task::yield_now().await;
        }
        self.asked();
        (cluster, watches)
    }

    /// Whether a watch follows each list.
    fn is_quiet(&self) -> bool {
        let asked = self.asked.lock().unwrap();
        let count = |part: &str| asked.iter().filter(|request| request.contains(part)).count();
        count("limit=") == count("watch=true")
    }
}

impl Fake {
    fn answer(&self, request: &Request<Body>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let accept = request.headers().get(ACCEPT).map_or("", |accept| accept.to_str().unwrap()).to_owned();
        self.asked.lock().unwrap().push(format!("{path}?{query}"));
        if query.contains("watch=true") {
            // A watch of a quiet cluster: open, and silent.
            let silence = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
            return Response::new(silence.boxed_unsync());
        }
        let found = self.objects.lock().unwrap().get(path).cloned();
        let (code, body) = match found {
            Some(Value::Array(items)) if accept.contains("as=PartialObjectMetadataList") => {
                (200, list(selected(items, query)))
            }
            Some(Value::Array(items)) => {
                (200, json!({"metadata": {"resourceVersion": "100"}, "items": selected(items, query)}))
            }
            Some(object) if accept.contains("as=PartialObjectMetadata") => (200, partial(&object)),
            Some(object) => (200, object),
            None if accept.contains("as=PartialObjectMetadataList") => (200, list(Vec::new())),
            None => (404, json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})),
        };
        let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
        Response::builder().status(code).body(body).unwrap()
    }
}

/// The objects that the selectors of a LIST select, as far as these demand a value of a label or a field.
fn selected(mut objects: Vec<Value>, query: &str) -> Vec<Value> {
    for (selector, of) in [("labelSelector=", "/metadata/labels"), ("fieldSelector=", "")] {
        let parameter = query.split('&').find_map(|parameter| parameter.strip_prefix(selector)).unwrap_or_default();
        for (key, value) in parameter.split("%2C").filter_map(|demand| demand.split_once("%3D")) {
            let key = if of.is_empty() { key.replace('.', "/") } else { key.replace("%2F", "~1") };
            objects.retain(|object| object.pointer(&format!("{of}/{key}")).is_some_and(|it| it == value));
        }
    }
    objects
}

fn partial(object: &Value) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
}

fn list(items: Vec<Value>) -> Value {
    let items: Vec<_> = items.iter().map(partial).collect();
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
        "metadata": {"resourceVersion": "100"}, "items": items,
    })
}

fn record(namespace: &str, revision: u64, target_namespace: Option<&str>) -> Value {
    stored(Storage::Secret, namespace, revision, target_namespace, &manifest(revision))
}

fn release(freshness: Freshness) -> Query {
    let question = question::Release {
        name: "web".to_owned(),
        target_namespace: "shop".to_owned(),
        origin: Some(Origin { namespace: "flux".to_owned(), name: "web".to_owned() }),
        freshness,
    };
    question.into()
}

fn history(storage: Storage, namespace: &str, freshness: Freshness) -> Query {
    question::History { storage, namespace: namespace.to_owned(), release: "web".to_owned(), freshness }.into()
}

fn place(answer: &Answer) -> (Storage, &str, Option<u64>) {
    match answer {
        Answer::Known(Knowledge::Release(found)) if found.len() == 1 => {
            let candidate = &found[0];
            (candidate.storage, &candidate.namespace, candidate.history.newest().map(|entry| entry.revision.0))
        }
        other => panic!("expected the records of a release, not {other:?}"),
    }
}

/// The paths of requests, without their queries.
fn paths(asked: &[String]) -> Vec<&str> {
    asked.iter().map(|asked| asked.split_once('?').map_or(asked.as_str(), |(path, _)| path)).collect()
}

const SECRETS_HERE: &str = "/api/v1/namespaces/shop/secrets";

#[test]
fn a_name_cannot_leave_its_path_or_selector() {
    assert!(valid_name("sh.helm.release.v1.a.v1").is_ok());
    for bad in ["", "..%2f", "a/b", "a,owner=x", "a?b", "A", &"a".repeat(254)] {
        assert!(valid_name(bad).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn without_watches_a_release_is_read_live() {
    let fake = Fake::default();
    fake.put(SECRETS_HERE, json!([record("shop", 3, None)]));
    let cluster = fake.cluster();
    for freshness in [Freshness::Cached, Freshness::Live] {
        assert_eq!(place(&cluster.answer(&release(freshness)).await), (Storage::Secret, "shop", Some(3)));
        let asked = fake.asked();
        assert_eq!(paths(&asked), [SECRETS_HERE], "live Secrets at home come before everything else");
        let selector = "owner+in+%28helm%2Coperator-controller%29%2Cname%3Dweb";
        assert!(asked.iter().all(|asked| asked.contains(selector)), "{asked:?}");
    }
}

#[tokio::test]
async fn config_maps_are_read_if_no_secret_is_found() {
    let fake = Fake::default();
    fake.put("/api/v1/namespaces/shop/configmaps", json!([record("shop", 3, None)]));
    let answer = fake.cluster().answer(&release(Freshness::Live)).await;
    assert_eq!(place(&answer), (Storage::ConfigMap, "shop", Some(3)));
    assert_eq!(fake.asked().len(), 2);
}

#[tokio::test]
async fn only_a_complete_index_shows_that_there_is_no_record() {
    let fake = Fake::default();
    let answer = fake.cluster().answer(&release(Freshness::Live)).await;
    assert!(matches!(&answer, Answer::Unavailable(why) if why.contains("another namespace")), "{answer:?}");
    let (cluster, _watches) = fake.watched().await;
    let none = || Answer::Known(Knowledge::Release(Vec::new()));
    assert_eq!(cluster.answer(&release(Freshness::Live)).await, none());
    assert_eq!(cluster.answer(&release(Freshness::Cached)).await, none());
}

#[tokio::test]
async fn only_a_live_answer_reads_and_only_where_needed() {
    let fake = Fake::default();
    fake.put("/api/v1/secrets", json!([record("elsewhere", 3, Some("shop"))]));
    fake.put("/api/v1/namespaces/elsewhere/secrets", json!([record("elsewhere", 4, Some("shop"))]));
    let (cluster, _watches) = fake.watched().await;
    let cached = cluster.answer(&release(Freshness::Cached)).await;
    assert_eq!(place(&cached), (Storage::Secret, "elsewhere", Some(3)));
    assert!(fake.asked().is_empty());
    let live = cluster.answer(&release(Freshness::Live)).await;
    assert_eq!(place(&live), (Storage::Secret, "elsewhere", Some(4)));
    let elsewhere = "/api/v1/namespaces/elsewhere/secrets";
    assert_eq!(paths(&fake.asked()), [SECRETS_HERE, "/api/v1/namespaces/shop/configmaps", elsewhere]);
}

#[tokio::test]
async fn a_live_answer_goes_on_where_the_index_lags() {
    let fake = Fake::default();
    fake.put("/api/v1/secrets", json!([record("flux", 3, None)]));
    let (cluster, _watches) = fake.watched().await;
    fake.put(SECRETS_HERE, json!([record("shop", 1, None)]));
    assert_eq!(place(&cluster.answer(&release(Freshness::Live)).await), (Storage::Secret, "shop", Some(1)));
}

#[tokio::test]
async fn a_history_that_may_be_cached_is_listed_without_a_complete_watch_only() {
    let fake = Fake::default();
    fake.put("/api/v1/secrets", json!([record("shop", 3, None)]));
    fake.put(SECRETS_HERE, json!([record("shop", 4, None)]));
    let newest = async |cluster: &Cluster, query: &Query| match cluster.answer(query).await {
        Answer::Known(Knowledge::History(found)) => found.newest().map(|newest| newest.revision.0),
        other => panic!("{other:?}"),
    };
    let [cached, live] =
        [Freshness::Cached, Freshness::Live].map(|freshness| history(Storage::Secret, "shop", freshness));
    assert_eq!(newest(&fake.cluster(), &cached).await, Some(4), "no watch");
    let (cluster, _watches) = fake.watched().await;
    assert_eq!(newest(&cluster, &cached).await, Some(3));
    assert_eq!(newest(&cluster, &history(Storage::ConfigMap, "shop", Freshness::Cached)).await, None);
    assert_eq!(fake.asked(), [""; 0]);
    assert_eq!(newest(&cluster, &live).await, Some(4));
    assert_eq!(paths(&fake.asked()), [SECRETS_HERE]);
}

#[tokio::test]
async fn the_copy_of_an_ended_watch_is_not_used() {
    let fake = Fake::default();
    fake.put(SECRETS_HERE, json!([record("shop", 3, None)]));
    let (cluster, watches) = fake.watched().await;
    assert_eq!(cluster.answer(&release(Freshness::Cached)).await, Answer::Known(Knowledge::Release(Vec::new())));
    drop(watches);
    // The tasks are dropped by the runtime, not by the abort itself.
    while cluster.caches.locate(ReleaseQuery { name: "web", target_namespace: "shop", origin: None }).1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(place(&cluster.answer(&release(Freshness::Cached)).await), (Storage::Secret, "shop", Some(3)));
}

#[tokio::test]
async fn state_out_of_reach_is_not_read_and_not_absent() {
    let fake = Fake::default();
    fake.put("/api/v1/secrets", json!([record("elsewhere", 9, None)]));
    fake.put("/api/v1/namespaces/shop/secrets", json!([record("shop", 2, None)]));
    let reach = Reach::only(["bar", "shop"].map(str::to_owned));
    let (cluster, _watches) = fake.watched_by(fake.cluster().within(reach)).await;
    assert_eq!(place(&cluster.answer(&release(Freshness::Cached)).await), (Storage::Secret, "shop", Some(2)));
    let history = history(Storage::Secret, "elsewhere", Freshness::Live);
    let extension = question::Extension { name: "web".to_owned(), freshness: Freshness::Cached };
    let unknown = question::Release {
        name: "other".to_owned(),
        target_namespace: "bar".to_owned(),
        origin: None,
        freshness: Freshness::Cached,
    };
    for query in [history, extension.into(), unknown.into()] {
        let answer = cluster.answer(&query).await;
        assert!(matches!(&answer, Answer::Unavailable(why) if why.contains("not")), "{query:?}: {answer:?}");
    }
    let asked = fake.asked();
    assert!(paths(&asked).iter().all(|path| path.contains("/namespaces/shop/") || path.contains("/namespaces/bar/")));
}

fn document(uid: &str, resource_version: &str, name: &str) -> Query {
    let [kind, group, namespace] = ["A", "", "shop"].map(str::to_owned);
    let object = DocumentKey {
        kind,
        group,
        name: name.to_owned(),
        namespace: namespace.clone(),
        default_namespace: namespace.clone(),
    };
    let record = RecordRef {
        storage: Storage::Secret,
        namespace,
        name: "sh.helm.release.v1.web.v3".to_owned(),
        uid: uid.to_owned(),
        resource_version: resource_version.to_owned(),
    };
    question::Document { record, object }.into()
}

#[tokio::test]
async fn the_record_of_a_state_is_read_once_for_all_its_documents() {
    let fake = Fake::default();
    let cluster = fake.cluster();
    assert_eq!(cluster.answer(&document("u", "7", "a")).await, Answer::Absent);
    fake.put("/api/v1/namespaces/shop/secrets/sh.helm.release.v1.web.v3", record("shop", 3, None));
    fake.asked();
    let found = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "revision": 3});
    let known = Answer::Known(Knowledge::Document(Ok(Some(found.into()))));
    assert_eq!(cluster.answer(&document("u", "7", "a")).await, known);
    assert_eq!(cluster.answer(&document("u", "7", "a")).await, known);
    let other = Answer::Known(Knowledge::Document(Ok(None)));
    assert_eq!(cluster.answer(&document("u", "7", "b")).await, other);
    assert_eq!(fake.asked().len(), 1);
    let changed = cluster.answer(&document("u", "8", "a")).await;
    assert!(matches!(&changed, Answer::Unavailable(why) if why.contains("changed during")), "{changed:?}");
    // Without a version there is nothing to compare or to keep.
    fake.asked();
    assert_eq!(cluster.answer(&document("", "", "a")).await, known);
    assert_eq!(cluster.answer(&document("", "", "a")).await, known);
    assert_eq!(fake.asked().len(), 2);
}

#[tokio::test]
async fn a_review_with_all_memory_of_its_flow_does_not_block_itself() {
    let (fake, budget, effort) = (Fake::default(), Arc::new(Budget::new(1 << 20)), Effort::of_review());
    fake.put("/api/v1/namespaces/shop/secrets/sh.helm.release.v1.web.v3", record("shop", 3, None));
    let cluster = Cluster::new(fake.client(), Arc::clone(&budget));
    for already in [1 << 20, 0] {
        let holdings = Holdings::default();
        holdings.keep(budget.grant(Flow::of(Peer::Known, "alice"), already).await);
        let charged = QueryBudget { flow: Flow::of(Peer::Known, "alice"), effort: &effort, holdings: &holdings };
        assert!(matches!(cluster.answer_for(&document("", "", "a"), charged).await, Answer::Known(_)));
        // An answer stays in memory as long as the review.
        assert!(holdings.bytes() > 0, "{already}");
        drop(holdings);
        assert_eq!(budget.free(), 1 << 20);
    }
}

#[tokio::test]
async fn a_record_that_does_not_decode_has_no_manifest() {
    let fake = Fake::default();
    let mut broken = record("shop", 3, None);
    broken["data"]["release"] = "%".into();
    fake.put("/api/v1/namespaces/shop/secrets/sh.helm.release.v1.web.v3", broken);
    let answer = fake.cluster().answer(&document("u", "7", "a")).await;
    assert!(matches!(&answer, Answer::Unavailable(why) if why.contains("cannot be decoded")), "{answer:?}");
}

fn parent(group: &str, resource: &str, freshness: Freshness) -> Query {
    let object = ScaledRef {
        group: group.to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        kind: "Any".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
    };
    question::Parent { object, freshness }.into()
}

fn managed() -> Value {
    json!({"metadata": {
        "name": "web", "namespace": "shop", "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
    }})
}

fn is_of_web(answer: &Answer) -> bool {
    let Answer::Known(Knowledge::Parent(ScaledObject { marks, .. })) = answer else { return false };
    matches!(&marks.owner, Owner::Release { name, .. } if name == "web") && marks.contradiction.is_none()
}

#[tokio::test]
async fn the_marks_of_a_scaled_object_are_read_by_its_path() {
    let fake = Fake::default();
    let cluster = fake.cluster();
    fake.put("/apis/apps/v1/namespaces/shop/deployments/web", managed());
    fake.put("/api/v1/namespaces/shop/replicationcontrollers/web", managed());
    fake.put("/apis/shop.example/v1/namespaces/shop/tills/web", json!({"metadata": {"name": "web"}}));
    for freshness in [Freshness::Cached, Freshness::Live] {
        assert!(is_of_web(&cluster.answer(&parent("apps", "deployments", freshness)).await));
        assert!(is_of_web(&cluster.answer(&parent("", "replicationcontrollers", freshness)).await));
        assert_eq!(cluster.answer(&parent("apps", "statefulsets", freshness)).await, Answer::Absent);
        assert_eq!(cluster.answer(&parent("shop.example", "tills", freshness)).await, Answer::Absent);
    }
    let hostile = cluster.answer(&parent("apps/v1/../..", "deployments", Freshness::Live)).await;
    assert!(matches!(hostile, Answer::Unavailable(_)));
}

#[tokio::test]
async fn the_marks_of_watched_kinds_are_known_without_a_read() {
    let fake = Fake::default();
    fake.put("/apis/apps/v1/deployments", json!([managed()]));
    let (cluster, _watches) = fake.watched().await;
    assert!(is_of_web(&cluster.answer(&parent("apps", "deployments", Freshness::Cached)).await));
    assert!(fake.asked().is_empty());
    // An owner without labels may have it. Whether its kind is served is asked once in a while.
    assert_eq!(cluster.answer(&parent("apps", "statefulsets", Freshness::Cached)).await, Answer::Absent);
    assert_eq!(fake.asked(), ["/apis?"]);
    assert_eq!(cluster.answer(&parent("apps", "statefulsets", Freshness::Cached)).await, Answer::Absent);
    assert_eq!(fake.asked(), [""; 0]);
    fake.put("/apis/shop.example/v1/namespaces/shop/tills/web", managed());
    assert!(is_of_web(&cluster.answer(&parent("shop.example", "tills", Freshness::Cached)).await));
    assert_eq!(cluster.answer(&parent("apps", "deployments", Freshness::Live)).await, Answer::Absent);
}

const HELM_RELEASES: &str = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases";
const ONE: &str = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/shop/helmreleases/one";

/// An API server that serves HelmReleases, with these.
fn with_flux(helm_releases: &[Value]) -> Fake {
    let fake = Fake::default();
    let definition = json!({"metadata": {"name": "helmreleases.helm.toolkit.fluxcd.io", "uid": "d"}});
    fake.put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json!([definition]));
    let version = json!({"groupVersion": "helm.toolkit.fluxcd.io/v2", "version": "v2"});
    let group = json!({"name": "helm.toolkit.fluxcd.io", "versions": [version], "preferredVersion": version});
    fake.put("/apis", json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}));
    let resource = json!({
        "name": "helmreleases", "singularName": "helmrelease", "namespaced": true, "kind": "HelmRelease",
        "verbs": ["get", "list", "watch"],
    });
    let resources =
        json!({"kind": "APIResourceList", "groupVersion": "helm.toolkit.fluxcd.io/v2", "resources": [resource]});
    fake.put("/apis/helm.toolkit.fluxcd.io/v2", resources);
    fake.put(HELM_RELEASES, helm_releases.to_vec().into());
    fake
}

fn helm_release(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "spec": spec,
        "metadata": {"name": name, "namespace": "shop"},
    })
}

fn driving(release: &str) -> Query {
    question::HelmReleases::of("shop", release, &Stamps::default()).into()
}

fn names(answer: &Answer) -> Vec<&str> {
    match answer {
        Answer::Known(Knowledge::HelmReleases(Ok(drivers)) | Knowledge::HelmReleasesIn(drivers)) => {
            drivers.iter().map(|driver| driver.name.as_str()).collect()
        }
        other => panic!("expected HelmReleases, not {other:?}"),
    }
}

#[tokio::test]
async fn without_flux_there_are_no_reads_of_helm_releases() {
    let fake = Fake::default();
    let unwatched = fake.cluster().answer(&driving("web")).await;
    assert!(matches!(&unwatched, Answer::Unavailable(why) if why.contains("not known")), "{unwatched:?}");
    let (cluster, _watches) = fake.watched().await;
    assert!(names(&cluster.answer(&driving("web")).await).is_empty());
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn helm_releases_from_the_copy_are_confirmed() {
    let one = |spec: Value| helm_release("one", &spec);
    let fake =
        with_flux(&[one(json!({"releaseName": "web"})), helm_release("two", &json!({"values": {"large": true}}))]);
    let (cluster, _watches) = fake.watched().await;
    assert!(names(&cluster.answer(&driving("other")).await).is_empty());
    assert!(fake.asked().is_empty());
    fake.put(ONE, one(json!({"releaseName": "web"})));
    assert_eq!(names(&cluster.answer(&driving("web")).await), ["one"]);
    assert_eq!(paths(&fake.asked()).last(), Some(&ONE));
    fake.put(ONE, one(json!({"releaseName": "other by now"})));
    assert!(names(&cluster.answer(&driving("web")).await).is_empty());
    fake.put(ONE, json!({"spec": "of another shape"}));
    let answer = cluster.answer(&driving("web")).await;
    assert!(
        matches!(&answer, Answer::Unavailable(why) if why.contains("HelmRelease shop/one cannot be parsed")),
        "{answer:?}"
    );
    fake.objects.lock().unwrap().remove(ONE);
    assert!(names(&cluster.answer(&driving("web")).await).is_empty(), "gone");
}

/// A suspended HelmRelease of a namespace that names the records of shop/web and, in its status, says that Flux has installed them.
fn claim(namespace: &str, name: &str, account: &str) -> Value {
    let spec = json!({
        "releaseName": "web", "storageNamespace": "shop", "suspend": true, "timeout": "1000h", "serviceAccountName": account,
    });
    let mut claim = helm_release(name, &spec);
    claim["metadata"]["namespace"] = namespace.into();
    claim["status"] = json!({"storageNamespace": "shop", "history": [
        {"name": "web", "namespace": "shop", "status": "deployed"}]});
    claim
}

#[tokio::test]
async fn helm_releases_in_other_namespaces_cost_no_read() {
    let claims = (0..3_000).map(|number| claim("evil", &format!("claim-{number}"), "mallory"));
    let mut all: Vec<_> = claims.collect();
    all.push(helm_release("one", &json!({"releaseName": "web"})));
    all.push(claim("flux", "web", "deployer"));
    let fake = with_flux(&all);
    let flux_s = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/flux/helmreleases/web";
    fake.put(ONE, helm_release("one", &json!({"releaseName": "web"})));
    fake.put(flux_s, claim("flux", "web", "deployer"));
    let (cluster, _watches) = fake.watched().await;
    // The first read of a kind discovers how the kind is served.
    cluster.answer(&driving("web")).await;
    fake.asked();
    assert_eq!(names(&cluster.answer(&driving("web")).await), ["one"]);
    assert_eq!(paths(&fake.asked()), [ONE]);
    // The account that holds the newest record leads to its HelmRelease.
    let held =
        question::HelmReleases::of("shop", "web", &Stamps::held_by("system:serviceaccount:flux:deployer")).into();
    let answer = cluster.answer(&held).await;
    let mut found = names(&answer);
    found.sort_unstable();
    assert_eq!(found, ["one", "web"]);
    let mut asked = fake.asked();
    asked.sort();
    assert_eq!(paths(&asked), [flux_s, ONE]);
}

#[tokio::test]
async fn too_many_helm_releases_are_an_answer_without_a_read() {
    let many =
        |count: usize| (0..count).map(|number| claim("shop", &format!("claim-{number}"), "")).collect::<Vec<_>>();
    let fake = with_flux(&many(9));
    let (cluster, _watches) = fake.watched().await;
    let why = "9 HelmReleases in namespace shop drive its release, and at most 8 are read".to_owned();
    let question = question::HelmReleases::of("shop", "web", &Stamps::default());
    assert_eq!(cluster.answer(&driving("web")).await, question.answered(Err(why)));
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn records_elsewhere_stamped_for_a_namespace_cost_no_read() {
    let mut all: Vec<_> = (0..50)
        .map(|number| {
            let mut stamped = record("evil", 1, Some("shop"));
            stamped["metadata"]["labels"]["name"] = format!("r{number}").into();
            stamped["metadata"]["name"] = format!("sh.helm.release.v1.r{number}.v1").into();
            stamped
        })
        .collect();
    all.push(record("flux", 3, Some("shop")));
    let fake = Fake::default();
    fake.put("/api/v1/secrets", all.into());
    let (cluster, _watches) = fake.watched().await;
    let found = ask(&cluster, question::ReleasesIn { namespace: "shop".to_owned() }).await.unwrap().unwrap();
    assert_eq!(found.len(), 51);
    assert_eq!(paths(&fake.asked()), [SECRETS_HERE, "/api/v1/namespaces/shop/configmaps"]);
}

#[tokio::test]
async fn helm_releases_that_the_copy_has_not_seen_are_read() {
    const HERE: &str = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/shop/helmreleases";
    let at = |name: &str, version: &str, release: &str| {
        let mut object = helm_release(name, &json!({"releaseName": release}));
        object["metadata"]["resourceVersion"] = version.into();
        object
    };
    let fake =
        with_flux(&[at("one", "1", "web"), at("two", "2", "web"), helm_release("three", &json!("of another shape"))]);
    let (cluster, _watches) = fake.watched().await;
    // One HelmRelease has changed since, and another one is new.
    fake.put(HERE, json!([at("one", "1", "web"), at("two", "7", "other"), at("four", "8", "web")]));
    for (name, object) in [("two", at("two", "7", "other")), ("four", at("four", "8", "web"))] {
        fake.put(&format!("{HERE}/{name}"), object);
    }
    let here = question::HelmReleasesIn { namespace: "shop".to_owned() };
    let drivers = ask(&cluster, here.clone()).await.unwrap().unwrap();
    let wanted = drivers.iter().map(|driver| (driver.name.as_str(), driver.drives("shop", "web")));
    assert_eq!(wanted.collect::<Vec<_>>(), [("four", true), ("one", true), ("two", false)]);
    let (two, four) = (format!("{HERE}/two"), format!("{HERE}/four"));
    let asked = fake.asked();
    let mut reads: Vec<_> = paths(&asked).into_iter().filter(|path| path.starts_with(HERE)).collect();
    reads.sort_unstable();
    assert_eq!(reads, [HERE, four.as_str(), two.as_str()]);
    // Without the kind there are no HelmReleases.
    let bare = Fake::default();
    bare.put("/apis", json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}));
    let (cluster, _watches) = bare.watched().await;
    assert_eq!(ask(&cluster, here).await, Ok(Some(Vec::new())));
}

#[tokio::test]
async fn the_origin_of_an_object_leads_to_its_records() {
    let mut flux_s = helm_release("web", &json!({"storageNamespace": "elsewhere"}));
    flux_s["metadata"]["namespace"] = "flux".into();
    flux_s["status"] = json!({"storageNamespace": "elsewhere", "history": [
        {"name": "web", "namespace": "shop", "status": "deployed"}]});
    let fake = with_flux(&[flux_s]);
    fake.put("/api/v1/secrets", json!([record("elsewhere", 3, None)]));
    fake.put("/api/v1/namespaces/elsewhere/secrets", json!([record("elsewhere", 3, None)]));
    let (cluster, _watches) = fake.watched().await;
    for freshness in [Freshness::Cached, Freshness::Live] {
        assert_eq!(place(&cluster.answer(&release(freshness)).await), (Storage::Secret, "elsewhere", Some(3)));
    }
    let elsewhere = "/api/v1/namespaces/elsewhere/secrets";
    assert_eq!(paths(&fake.asked()), [SECRETS_HERE, "/api/v1/namespaces/shop/configmaps", elsewhere]);
}

/// The discovery answers for the kinds of Sveltos.
fn serves_bundles(fake: &Fake) {
    let version = json!({"groupVersion": "lib.projectsveltos.io/v1beta1", "version": "v1beta1"});
    let group = json!({"name": "lib.projectsveltos.io", "versions": [version], "preferredVersion": version});
    fake.put("/apis", json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}));
    let kind = |kind: &str, name: &str| json!({"name": name, "singularName": "", "kind": kind, "namespaced": true, "verbs": ["get"]});
    fake.put(
        "/apis/lib.projectsveltos.io/v1beta1",
        json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "lib.projectsveltos.io/v1beta1",
            "resources": [kind("ConfigurationBundle", "configurationbundles")],
        }),
    );
}

#[tokio::test]
async fn bundles_are_read_in_order_and_without_their_objects() {
    let fake = Fake::default();
    serves_bundles(&fake);
    let path = |name: &str| format!("/apis/lib.projectsveltos.io/v1beta1/namespaces/civ/configurationbundles/{name}");
    let named = |names: &[&str]| {
        let reference = |name: &&str| BundleRef { namespace: "civ".to_owned(), name: (*name).to_owned() };
        question::Bundles(names.iter().map(reference).collect())
    };
    let names: Vec<_> = (0..20).map(|index| format!("config-{index}")).collect();
    for name in &names {
        let spec = json!({"helmReleaseNamespace": "shop", "helmReleaseName": name, "resources": ["kind: A\n"]});
        fake.put(&path(name), json!({"metadata": {"name": name}, "spec": spec}));
    }
    let cluster = fake.cluster();
    let asked: Vec<_> = names.iter().map(String::as_str).collect();
    let found = ask(&cluster, named(&asked)).await.unwrap().unwrap().unwrap();
    let releases = found.iter().map(|bundle| bundle.as_ref()?.release.as_ref().map(|release| release.name.as_str()));
    assert_eq!(releases.collect::<Option<Vec<_>>>(), Some(asked));
    // A missing bundle and an impossible name are no errors.
    assert_eq!(ask(&cluster, named(&["../secrets/a"])).await, Ok(Some(Ok(vec![None]))));
    fake.put(&path("odd"), json!({"spec": {"helmReleaseName": 7}}));
    let why = ask(&cluster, named(&["odd"])).await.unwrap().unwrap().unwrap_err();
    assert!(why.contains("ConfigurationBundle civ/odd cannot be parsed"), "{why}");
}

#[tokio::test]
async fn kinds_that_are_not_installed_cost_one_read_and_are_absent() {
    let fake = Fake::default();
    fake.put("/apis", json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}));
    let summary = ObjectKey::new("config.projectsveltos.io", "ClusterSummary", "civ", "shop");
    assert_eq!(ask(&fake.cluster(), question::Object(summary)).await, Ok(None));
    assert_eq!(paths(&fake.asked()), ["/apis"]);
}
