//! Answers of an API server that exceed the limits.

use std::convert::Infallible;
use std::future::ready;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use kube::api::{Api, ListParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;
use crate::budget::{Flow, Peer};
use crate::world::kubernetes::api_error::reason;

/// A client of an API server that answers everything with this text, in parts of 64 KiB.
fn answering(text: String, budget: &Budget) -> (IntakeClient, Arc<IntakeMetrics>) {
    let answer = service_fn(move |_: Request<Body>| {
        let parts: Vec<_> = text.as_bytes().chunks(64 << 10).map(Bytes::copy_from_slice).collect();
        let parts = stream::iter(parts.into_iter().map(|part| Ok::<_, Infallible>(Frame::data(part))));
        ready(Ok::<_, Infallible>(Response::new(StreamBody::new(parts).boxed_unsync())))
    });
    let metrics = Arc::default();
    (client(Client::new(answer, "default"), budget, &metrics), metrics)
}

fn helm_release(name: &str, values: &str, paths: Value) -> String {
    let spec = json!({"releaseName": "web", "kubeConfig": paths});
    let spec = spec.to_string();
    let spec = spec.strip_suffix('}').unwrap();
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"shop","managedFields":[{values}]}},"spec":{spec},"values":[{values}]}},"status":{{}}}}"#
    )
}

fn nothing(bytes: usize) -> String {
    format!("{}{{}}", "{},".repeat(bytes / 3))
}

fn resource() -> ApiResource {
    let kind = GroupVersionKind::gvk("helm.toolkit.fluxcd.io", "v2", "HelmRelease");
    ApiResource::from_gvk_with_plural(&kind, "helmreleases")
}

#[tokio::test]
async fn a_list_of_large_objects_is_read_in_little_memory() {
    let values = nothing(1_300_000);
    let large = helm_release("large", "", json!(vec![json!({}); 20_000]));
    let mut items: Vec<_> = (0..8).map(|number| helm_release(&format!("r{number}"), &values, json!(null))).collect();
    items.insert(3, large);
    let text = format!(
        r#"{{"apiVersion":"v1","items":[{}],"kind":"List","metadata":{{"continue":"more"}}}}"#,
        items.join(",")
    );
    // The complete text is ten times as large as the budget.
    let budget = Budget::new(1 << 20);
    let (client, metrics) = answering(text.clone(), &budget);
    let api: Api<Projected> = Api::all_with(client.kube().clone(), &resource());
    let listed = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.metadata.continue_.as_deref(), Some("more"));
    let names: Vec<_> = listed.items.iter().map(|item| item.metadata().name.clone().unwrap()).collect();
    assert_eq!(names, ["r0", "r1", "r2", "large", "r3", "r4", "r5", "r6", "r7"]);
    let unread: Vec<_> = listed.items.iter().map(|item| item.spec::<Value>().is_err()).collect();
    assert_eq!(unread.iter().position(|unread| *unread), Some(3));
    assert_eq!(unread.iter().filter(|unread| **unread).count(), 1);
    assert_eq!(listed.items[3].spec::<Value>(), Err(Unread::TooLarge));
    assert!(listed.items.iter().all(|item| item.bytes() < 1_000));
    assert_eq!((metrics.too_large("helmreleases"), budget.free()), (1, 1 << 20));
    // Without the intake, the object keeps its size.
    assert!(text.len() > 20_000_000);
}

#[tokio::test]
async fn a_complete_answer_is_limited_and_charged() {
    let secret =
        |bytes: usize| format!(r#"{{"metadata":{{"name":"web"}},"data":{{"release":"{}"}}}}"#, "x".repeat(bytes));
    let request = || Request::get("/api/v1/namespaces/shop/secrets/web").body(Vec::new()).unwrap();
    let budget = Budget::new(32 << 20);
    let (client, _) = answering(secret(3 << 20), &budget);
    assert_eq!(client.kube().request_text(request()).await.unwrap().len(), secret(3 << 20).len());
    let (client, metrics) = answering(secret(9 << 20), &budget);
    let error = client.kube().request_text(request()).await.unwrap_err();
    assert_eq!(reason(&error), "the answer is larger than 8 MiB");
    assert_eq!((metrics.too_large("object"), budget.free()), (1, 32 << 20));
    // An answer waits for a used-up budget, unless the answer is small.
    let taken = [("a", 20 << 20), ("b", 9 << 20)].map(|(user, bytes)| budget.grant(Flow::of(Peer::Known, user), bytes));
    let taken = futures_util::future::join_all(taken).await;
    let (client, _) = answering(secret(60 << 10), &budget);
    assert!(client.kube().request_text(request()).await.is_ok());
    let (client, _) = answering(secret(3 << 20), &budget);
    let read = tokio::spawn(async move { client.kube().request_text(request()).await.is_ok() });
    tokio::task::yield_now().await;
    assert!(!read.is_finished());
    drop(taken);
    assert!(read.await.unwrap());
}

#[tokio::test]
async fn invalid_json_is_an_error() {
    let (client, _) = answering("<html>".to_owned(), &Budget::new(1 << 20));
    let api: Api<Projected> = Api::all_with(client.kube().clone(), &resource());
    let error = api.list(&ListParams::default()).await.unwrap_err();
    assert_eq!(reason(&error), "the answer is not JSON");
}
