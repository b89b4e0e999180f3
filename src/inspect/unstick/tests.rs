//! Tests against a fake API server that only has Secrets and fails on request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::Method;
use interlock_engine::policy::Policies;
use interlock_engine::release::{Entry, ReleaseRef};
use serde_json::{Value, json};

use super::*;
use crate::world::kubernetes::fake;
use crate::world::policy_directory;

const V2: &str = "sh.helm.release.v1.web.v2";
const SECRETS: &str = "/api/v1/namespaces/shop/secrets";

/// The outcome of the deletion of a record.
#[derive(Debug, Clone, Copy, Default)]
enum Deletion {
    #[default]
    Done,
    /// The webhook does not answer.
    ReviewFailure,
    /// The record is deleted, and the answer is lost.
    Unanswered,
    /// The API server does not answer, now and later.
    Lost,
}

#[derive(Clone, Default)]
struct Fake {
    secrets: Arc<Mutex<BTreeMap<String, Value>>>,
    deletion: Deletion,
    /// How many were named.
    named: Arc<AtomicUsize>,
    /// So many Secrets can be made.
    quota: Option<usize>,
}

fn failure(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code});
    status["reason"] = reason.into();
    status["message"] = message.into();
    (code, status)
}

impl Fake {
    fn answer(&self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        let mut secrets = self.secrets.lock().unwrap();
        let name = path.strip_prefix(SECRETS).unwrap_or_default().trim_start_matches('/').to_owned();
        let absent = || failure(404, "NotFound", "not found");
        match (method, name.as_str()) {
            (&Method::POST, "") => {
                if self.quota.is_some_and(|quota| secrets.len() > quota) {
                    return failure(403, "Forbidden", "exceeded quota");
                }
                let mut made = body.clone();
                let prefix = body["metadata"]["generateName"].as_str().unwrap_or_default();
                let name = body["metadata"]["name"]
                    .as_str()
                    .map_or_else(|| format!("{prefix}{}", self.named.fetch_add(1, Ordering::Relaxed)), str::to_owned);
                made["metadata"]["name"] = name.as_str().into();
                if secrets.contains_key(&name) {
                    return failure(409, "AlreadyExists", "already exists");
                }
                secrets.insert(name, made.clone());
                (201, made)
            }
            (&Method::GET, "") if path == SECRETS => {
                (200, json!({"metadata": {}, "items": secrets.values().collect::<Vec<_>>()}))
            }
            (&Method::GET, V2) if matches!(self.deletion, Deletion::Lost) => failure(504, "Timeout", "timed out"),
            (&Method::GET, _) => secrets.get(&name).map_or_else(absent, |secret| (200, secret.clone())),
            (&Method::DELETE, V2) => match self.deletion {
                Deletion::ReviewFailure => failure(
                    500,
                    "InternalError",
                    "failed calling webhook \"create-delete.records.interlock.dev\": connection refused",
                ),
                Deletion::Lost => failure(504, "Timeout", "timed out"),
                Deletion::Done | Deletion::Unanswered => {
                    let is_it = |it: &Value| it["metadata"]["uid"] == body["preconditions"]["uid"];
                    match secrets.get(V2).map(is_it) {
                        None => absent(),
                        Some(false) => failure(409, "Conflict", "Precondition failed"),
                        Some(true) => {
                            secrets.remove(V2);
                            let lost = matches!(self.deletion, Deletion::Unanswered);
                            if lost { failure(504, "Timeout", "timed out") } else { (200, json!({})) }
                        }
                    }
                }
            },
            (&Method::DELETE, _) => secrets.remove(&name).map_or_else(absent, |secret| (200, secret)),
            _ => absent(),
        }
    }

    fn put(&self, revision: u64, status: &str, uid: &str) {
        let name = format!("sh.helm.release.v1.web.v{revision}");
        let labels = json!({"owner": "helm", "name": "web", "version": revision.to_string(), "status": status});
        let metadata = json!({"name": name, "namespace": "shop", "uid": uid, "resourceVersion": "7", "labels": labels});
        let record = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": metadata,
            "data": {"release": "SDRzSUFBQUE="},
        });
        self.secrets.lock().unwrap().insert(name, record);
    }

    fn pending(&self) -> StuckRecord {
        StuckRecord {
            release: ReleaseRef::new("shop", "web"),
            storage: Storage::Secret,
            entry: Entry::of_web(2, interlock_engine::release::Status::PendingUpgrade),
            object: serde_json::value::to_raw_value(&self.secrets.lock().unwrap()[V2]).unwrap(),
        }
    }

    fn copies(&self) -> Vec<String> {
        let secrets = self.secrets.lock().unwrap();
        secrets.keys().filter(|name| name.starts_with("interlock-copy-web-v2-")).cloned().collect()
    }
}

/// Revision 2 is pending over revision 1.
fn stuck(deletion: Deletion) -> Fake {
    let fake = Fake { deletion, ..Fake::default() };
    fake.put(1, "deployed", "one");
    fake.put(2, "pending-upgrade", "two");
    fake
}

