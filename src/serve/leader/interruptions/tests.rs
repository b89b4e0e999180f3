//! Tests with an API server that receives notes.

use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};

use interlock_engine::evidence::{Answer, Knowledge, Query};
use interlock_engine::release::stamps::CHART;
use interlock_engine::release::{Entry, History, Stamps, Status, Storage};
use serde_json::{Value, json};

use super::*;
use crate::world::kubernetes::fake;
use crate::world::{AnswerFuture, QueryBudget};

/// Answers patches with these codes in turn, and then with success. Keeps the patches.
#[derive(Clone, Default)]
struct Server {
    codes: Arc<Mutex<Vec<u16>>>,
    received: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    fn answer(&self, path: &str, body: &Value) -> (u16, Value) {
        self.received.lock().unwrap().push((path.to_owned(), body.clone()));
        let code = self.codes.lock().unwrap().pop().unwrap_or(200);
        let answer = match code {
            200 => json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "x"}}),
            code => json!({"kind": "Status", "status": "Failure", "reason": "Conflict", "message": "no", "code": code}),
        };
        (code, answer)
    }
}

/// A world of one release, whose records change with each query.
struct Records(Mutex<Vec<History>>);

impl World for Records {
    fn answer_for<'w>(&'w self, _: &'w Query, _: QueryBudget<'w>) -> AnswerFuture<'w> {
        let mut histories = self.0.lock().unwrap();
        let now = if histories.len() > 1 { histories.remove(0) } else { histories[0].clone() };
        let answer: Ready<Answer> = ready(Answer::Known(Knowledge::History(now)));
        Box::pin(answer)
    }
}

fn entry(revision: u64, status: Status, key: &'static str, stamp: Option<&str>, resource_version: &str) -> Entry {
    let mut stamps = Stamps::default();
    stamps.set_or_remove(key, stamp.map(str::to_owned));
    Entry {
        uid: "u".to_owned(),
        resource_version: resource_version.to_owned(),
        stamps,
        ..Entry::of_web(revision, status)
    }
}

fn deployed(note: Option<&str>, resource_version: &str) -> History {
    History::new(vec![entry(1, Status::Deployed, INTERRUPTED, note, resource_version)])
}

/// Writes the note about revision 2. Returns the requests to the API server.
async fn written(codes: &[u16], histories: Vec<History>) -> (Result<(), String>, Vec<(String, Value)>) {
    let server = Server::default();
    *server.codes.lock().unwrap() = codes.iter().rev().copied().collect();
    let answering = server.clone();
    let client = fake::client(move |head, body| answering.answer(head.uri.path(), body));
    let deleted = DeletedPendingRecord {
        storage: Storage::Secret,
        namespace: "shop".to_owned(),
        release: "web".to_owned(),
        record: entry(2, Status::PendingUpgrade, CHART, Some("shop-2.0.0"), "5"),
    };
    let result = write(&client, &Records(Mutex::new(histories)), &deleted).await;
    let received = server.received.lock().unwrap().clone();
    (result, received)
}

fn note(resource_version: &str) -> (String, Value) {
    let metadata = json!({
        "resourceVersion": resource_version, "uid": "u", "annotations": {"interlock.dev/interrupted": "shop-2.0.0@2"},
    });
    ("/api/v1/namespaces/shop/secrets/sh.helm.release.v1.web.v1".to_owned(), json!({ "metadata": metadata }))
}

#[tokio::test(start_paused = true)]
async fn a_note_is_written_only_over_the_version_that_was_read() {
    assert_eq!(written(&[], vec![deployed(None, "7")]).await, (Ok(()), vec![note("7")]));
}

#[tokio::test(start_paused = true)]
async fn the_newest_remaining_record_of_any_status_gets_the_note() {
    for status in [Status::Superseded, Status::Failed, Status::PendingRollback] {
        let left = History::new(vec![entry(1, status, INTERRUPTED, None, "7")]);
        assert_eq!(written(&[], vec![left]).await, (Ok(()), vec![note("7")]), "{status}");
    }
    assert_eq!(written(&[], vec![History::default()]).await, (Ok(()), vec![]));
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_the_records_are_read_again() {
    let changed = vec![deployed(None, "7"), deployed(None, "9")];
    assert_eq!(written(&[409], changed).await, (Ok(()), vec![note("7"), note("9")]));
    // Another leader was faster.
    let noted = vec![deployed(None, "7"), deployed(Some("shop-2.0.0@2"), "9")];
    assert_eq!(written(&[409], noted).await, (Ok(()), vec![note("7")]));
    // A newer revision was deployed.
    let newer = History::new(vec![entry(3, Status::Deployed, INTERRUPTED, None, "11")]);
    assert_eq!(written(&[409], vec![deployed(None, "7"), newer]).await, (Ok(()), vec![note("7")]));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_record_needs_no_note_and_retries_are_limited() {
    assert_eq!(written(&[404], vec![deployed(None, "7")]).await, (Ok(()), vec![note("7")]));
    let (result, received) = written(&[500; 20], vec![deployed(None, "7")]).await;
    assert!(result.is_err());
    assert_eq!(received.len(), MAX_ATTEMPTS as usize);
}