async fn view<'p>(fake: &Fake, policies: &'p Policies) -> View<'p> {
    let fake = fake.clone();
    let client = fake::client(move |head, body| fake.answer(&head.method, head.uri.path(), body));
    View::open(&client, policies).await
}

#[tokio::test]
async fn concurrent_commands_keep_each_others_copies() {
    let (fake, policies) = (stuck(Deletion::Done), policy_directory::load_or_shipped(None).unwrap());
    let view = view(&fake, &policies).await;
    let (alice, bob) = (fake.pending(), fake.pending());
    let store = StoredObjects::of(&view.client, "shop");
    // Both have looked, and bob has kept his copy already when alice deletes.
    let bobs = bob.copy(&store, false).await.unwrap();
    let alices = alice.unstick(&view, false).await.unwrap();
    assert_ne!(alices, bobs);
    // Then somebody upgrades, and bob's command would delete another record of the same name.
    delete_copies(&store, &bobs, false).await;
    fake.put(2, "pending-upgrade", "another");
    assert_eq!(bob.unstick(&view, false).await, Err(UnstickError::Changed(V2.to_owned())));
    assert_eq!(fake.copies(), alices, "alice's is all that is left of the record");
    assert!(fake.secrets.lock().unwrap().contains_key(V2));
}

#[tokio::test]
async fn all_copies_of_a_record_are_deleted_when_it_is_restored() {
    let (fake, policies) = (stuck(Deletion::Done), policy_directory::load_or_shipped(None).unwrap());
    let view = view(&fake, &policies).await;
    let (alice, bob) = (fake.pending(), fake.pending());
    alice.unstick(&view, false).await.unwrap();
    // The record is already gone, as bob wanted.
    bob.unstick(&view, false).await.unwrap();
    assert_eq!(fake.copies().len(), 2);
    let release = ReleaseRef::new("shop", "web");
    RecordCopy::find(&view, &release).await.unwrap().unwrap().restore(&view, false).await.unwrap();
    assert_eq!(fake.copies().len(), 0);
    assert_eq!(fake.secrets.lock().unwrap()[V2]["metadata"]["labels"]["status"], "pending-upgrade");
}

#[tokio::test]
async fn while_the_webhook_is_down_nothing_changes() {
    let (fake, policies) = (stuck(Deletion::ReviewFailure), policy_directory::load_or_shipped(None).unwrap());
    let view = view(&fake, &policies).await;
    let error = fake.pending().unstick(&view, false).await.unwrap_err();
    let text = error.to_string();
    assert!(!error.is_answer() && text.contains("connection refused") && text.contains("interlock doctor"), "{text}");
    assert!(fake.copies().is_empty() && fake.secrets.lock().unwrap().contains_key(V2));
}

#[tokio::test]
async fn after_a_lost_answer_an_uncertain_copy_is_kept() {
    let policies = policy_directory::load_or_shipped(None).unwrap();
    let fake = stuck(Deletion::Unanswered);
    let copies = fake.pending().unstick(&view(&fake, &policies).await, false).await.unwrap();
    assert_eq!(fake.copies(), copies);
    let fake = stuck(Deletion::Lost);
    let error = fake.pending().unstick(&view(&fake, &policies).await, false).await.unwrap_err();
    let kept = fake.copies();
    assert!(kept.len() == 1 && error.to_string().contains(&kept[0]), "{error}: {kept:?}");
}

#[tokio::test]
async fn without_a_copy_nothing_is_deleted() {
    let policies = policy_directory::load_or_shipped(None).unwrap();
    let fake = Fake { quota: Some(1), ..stuck(Deletion::Done) };
    let error = fake.pending().unstick(&view(&fake, &policies).await, false).await.unwrap_err();
    assert!(error.to_string().contains("exceeded quota"), "{error}");
    assert!(fake.secrets.lock().unwrap().contains_key(V2));
}

#[tokio::test]
async fn a_forged_copy_and_an_uninstalled_release_are_not_restored() {
    let (fake, policies) = (stuck(Deletion::Done), policy_directory::load_or_shipped(None).unwrap());
    let (view, release) = (view(&fake, &policies).await, ReleaseRef::new("shop", "web"));
    fake.pending().unstick(&view, false).await.unwrap();
    let first = fake.secrets.lock().unwrap().remove("sh.helm.release.v1.web.v1").unwrap();
    let error = RecordCopy::find(&view, &release).await.err().unwrap().to_string();
    assert!(error.contains("because it was uninstalled"), "{error}");
    let mut secrets = fake.secrets.lock().unwrap().clone();
    secrets.insert("sh.helm.release.v1.web.v1".to_owned(), first);
    let copy = secrets.values_mut().find(|it| it["type"] == copy::COPY_TYPE).unwrap();
    let annotation = copy.pointer_mut("/metadata/annotations/interlock.dev~1original").unwrap();
    *annotation = annotation.as_str().unwrap().replace("pending-upgrade", "deployed").into();
    *fake.secrets.lock().unwrap() = secrets;
    let error = RecordCopy::find(&view, &release).await.err().unwrap().to_string();
    assert!(error.contains("is not a copy of a pending record"), "{error}");
}
